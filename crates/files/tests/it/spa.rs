//! Fallback page for navigation requests of missing paths.

use shearwater_files::{FindOptions, FolderOptions};

use crate::finding::{both, check, outcome, strings};

fn options(spa: &str, clean_urls: bool) -> FolderOptions {
    let find = FindOptions { spa: Some(spa.to_owned()), clean_urls, ..FindOptions::default() };
    FolderOptions { find, ..FolderOptions::default() }
}

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[test]
fn who_navigates_gets_the_page() {
    for site in both(&options("/index.html", false)) {
        site.file("index.html", "app").file("a.js", "script").file("dir/f", "f");
        check(
            &site,
            &[
                ("/", "app"),
                ("/users/7", "app"),
                ("/users/7?tab=x.js", "app"),
                ("/users/", "app"),
                ("/v1.2/users", "app"),
                ("/dir", "301 /dir/"),
                ("/dir/", "app"),
                ("/a.js", "script"),
                ("/b.js", "404"),
                ("/users/7.html", "404"),
                ("/.hidden", "404"),
                ("/.env", "404"),
                ("/../x", "400"),
            ],
        );
        let mut client = site.connect();
        for _ in 0..3 {
            for (target, fields, expected) in [
                ("/v1.2", &[BROWSER][..], "app"),
                ("/v1.2", &[], "404"),
                ("/v1.2", &["Accept: */*"], "404"),
                ("/v1.2", &["Accept: image/*"], "404"),
                ("/v1.2", &["Accept: text/html;q=0"], "404"),
                ("/b.js", &["Accept: */*", "Accept: text/html"], "app"),
                ("/users", &["Accept: image/png"], "app"),
                ("/.env", &[BROWSER], "404"),
            ] {
                assert_eq!(outcome(&mut client, target, fields), expected, "{target} {fields:?}");
            }
        }
        let head = client.request("HEAD", "/users/7", &[]);
        assert_eq!((head.status, head.field("Content-Length")), (200, Some("3")));
        assert_eq!(client.request("POST", "/users/7", &[]).status, 405);
    }
}

/// Responses that depend on `Accept` have `Vary`.
#[test]
fn responses_by_accept_vary() {
    for site in both(&options("/index.html", false)) {
        site.file("index.html", "app");
        let mut client = site.connect();
        for _ in 0..3 {
            for (target, fields, vary) in [
                ("/v1.2", &[BROWSER][..], Some("Accept")),
                ("/v1.2", &[], Some("Accept")),
                ("/users", &[BROWSER], None),
                ("/index.html", &[BROWSER], None),
            ] {
                assert_eq!(client.request("GET", target, fields).field("Vary"), vary, "{target} {fields:?}");
            }
        }
    }
}

#[test]
fn the_page_has_its_conditions_and_siblings() {
    for site in both(&options("/app/index.html", true)) {
        site.file("app/index.html", "app").file("app/index.html.br", "packed").file("about.html", "about");
        let mut client = site.connect();
        for _ in 0..3 {
            let plain = client.request("GET", "/users/7", &[]);
            let tag = format!("If-None-Match: {}", plain.field("ETag").expect("a tag"));
            assert_eq!(client.request("GET", "/users/8", &[&tag]).status, 304);
            assert_eq!(outcome(&mut client, "/users/7", &["Accept-Encoding: br"]), "packed");
            assert_eq!(client.request("GET", "/users/7", &["If-Match: \"x\""]).status, 412);
        }
        check(
            &site,
            &[
                ("/users", "app"),
                ("/about/", "308 /about"),
                ("/app/index.html", "308 /app/"),
                ("/app", "301 /app/"),
                ("/app/", "app"),
            ],
        );
    }
}

#[test]
fn a_page_that_is_missing_is_a_404() {
    for site in both(&options("/none.html", false)) {
        site.file("f", "f");
        check(&site, &[("/users", "404"), ("/f", "f"), ("/", "404")]);
        site.file("none.html/x", "a folder");
        check(&site, &[("/users", "404")]);
    }
    for site in both(&options("/out.html", false)) {
        site.link("out.html", site.outside("canary"));
        check(&site, &[("/users", "403")]);
    }
}

#[test]
fn it_stands_behind_the_candidates() {
    let mut options = options("/app.html", false);
    options.find.try_files = strings(&["{path}", "{path}.html"]);
    for site in both(&options) {
        site.file("app.html", "app").file("about.html", "about");
        check(&site, &[("/about", "about"), ("/users", "app"), ("/b.js", "404")]);
    }
}
