//! Names of files, decoded once and with any bytes; folders with their index and their trailing slash.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use shearwater_files::{FolderOptions, Hidden};

use crate::site::TestSite;

#[test]
fn decodes_names_once() {
    let site = TestSite::new();
    for name in [
        "a b.txt",
        "a+b.txt",
        "ü/你.txt",
        "%41.txt",
        "A.txt",
        "a?b.txt",
        "a#b.txt",
        "back\\slash",
        "a;b=c",
        "~",
        "%41%2.txt",
        "100%",
    ] {
        site.file(name, name);
    }
    site.file(OsStr::from_bytes(b"\xff\xc0\xae"), "no text");
    for (target, content) in [
        ("/a%20b.txt", "a b.txt"),
        ("/a+b.txt", "a+b.txt"),
        ("/a%2Bb.txt", "a+b.txt"),
        ("/%C3%BC/%e4%bd%a0.txt", "ü/你.txt"),
        ("/%2541.txt", "%41.txt"),
        ("/%41.txt", "A.txt"),
        ("/a%3Fb.txt", "a?b.txt"),
        ("/a%23b.txt", "a#b.txt"),
        ("/back%5Cslash", "back\\slash"),
        ("/a;b=c", "a;b=c"),
        ("/%7e", "~"),
        ("/%FF%c0%AE", "no text"),
        ("/A.txt?a%zz", "A.txt"),
        ("/./A.txt", "A.txt"),
        ("/none/x/%2e%2E/.%2e/A.txt?/../x", "A.txt"),
        ("/\u{fc}/\u{4f60}.txt", "ü/你.txt"),
        ("/%2541%2.txt", "%41%2.txt"),
        ("/100%", "100%"),
    ] {
        assert_eq!(site.get(target), (200, content.as_bytes().to_vec()), "{target}");
    }
    for (target, status) in
        [("/a%2520b.txt", 404), ("/a%00b.txt", 404), ("/%C3%BC%2F%e4%bd%a0.txt", 404), ("/a%2.txt", 404)]
    {
        assert_eq!(site.status(target), status, "{target}");
    }
}

/// A query isn't part of the name (RFC 3986 section 3.4), and isn't decoded.
#[test]
fn ignores_the_query() {
    for site in [TestSite::new(), TestSite::cached()] {
        site.file("f.txt", "file").file("f.txt?v=1", "another").file("a/index.html", "index");
        let mut client = site.connect();
        let plain = client.get("/f.txt");
        let tag = plain.field("ETag").expect("a tag").to_owned();
        for query in
            ["?", "?v=1", "?v=1&w=2", "??", "?/../x", "?a/b", "?%", "?%zz", "?%2e%2e%2f", "?%00", "?\\"]
        {
            let response = client.get(&format!("/f.txt{query}"));
            assert_eq!((response.status, response.text()), (200, "file"), "{query}");
            assert_eq!(response.field("ETag"), Some(tag.as_str()), "{query}");
            assert_eq!(site.get(&format!("/a/{query}")), (200, b"index".to_vec()), "{query}");
            assert_eq!(site.status(&format!("/none{query}")), 404, "{query}");
        }
        assert_eq!(site.get("/f.txt%3Fv=1?v=1"), (200, b"another".to_vec()));
        assert_eq!(site.status("/f.txt%3F"), 404);
        let part = client.request("GET", "/f.txt?v=1", &["Range: bytes=1-2"]);
        assert_eq!((part.status, part.text()), (206, "il"));
    }
}

#[test]
fn serves_hidden_names_only_when_enabled() {
    for (hidden, status) in [(Hidden::Deny, 404), (Hidden::Serve, 200)] {
        let site = TestSite::with(&FolderOptions { hidden, ..FolderOptions::default() });
        site.file(".well-known/security.txt", "contact").file(".well-known/.x", "x").file("a/.b", "hidden");
        site.file("...", "dots").file(".git/config", "config").file(".d/index.html", "index");
        assert_eq!(site.get("/.well-known/security.txt"), (200, b"contact".to_vec()));
        for target in
            ["/a/.b", "/...", "/.git/config", "/%2egit/config", "/.well-known/.x", "/.d/", "/a/%2Eb"]
        {
            assert_eq!(site.status(target), status, "{target} {hidden:?}");
        }
        assert_eq!(site.status("/.d"), if status == 200 { 301 } else { 404 });
        assert_eq!([site.status("/.none"), site.status("/a/.././a/.b")], [404, status]);
    }
}

#[test]
fn serves_names_up_to_the_limit_of_the_file_system() {
    let site = TestSite::new();
    let longest = "n".repeat(255);
    site.file(&longest, "longest");
    assert_eq!(site.get(&format!("/{longest}")), (200, b"longest".to_vec()));
    assert_eq!(site.status(&format!("/{longest}n")), 404);
    assert_eq!(site.status(&format!("/{}", "%6e".repeat(256))), 404);
    assert_eq!(site.status(&format!("/{}", "d/".repeat(3000))), 404);
}

#[test]
fn case_sensitivity_is_that_of_the_file_system() {
    let site = TestSite::new();
    site.file("Mixed.txt", "mixed");
    let same = site.at("mixed.TXT").exists();
    assert_eq!(site.status("/mixed.TXT"), if same { 200 } else { 404 });
    assert_eq!(site.status("/Mixed.txt"), 200);
}

#[test]
fn serves_the_index_of_a_folder() {
    let site = TestSite::new();
    site.file("index.html", "top").file("a/index.html", "a").file("a/b c/index.html", "b c");
    for (target, body) in [
        ("/", "top"),
        ("/?query", "top"),
        ("/index.html", "top"),
        ("/a/", "a"),
        ("/a/?x=/y", "a"),
        ("/a/index.html", "a"),
        ("//", "top"),
        ("//a//", "a"),
        ("/a/b%20c/", "b c"),
    ] {
        assert_eq!(site.get(target), (200, body.as_bytes().to_vec()), "{target}");
    }
}

#[test]
fn redirects_a_folder_to_its_trailing_slash() {
    let site = TestSite::new();
    site.file("a/b c/index.html", "there")
        .file("\\evil/index.html", "there")
        .file("back\\slash/index.html", "there")
        .link("link", "a/b c");
    for (target, location) in [
        ("/a", "/a/"),
        ("/a?x=1&y=/z?", "/a/?x=1&y=/z?"),
        ("/a?", "/a/?"),
        ("/a/b%20c", "/a/b%20c/"),
        ("/%61", "/%61/"),
        ("//a", "/a/"),
        ("////a", "/a/"),
        ("/link", "/link/"),
        ("/back%5Cslash", "/back%5Cslash/"),
        ("/\\evil", "/%5Cevil/"),
        ("http://elsewhere/a", "/a/"),
    ] {
        let response = site.connect().get(&testkit::tls::target(target));
        assert_eq!((response.status, response.field("Location")), (301, Some(location)), "{target}");
    }
    let response = site.connect().get("/link/");
    assert_eq!((response.status, response.text()), (200, "there"));
}

#[test]
fn file_with_a_trailing_slash_is_not_found() {
    let site = TestSite::new();
    site.file("f.txt", "file").file("a/index.html", "index");
    for target in ["/f.txt/", "/f.txt//", "/f.txt/x", "/a/index.html/", "/f.txt/?x"] {
        assert_eq!(site.status(target), 404, "{target}");
    }
}

#[test]
fn index_that_is_a_folder_is_not_found() {
    let site = TestSite::new();
    site.file("a/index.html/index.html", "deep").file("index.html/f", "file");
    for target in ["/", "/a/"] {
        let response = site.connect().get(target);
        assert_eq!((response.status, response.field("Location")), (404, None), "{target}");
    }
    assert_eq!(site.get("/a/index.html/"), (200, b"deep".to_vec()));
    assert_eq!(site.status("/a/index.html"), 301);
}
