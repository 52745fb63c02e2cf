//! Pages without their extension: each has one path, at most one redirect away from the others.

use shearwater_files::{FindOptions, FolderOptions};

use crate::finding::{both, check, outcome, strings};
use crate::site::Site;

fn options(index: &[&str], try_files: &[&str]) -> FolderOptions {
    let find = FindOptions {
        index: strings(index),
        try_files: strings(try_files),
        clean_urls: true,
        ..FindOptions::default()
    };
    FolderOptions { find, ..FolderOptions::default() }
}

fn files(site: &Site) {
    site.file("index.html", "top")
        .file("about.html", "about")
        .file("a/index.html", "a")
        .file("a/b.html", "b");
    site.file("file", "file")
        .file("file.html", "page beside a file")
        .file("x.htm", "x")
        .file("f.txt", "text");
    site.file("shop/index.html", "shop").file("shop.html", "page beside a folder").file("plain/x", "x");
    site.file("plain.html", "page beside a folder without an index").file("d.html/index.html", "d");
    site.file("a b?#é.html", "odd").file("\\evil.html", "odd").file("C.HTML", "capitals");
}

const TABLE: &[(&str, &str)] = &[
    ("/", "top"),
    ("/about", "about"),
    ("/a/", "a"),
    ("/a/b", "b"),
    ("/f.txt", "text"),
    ("/x.htm", "x"),
    ("/C.HTML", "capitals"),
    ("/C", "404"),
    // One redirect, with the query.
    ("/about.html", "308 /about"),
    ("/about.html?x=1&y=/z?", "308 /about?x=1&y=/z?"),
    ("/about/", "308 /about"),
    ("/about/?q", "308 /about?q"),
    ("/a/b.html", "308 /a/b"),
    ("/a/b/", "308 /a/b"),
    ("/index.html", "308 /"),
    ("/index.html?", "308 /?"),
    ("/index", "308 /"),
    ("/index/", "404"),
    ("/a/index.html", "308 /a/"),
    ("/a/index", "308 /a/"),
    ("/a", "301 /a/"),
    // The file itself comes first, so its page keeps its own path.
    ("/file", "file"),
    ("/file.html", "page beside a file"),
    ("/file/", "404"),
    // A folder with an index keeps its slash, and a page beside it its name.
    ("/shop", "page beside a folder"),
    ("/shop.html", "308 /shop"),
    ("/shop/", "shop"),
    ("/plain", "page beside a folder without an index"),
    ("/plain/", "308 /plain"),
    ("/plain.html", "308 /plain"),
    ("/d.html", "301 /d.html/"),
    ("/d.html/", "d"),
    ("/d", "404"),
    ("/none.html", "404"),
    ("/none", "404"),
    ("/none/", "404"),
    ("/about.html/", "404"),
    ("/f.txt/", "404"),
    // Never another host, whatever the name.
    ("//about.html", "308 /about"),
    ("///a//index.html", "308 /a/"),
    ("/%5Cevil.html", "308 /%5Cevil"),
    ("/\\evil.html", "308 /%5Cevil"),
    ("/a%20b%3F%23%c3%a9.html", "308 /a%20b%3F%23%C3%A9"),
    ("/a%20b%3F%23%C3%A9", "odd"),
    ("/abou%74.htm%6c", "308 /about"),
    ("http://elsewhere/about.html", "308 /about"),
];

#[test]
fn each_page_has_one_path() {
    for site in both(&options(&["index.html"], &[])) {
        files(&site);
        check(&site, TABLE);
    }
}

/// Follows every redirect of the table: each leads to a page on this host in one step.
#[test]
fn no_redirect_leads_to_another() {
    let site = Site::with(&options(&["index.html"], &[]));
    files(&site);
    let mut client = site.connect();
    let mut followed = 0;
    for (target, expected) in TABLE {
        if let Some((_, location)) = expected.split_once(" /") {
            let location = format!("/{location}");
            assert!(!location.starts_with("//"), "{location}");
            let response = client.request("GET", &location, &[]);
            assert_eq!(response.status, 200, "{target} redirects to {location}");
            followed += 1;
        }
    }
    assert!(followed > 15, "{followed}");
}

#[test]
fn the_first_index_alone_is_the_folder() {
    for site in both(&options(&["index.html", "home.html"], &[])) {
        site.file("a/home.html", "home").file("b/home.html", "home").file("b/index.html", "index");
        check(
            &site,
            &[
                ("/a/", "home"),
                ("/a/home.html", "308 /a/"),
                ("/a/home", "308 /a/"),
                ("/b/", "index"),
                ("/b/index.html", "308 /b/"),
                // The folder's response would be another file.
                ("/b/home.html", "home"),
                ("/b/home", "home"),
            ],
        );
    }
}

#[test]
fn a_list_of_candidates_is_kept_to() {
    for site in both(&options(&["index.html"], &["{path}", "/f.html"])) {
        site.file("f.html", "f").file("about.html", "about").file("a/index.html", "a");
        check(
            &site,
            &[
                ("/about", "about"),
                ("/about.html", "308 /about"),
                ("/f.html", "308 /f"),
                ("/f", "f"),
                ("/none", "f"),
                // The list has no folders, so an index has no other path.
                ("/a/", "f"),
                ("/a/index.html", "a"),
            ],
        );
    }
}

#[test]
fn a_page_has_its_conditions_ranges_and_siblings() {
    for site in both(&options(&["index.html"], &[])) {
        site.file("about.html", "0123456789").file("about.html.gz", "packed");
        let mut client = site.connect();
        for _ in 0..3 {
            let plain = client.request("GET", "/about", &[]);
            assert_eq!(plain.field("Content-Type"), Some("text/html; charset=utf-8"));
            let tag = format!("If-None-Match: {}", plain.field("ETag").expect("a tag"));
            assert_eq!(client.request("GET", "/about", &[&tag]).status, 304);
            let part = client.request("GET", "/about", &["Range: bytes=2-3"]);
            assert_eq!((part.status, part.text()), (206, "23"));
            assert_eq!(outcome(&mut client, "/about", &["Accept-Encoding: gzip"]), "packed");
            assert_eq!(outcome(&mut client, "/about.html", &["Accept-Encoding: gzip"]), "308 /about");
        }
    }
}
