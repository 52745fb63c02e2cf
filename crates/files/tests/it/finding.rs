//! File selection: indexes and `try_files`.

use std::fs;

use shearwater_files::{CacheLimits, FindOptions, FolderOptions};
use testkit::TestClient;

use crate::site::{TestSite, wait_until};

pub(crate) fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn options(index: &[&str], try_files: &[&str]) -> FolderOptions {
    let find = FindOptions { index: strings(index), try_files: strings(try_files), ..FindOptions::default() };
    FolderOptions { find, ..FolderOptions::default() }
}

/// Creates the same site without and with a cache.
pub(crate) fn both(options: &FolderOptions) -> [TestSite; 2] {
    [TestSite::with(options), TestSite::cached_with(options)]
}

/// Returns status, `Location` and body as one text.
pub(crate) fn outcome(client: &mut TestClient, target: &str, fields: &[&str]) -> String {
    let response = client.request("GET", &testkit::tls::target(target), fields);
    match response.field("Location") {
        Some(location) => format!("{} {location}", response.status),
        None if response.status == 200 => response.text().to_owned(),
        None => response.status.to_string(),
    }
}

/// Requests each three times: read, cached, cached.
pub(crate) fn check(site: &TestSite, table: &[(&str, &str)]) {
    let mut client = site.connect();
    for round in 0..3 {
        for (target, expected) in table {
            assert_eq!(outcome(&mut client, target, &[]), *expected, "{target} in round {round}");
        }
    }
}

#[test]
fn serves_the_first_index_of_a_folder() {
    for site in both(&options(&["index.html", "index.htm", "Home page"], &[])) {
        site.file("a/index.htm", "a").file("a/Home page", "not a").file("b/Home page", "b");
        site.file("c/index.html/x", "a folder").file("c/index.htm", "c").file("d/x", "none");
        check(
            &site,
            &[
                ("/a/", "a"),
                ("/b/", "b"),
                ("/b", "301 /b/"),
                ("/c/", "c"),
                ("/d/", "404"),
                ("/d", "301 /d/"),
                ("/", "404"),
                ("/b/Home%20page", "b"),
                ("/a//?q", "a"),
            ],
        );
    }
    for site in both(&options(&[], &[])) {
        site.file("a/index.html", "a");
        check(&site, &[("/a/", "404"), ("/a", "301 /a/"), ("/a/index.html", "a")]);
    }
}

#[test]
fn tries_candidates_in_order() {
    let tried = ["{path}", "{path}.html", "{path}/index.html", "/pages{path}.txt", "/fallback.html"];
    for site in both(&options(&["index.html"], &tried)) {
        site.file("f.txt", "file")
            .file("both", "both")
            .file("both.html", "not both")
            .file("page.html", "page");
        site.file("dir/index.html", "dir").file("pages/deep/p.txt", "p").file("fallback.html", "fallback");
        site.file("index.html", "top").file(".html", "hidden").file("dir/.html", "hidden");
        check(
            &site,
            &[
                ("/f.txt", "file"),
                ("/both", "both"),
                ("/page", "page"),
                ("/page.html", "page"),
                // Relative links in an index need the slash.
                ("/dir", "301 /dir/"),
                ("/dir?x=1", "301 /dir/?x=1"),
                ("/none/../dir?x=\"\\\u{fc}%C3", "301 /dir/?x=%22%5C%C3%BC%C3"),
                // No address of another host.
                ("/.//dir", "301 /dir/"),
                ("/x/..//dir", "301 /dir/"),
                ("/%2e///./dir", "301 /dir/"),
                ("/dir/", "dir"),
                ("/deep/p", "p"),
                ("/", "top"),
                ("/page/", "fallback"),
                ("/none/", "fallback"),
                ("/none.js", "fallback"),
                ("/dir/none", "fallback"),
                ("/%6eone?x", "fallback"),
                ("/fallback.html", "fallback"),
                ("/.html", "404"),
                ("/dir/..", "top"),
                ("/none/../%2e/page", "page"),
                ("/%zz", "fallback"),
            ],
        );
    }
}

#[test]
fn candidates_end_with_their_last_entry() {
    for (tried, table) in [
        (&["{path}", "=404"][..], &[("/f", "f"), ("/a", "404"), ("/a/", "404"), ("/", "404"), ("/g", "404")]),
        (
            &["{path}", "{path}/", "=410"],
            &[("/f", "f"), ("/a", "301 /a/"), ("/a/", "a"), ("/g/", "410"), ("/g", "410")],
        ),
        (&["/f"], &[("/f", "f"), ("/a", "f"), ("/a/", "f"), ("/", "f"), ("/g", "f")]),
        (
            &["{path}/", "{path}"],
            &[("/f", "f"), ("/a", "301 /a/"), ("/a/", "a"), ("/g/", "404"), ("/g", "404")],
        ),
        (
            &["/b{path}", "/none", "=403"],
            &[("/f", "403"), ("/x", "x"), ("/a/", "403"), ("/", "403"), ("/b/x", "403")],
        ),
        (&["/b/{path}/index.html"], &[("/c", "c"), ("/c/", "c"), ("/", "b"), ("/a/", "404"), ("/x", "404")]),
    ] {
        for site in both(&options(&["index.html"], tried)) {
            site.file("f", "f").file("a/index.html", "a").file("b/x", "x").file("b/c/index.html", "c");
            site.file("b/index.html", "b");
            check(&site, table);
        }
    }
}

/// A candidate that exists but can't be sent isn't skipped: later ones are for missing files.
#[test]
fn links_that_lead_out_end_the_candidates() {
    for site in both(&options(&["index.html"], &["{path}", "{path}.html", "/f"])) {
        site.file("f", "f").link("out", site.outside("canary")).link("p.html", site.outside("canary"));
        site.link("gone", "none");
        check(&site, &[("/out", "403"), ("/p", "403"), ("/p.html", "403"), ("/gone", "f")]);
    }
}

#[test]
fn tries_names_of_any_length_and_depth() {
    let (long, deep) = (format!("/{}", "n".repeat(255)), format!("/{}", "d/".repeat(2_500)));
    for site in both(&options(&["index.html"], &["{path}", "{path}.html", "{path}/index.html", "/f"])) {
        site.file("f", "f");
        check(&site, &[(&long, "f"), (&deep, "f")]);
    }
}

/// Requests until the response is as wanted. All responses before must be as they were.
fn until(client: &mut TestClient, target: &str, was: &str, wanted: &str) {
    wait_until(wanted, || {
        let found = outcome(client, target, &[]);
        assert!(found == wanted || found == was, "{found:?} while waiting for {wanted:?}");
        found == wanted
    });
}

/// For cached files and those sent from the disk.
#[test]
fn notices_added_and_removed_candidates() {
    let fill = |text: &str, len: usize| text.repeat(len);
    for len in [1, 100_000] {
        let site = TestSite::cached_with(&options(&["index.html"], &["{path}", "{path}.html", "/f"]));
        let (f, page, own) = (fill("f", len), fill("page", len), fill("own", len));
        site.file("f", &f);
        let mut client = site.connect();
        until(&mut client, "/x", "", &f);
        until(&mut client, "/y", "", &f);
        site.file("x.html", &page);
        until(&mut client, "/x", &f, &page);
        site.file("x", &own);
        until(&mut client, "/x", &page, &own);
        fs::remove_file(site.at("x")).expect("removed");
        until(&mut client, "/x", &own, &page);
        fs::remove_file(site.at("x.html")).expect("removed");
        until(&mut client, "/x", &page, &f);
        let again = fill("again", len);
        site.replace("f", &again);
        until(&mut client, "/x", &f, &again);
        until(&mut client, "/y", &f, &again);
        fs::remove_file(site.at("f")).expect("removed");
        until(&mut client, "/y", &again, "404");
    }
}

/// More names and files than the caches hold.
#[test]
fn serves_right_files_with_a_tiny_cache() {
    let limits = CacheLimits { cached_files_max: 2, ..CacheLimits::default() };
    let site =
        TestSite::of(&options(&["index.html"], &["{path}", "{path}.html", "/f"]), limits, |files| files);
    site.file("f", "f");
    for number in 0..5 {
        site.file(format!("{number}.html"), format!("page {number}"));
    }
    let mut client = site.connect();
    for number in (0..8).cycle().take(200) {
        let expected = if number < 5 { format!("page {number}") } else { "f".to_owned() };
        assert_eq!(outcome(&mut client, &format!("/{number}"), &[]), expected);
    }
}
