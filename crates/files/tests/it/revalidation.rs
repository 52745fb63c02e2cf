//! Revalidation of cached files: without opening them, and in time for every change.

use std::fs;
use std::time::{Duration, Instant};

use testkit::{ClientResponse, TestClient};

use crate::site::{TestSite, wait_until};

/// Requests: a file, one with a sibling, its sibling, an index, a file in a folder.
const TARGETS: [(&str, &[&str], &str); 5] = [
    ("/plain.txt", &[], "plain"),
    ("/styles.css", &[], "styles"),
    ("/styles.css", &["Accept-Encoding: br"], "\u{c}packed"),
    ("/", &[], "index"),
    ("/d/f", &[], "inner"),
];

fn site() -> TestSite {
    let site = TestSite::cached();
    site.file("plain.txt", "plain")
        .file("styles.css", "styles")
        .file("index.html", "index")
        .file("d/f", "inner");
    site.file("styles.css.br", "\u{c}packed");
    site
}

fn ask(client: &mut TestClient, (target, fields, _): (&str, &[&str], &str)) -> ClientResponse {
    client.request("GET", target, fields)
}

/// Requests everything for a time. Panics for another response.
fn ask_for(client: &mut TestClient, time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        for target in TARGETS {
            let response = ask(client, target);
            assert_eq!((response.status, response.text()), (200, target.2), "{target:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn opens_no_file_to_revalidate_it() {
    use testkit::opens::Opens;
    let site = site();
    let (opens, inner) = (Opens::of(&site.at("")), Opens::of(&site.at("d")));
    let mut client = site.connect();
    wait_until("revalidation without opening", || {
        // Two periods at least.
        ask_for(&mut client, Duration::from_millis(1_100));
        let opened = [opens.names(), inner.names()].concat();
        let directories = opened.iter().filter(|name| name.is_empty() || *name == "d").count();
        // Not before the last change of the files is old enough. The directories are opened instead.
        directories >= 2 && opened.len() == directories
    });
    site.replace("d/f", "another");
    wait_until("the change", || client.get("/d/f").text() == "another");
}

/// A change, a request, and its response afterwards.
type Change = (&'static str, fn(&TestSite), (&'static str, &'static [&'static str]), (u16, &'static str));

#[test]
fn shows_each_change_of_an_unchanged_tree() {
    let changes: [Change; 7] = [
        (
            "rewritten",
            |site| {
                site.file("plain.txt", "other");
            },
            (TARGETS[0].0, &[]),
            (200, "other"),
        ),
        (
            "removed",
            |site| fs::remove_file(site.at("plain.txt")).expect("removed"),
            ("/plain.txt", &[]),
            (404, "Not Found\n"),
        ),
        (
            "moved out and linked to",
            |site| {
                fs::rename(site.at("plain.txt"), site.outside("plain.txt")).expect("moved");
                site.link("plain.txt", "../outside/plain.txt");
            },
            ("/plain.txt", &[]),
            (403, "Forbidden\n"),
        ),
        (
            "in a folder moved out and linked to",
            |site| {
                fs::rename(site.at("d"), site.outside("d")).expect("moved");
                site.link("d", "../outside/d");
            },
            ("/d/f", &[]),
            (403, "Forbidden\n"),
        ),
        (
            "a new sibling",
            |site| {
                site.file("plain.txt.br", "\u{c}packed anew");
            },
            ("/plain.txt", &["Accept-Encoding: br"]),
            (200, "\u{c}packed anew"),
        ),
        (
            "a removed sibling",
            |site| fs::remove_file(site.at("styles.css.br")).expect("removed"),
            ("/styles.css", &["Accept-Encoding: br"]),
            (200, "styles"),
        ),
        (
            "a rewritten sibling",
            |site| {
                site.file("styles.css.br", "\u{c}packed anew");
            },
            ("/styles.css", &["Accept-Encoding: br"]),
            (200, "\u{c}packed anew"),
        ),
    ];
    let sites = changes.map(|change| (site(), change));
    let mut clients = sites.each_ref().map(|(site, _)| site.connect());
    // The files' last change gets old, and all have been revalidated without opening them.
    for _ in 0..20 {
        for client in &mut clients {
            ask_for(client, Duration::from_millis(25));
        }
    }
    for ((site, (what, change, (target, fields), (status, text))), client) in sites.iter().zip(&mut clients) {
        change(site);
        wait_until(what, || {
            let response = client.request("GET", target, fields);
            response.status == *status && response.text() == *text
        });
    }
}
