//! Pages: without their extension, as a fallback for navigation, and as pages of other statuses.

use shearwater::testing::Tested;
use shearwater::{App, Response, Service};
use shearwater_files::{CacheLimits, CacheRule, FileMatch, Files, FindOptions, Folder, FolderOptions};
use testkit::TestFolder;

use crate::finding::{both, check, outcome, strings};
use crate::site::TestSite;

fn options(index: &[&str], try_files: &[&str]) -> FolderOptions {
    let find = FindOptions {
        index: strings(index),
        try_files: strings(try_files),
        clean_urls: true,
        ..FindOptions::default()
    };
    FolderOptions { find, ..FolderOptions::default() }
}

fn files(site: &TestSite) {
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
        // Each redirect leads to a page on this host in one step.
        let mut client = site.connect();
        let locations: Vec<&str> =
            TABLE.iter().filter_map(|(_, expected)| expected.split_once(' ')?.1.strip_prefix('/')).collect();
        assert!(locations.len() > 15, "{locations:?}");
        for location in locations {
            assert!(!location.starts_with('/'), "{location}");
            assert_eq!(client.get(&format!("/{location}")).status, 200, "{location}");
        }
    }
}

#[test]
fn only_the_first_index_is_the_folder() {
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
fn clean_urls_keep_to_the_candidates() {
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
fn pages_support_preconditions_ranges_and_siblings() {
    for site in both(&options(&["index.html"], &[])) {
        site.file("about.html", "0123456789").file("about.html.br", "\u{c}packed");
        let mut client = site.connect();
        for _ in 0..3 {
            let plain = client.get("/about");
            assert_eq!(plain.field("Content-Type"), Some("text/html; charset=utf-8"));
            let tag = format!("If-None-Match: {}", plain.field("ETag").expect("a tag"));
            assert_eq!(client.request("GET", "/about", &[&tag]).status, 304);
            let part = client.request("GET", "/about", &["Range: bytes=2-3"]);
            assert_eq!((part.status, part.text()), (206, "23"));
            assert_eq!(outcome(&mut client, "/about", &["Accept-Encoding: br"]), "\u{c}packed");
            assert_eq!(outcome(&mut client, "/about.html", &["Accept-Encoding: br"]), "308 /about");
        }
    }
}

fn fallback(spa: &str, clean_urls: bool) -> FolderOptions {
    let find = FindOptions { spa: Some(spa.to_owned()), clean_urls, ..FindOptions::default() };
    FolderOptions { find, ..FolderOptions::default() }
}

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[test]
fn navigation_requests_get_the_fallback() {
    for site in both(&fallback("/index.html", false)) {
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
                ("/x/../a.js", "script"),
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
    for site in both(&fallback("/index.html", false)) {
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
fn fallback_supports_preconditions_and_siblings() {
    for site in both(&fallback("/app/index.html", true)) {
        site.file("app/index.html", "app")
            .file("app/index.html.br", "\u{c}packed")
            .file("about.html", "about");
        let mut client = site.connect();
        for _ in 0..3 {
            let plain = client.get("/users/7");
            let tag = format!("If-None-Match: {}", plain.field("ETag").expect("a tag"));
            assert_eq!(client.request("GET", "/users/8", &[&tag]).status, 304);
            assert_eq!(outcome(&mut client, "/users/7", &["Accept-Encoding: br"]), "\u{c}packed");
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
fn missing_fallback_is_not_found() {
    for site in both(&fallback("/none.html", false)) {
        site.file("f", "f");
        check(&site, &[("/users", "404"), ("/f", "f"), ("/", "404")]);
        site.file("none.html/x", "a folder");
        check(&site, &[("/users", "404")]);
    }
    for site in both(&fallback("/out.html", false)) {
        site.link("out.html", site.outside("canary"));
        check(&site, &[("/users", "403")]);
    }
}

#[test]
fn fallback_follows_the_candidates() {
    let mut options = fallback("/app.html", false);
    options.find.try_files = strings(&["{path}", "{path}.html"]);
    for site in both(&options) {
        site.file("app.html", "app").file("about.html", "about");
        check(&site, &[("/about", "about"), ("/users", "app"), ("/b.js", "404")]);
    }
}

/// Responds to `/STATUS/PATH` with `/PATH` as the page of `STATUS`.
struct StatusPages(Files);

impl Service for StatusPages {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        let (status, path) = request.path()[1..].split_once('/').expect("a status and a path");
        let status = status.parse().expect("a status");
        self.0.respond_page(&format!("/{path}"), status, request, response, |_, response| {
            response.status(500).text("no page\n");
        });
    }
}

fn sites() -> [TestSite; 2] {
    let rule = CacheRule { files: FileMatch::Path("/*".into()), value: "immutable".into() };
    let options = FolderOptions { cache_control: vec![rule], ..FolderOptions::default() };
    [CacheLimits::none(), CacheLimits::default()].map(|cache| TestSite::of(&options, cache, StatusPages))
}

#[test]
fn status_pages_have_no_validators_of_the_file() {
    for site in sites() {
        site.file("404.html", "missing").file("404.html.br", "\u{c}packed").file(".pages/500", "hidden");
        site.file("large.html", vec![b'x'; 100_000]);
        let mut client = site.connect();
        let tag = "If-None-Match: *";
        for _ in 0..3 {
            for (target, fields, status, body, coding) in [
                ("/404/404.html", &[][..], 404, "missing", None),
                ("/410/404.html", &["Accept-Encoding: br"], 410, "\u{c}packed", Some("br")),
                ("/404/404.html", &["Range: bytes=0-1", tag, "If-Match: \"x\""], 404, "missing", None),
                ("/503/.pages/500", &[], 503, "hidden", None),
            ] {
                let response = client.request("GET", target, fields);
                assert_eq!((response.status, response.text()), (status, body), "{target} {fields:?}");
                assert_eq!(response.field("Content-Encoding"), coding);
                for name in ["ETag", "Last-Modified", "Accept-Ranges", "Cache-Control", "Content-Range"] {
                    assert_eq!(response.field(name), None, "{target} {name}");
                }
                let varies = target.ends_with("404.html").then_some("Accept-Encoding");
                assert_eq!(response.field("Vary"), varies);
            }
            let response = client.request("HEAD", "/404/404.html", &[]);
            assert_eq!((response.status, response.field("Content-Length")), (404, Some("7")));
            assert_eq!(client.request("POST", "/405/404.html", &[]).text(), "missing");
            let response = client.get("/404/large.html");
            assert_eq!((response.status, response.body.len()), (404, 100_000));
            assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
        }
    }
}

#[test]
fn missing_status_page_leaves_the_response_unchanged() {
    for site in sites() {
        site.file("dir/x", "x").link("out", site.outside("canary"));
        for target in ["/404/none.html", "/404/dir", "/404/dir/", "/404/", "/404/out", "/404/x/../out"] {
            let response = site.connect().get(target);
            assert_eq!(
                (response.status, response.text(), response.fields.len()),
                (500, "no page\n", 4),
                "{target}"
            );
        }
    }
}

#[test]
fn serves_a_replaced_status_page() {
    let [site, _] = sites();
    site.file("404.html", "one");
    let mut client = site.connect();
    assert_eq!(client.get("/404/404.html").text(), "one");
    site.replace("404.html", "two");
    assert_eq!(client.get("/404/404.html").text(), "two");
}

/// Has another page of the folder in place of a missing one.
struct OtherPage(Files);

impl Service for OtherPage {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        let files = self.0.clone();
        self.0.respond_page("/none.html", 404, request, response, move |request, response| {
            files.respond_page("/404.html", 404, request, response, |_, response| {
                response.status(500).text("no page\n");
            });
        });
    }
}

#[test]
fn a_page_in_place_of_a_missing_one_may_be_of_the_same_folder() {
    for is_slow in [false, true] {
        let folder = TestFolder::new();
        folder.file("404.html", "page");
        let opened = Folder::open(&folder.at(".")).expect("a folder");
        let opened = if is_slow { opened.with_slow_disk(|_| ()) } else { opened };
        let app = App::new().mount("/", move |_| OtherPage(opened.files()));
        let response = Tested::new(app).expect("valid routes").get("/");
        assert_eq!((response.status, response.text()), (404, "page"), "{is_slow}");
    }
}
