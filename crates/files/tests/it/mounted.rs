//! Files mounted below a prefix of an app: names are relative to it, redirects stay beneath it.

use std::ops::ControlFlow;

use shearwater::{App, DriverChoice, Request, Response, get, guard};
use shearwater_files::{FindOptions, Folder, FolderOptions};

use crate::site::TestSite;

/// Serves an app with files with this driver; `None` if it isn't available.
fn mounted(driver: DriverChoice, define: impl FnOnce(App, Folder) -> App) -> Option<TestSite> {
    let find = FindOptions { clean_urls: true, ..FindOptions::default() };
    let site = TestSite::with_app(driver, &FolderOptions { find, ..FolderOptions::default() }, define)?;
    site.file("index.html", "index").file("a.txt", "0123456789").file("page.html", "page");
    site.file("sub/index.html", "sub").file("sub/b.txt", "sub");
    Some(site)
}

fn below_a_prefix(app: App, folder: Folder) -> App {
    app.mount("/static", folder).route("/static/own", get("own"))
}

#[test]
fn path_after_the_prefix_names_the_file() {
    let drivers = [DriverChoice::Epoll, DriverChoice::Kqueue, DriverChoice::Uring];
    let all: Vec<_> = drivers.into_iter().filter_map(|driver| mounted(driver, below_a_prefix)).collect();
    assert!(!all.is_empty(), "no driver");
    for site in &all {
        let mut client = site.connect();
        for (target, status, body) in [
            ("/static/a.txt", 200, "0123456789"),
            ("/static/%61.txt", 200, "0123456789"),
            ("/static/", 200, "index"),
            ("/static/sub/", 200, "sub"),
            ("/static/page", 200, "page"),
            ("/static/own", 200, "own"),
        ] {
            let response = client.get(target);
            assert_eq!((response.status, response.text()), (status, body), "{target}");
        }
        for (target, status) in
            [("/static/none", 404), ("/a.txt", 404), ("/staticx", 404), ("/static/../a.txt", 404)]
        {
            assert_eq!(client.get(target).status, status, "{target}");
        }
    }
}

#[test]
fn redirects_keep_the_prefix() {
    let site = mounted(DriverChoice::Auto, below_a_prefix).expect("a driver");
    let mut client = site.connect();
    for (target, status, location) in [
        ("/static", 301, "/static/"),
        ("/static?a=b", 301, "/static/?a=b"),
        ("/static/sub", 301, "/static/sub/"),
        ("/static/sub?a", 301, "/static/sub/?a"),
        ("/static/page.html", 308, "/static/page"),
        ("/static/page/?a", 308, "/static/page?a"),
    ] {
        let response = client.get(target);
        assert_eq!((response.status, response.field("Location")), (status, Some(location)), "{target}");
    }
}

#[test]
fn mounted_files_support_ranges_and_preconditions() {
    let site = mounted(DriverChoice::Auto, below_a_prefix).expect("a driver");
    let mut client = site.connect();
    let part = client.request("GET", "/static/a.txt", &["Range: bytes=2-4"]);
    assert_eq!((part.status, part.text()), (206, "234"));
    assert_eq!(part.field("Content-Range"), Some("bytes 2-4/10"));
    let tag = client.get("/static/a.txt").field("ETag").expect("a tag").to_owned();
    let known = client.request("GET", "/static/a.txt", &[&format!("If-None-Match: {tag}")]);
    assert_eq!(known.status, 304);
    let head = client.request("HEAD", "/static/a.txt", &[]);
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("10")));
    let put = client.request("PUT", "/static/a.txt", &[]);
    assert_eq!((put.status, put.field("Allow")), (405, Some("GET, HEAD, OPTIONS")));
}

fn guarded(app: App, folder: Folder) -> App {
    app.mount("/", folder).scope("/sub", |sub| {
        sub.with(guard(|_: &Request, response: &mut Response| {
            response.status(403).text("guarded");
            ControlFlow::Break(())
        }))
    })
}

#[test]
fn guards_apply_to_every_spelling_of_a_path() {
    let site = mounted(DriverChoice::Auto, guarded).expect("a driver");
    let mut client = site.connect();
    for (target, status) in [
        ("/sub/", 403),
        ("/sub/index.html", 403),
        ("/%73ub/index.html", 403),
        ("//sub/index.html", 403),
        ("/x/../sub/index.html", 403),
        ("/sub/../sub/index.html", 403),
        ("/./%2e/x/y/../%2E%2e/sub/index.html", 403),
        ("/x/../a.txt", 200),
        ("/a.txt", 200),
        ("/", 200),
    ] {
        assert_eq!(client.get(target).status, status, "{target}");
    }
}

#[test]
fn no_generated_path_bypasses_a_guard() {
    const PIECES: [&str; 9] = ["/", "sub", "%73ub", "%2F", "/.", "..", "%2e", "b.txt", "b%2Etxt"];
    let guarded = mounted(DriverChoice::Auto, guarded).expect("a driver");
    let open = mounted(DriverChoice::Auto, |app, folder| app.mount("/", folder));
    let open = open.expect("a driver");
    let (mut client, mut other) = (guarded.connect(), open.connect());
    let mut reached = 0;
    for number in 0..PIECES.len().pow(4) {
        let pieces = (0..4).map(|digit| PIECES[number / PIECES.len().pow(digit) % PIECES.len()]);
        let target = format!("/{}", pieces.collect::<String>());
        let response = client.get(&target);
        assert_ne!(response.text(), "sub", "{target}");
        let unguarded = other.get(&target);
        if response.status == 400 {
            // The path leaves the root, and the connection is closed.
            assert_eq!(unguarded.status, 400, "{target}");
            (client, other) = (guarded.connect(), open.connect());
        }
        if unguarded.text() == "sub" {
            reached += 1;
            assert_eq!((response.status, response.text()), (403, "guarded"), "{target}");
        }
    }
    assert!(reached > 10, "the guarded file was requested in {reached} ways");
}
