//! Error pages: of the site, and built-in ones as text or HTML.

use std::fs;
use std::sync::{Arc, Mutex};

use shearwater::testing::Tested;
use shearwater::{App, Request, Response, Service, after};
use shearwater_files::{CacheLimits, Folder};
use shearwater_site::{Content, Options, Route, Site, SiteService, Sites};
use testkit::TestFolder;

use crate::served::{laid_out, on_each_driver, opened, page, route, site};

const PAGE: &str = "<!doctype html><title>own page</title>";

fn sites() -> Vec<Site> {
    let pages = vec![
        page(404, "/404.html"),
        page(403, "/errors/403.txt"),
        page(405, "/404.html"),
        page(416, "/none.html"),
    ];
    let own = vec![page(404, "/errors/404%20of%20a.json")];
    let routes = vec![
        Route { error_pages: own, ..route("/a/*") },
        Route { content: Some(Content::Files(1)), ..route("/two/*") },
    ];
    vec![Site { error_pages: pages, routes, ..site() }]
}

const FILES: [(&str, &str); 5] = [
    ("one/404.html", PAGE),
    ("one/errors/403.txt", "not for you"),
    ("one/errors/404 of a.json", "{}"),
    ("one/f.txt", "file"),
    ("two/404.html", "another folder's"),
];

#[test]
fn sends_pages_with_the_status_of_the_error() {
    on_each_driver(&FILES, &sites(), |served| {
        for target in ["/none", "/none/", "/x/y/z?q", "/f.txt/", "/a%2fb", "/two/none"] {
            let response = served.get(target, &[]);
            assert_eq!((response.status, response.text()), (404, PAGE), "{target}");
            assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
            for name in ["ETag", "Last-Modified", "Accept-Ranges", "Content-Range"] {
                assert_eq!(response.field(name), None, "{target} {name}");
            }
        }
        let page = served.get("/404.html", &[]);
        assert_eq!(
            (page.status, page.text()),
            (200, PAGE),
            "asked for by its own name it is a page as any other"
        );
        assert!(page.field("ETag").is_some());
        let response = served.get("/a/none", &[]);
        assert_eq!((response.status, response.text()), (404, "{}"));
        assert_eq!(response.field("Content-Type"), Some("application/json"));
    });
}

#[test]
fn pages_ignore_conditions_and_ranges() {
    on_each_driver(&FILES, &sites(), |served| {
        let etag = served.get("/404.html", &[]).field("ETag").expect("an entity tag").to_owned();
        let same = format!("If-None-Match: {etag}");
        for fields in
            [[same.as_str()], ["Range: bytes=0-3"], ["If-Match: \"x\""], ["Accept: application/json"]]
        {
            let response = served.get("/none", &fields);
            assert_eq!((response.status, response.text()), (404, PAGE), "{fields:?}");
        }
    });
}

#[test]
fn sends_pages_for_every_method() {
    on_each_driver(&FILES, &sites(), |served| {
        let mut client = served.connect();
        let head = client.request("HEAD", "/none", &[]);
        let len = PAGE.len().to_string();
        assert_eq!((head.status, head.field("Content-Length")), (404, Some(len.as_str())));
        let response = client.ask("POST", "/f.txt", &["Content-Length: 4"]).send("body").response("POST");
        assert_eq!((response.status, response.text()), (405, PAGE));
        assert_eq!(response.field("Allow"), Some("GET, HEAD, OPTIONS"), "what the error has to say is kept");
        assert_eq!(client.request("GET", "/f.txt", &[]).text(), "file");
    });
}

#[test]
fn sends_changed_pages_and_does_without_removed_ones() {
    on_each_driver(&FILES, &sites(), |served| {
        assert_eq!(served.get("/a/none", &[]).text(), "{}");
        let path = served.path("one/404.html");
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("a folder in its place");
        // It was never asked for: nothing is kept of it.
        let response = served.get("/none", &[]);
        assert_eq!((response.status, response.text()), (404, "Not Found\n"));
        let response = served.get("/f.txt", &["Range: bytes=9-"]);
        assert_eq!(response.status, 416, "its page was never there");
        assert_eq!(response.field("Content-Range"), Some("bytes */4"));
        assert_eq!(response.text(), "The file has none of the bytes that were asked for.\n");
    });
}

#[test]
fn sends_built_in_pages_to_browsers_and_text_to_others() {
    const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    on_each_driver(&[("one/f.txt", "file")], &[site()], |served| {
        for (target, fields, status, text, title) in [
            ("/none", &[][..], 404, "Not Found\n", "404 Not Found"),
            ("/f.txt/../b", &[], 404, "Not Found\n", "404 Not Found"),
            (
                "/f.txt",
                &["If-Match: \"x\""],
                412,
                "The file is another version than the one asked for.\n",
                "412 Precondition Failed",
            ),
        ] {
            for accept in ["Accept: */*", "Accept: text/html;q=0, */*", "X: y"] {
                let response = served.get(target, &[fields, &[accept]].concat());
                assert_eq!((response.status, response.text()), (status, text), "{target} {accept}");
                assert_eq!(response.field("Vary"), Some("Accept"));
                assert_eq!(response.field("Content-Type"), Some("text/plain; charset=utf-8"));
            }
            let response = served.get(target, &[fields, &[BROWSER]].concat());
            assert_eq!(response.status, status);
            assert!(response.text().contains(&format!("<title>{title}</title>")), "{}", response.text());
            assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
            assert_eq!(response.field("Vary"), Some("Accept"));
            let head = served.connect().request("HEAD", target, &[fields, &[BROWSER]].concat());
            assert_eq!(head.field("Content-Length"), Some(response.body.len().to_string().as_str()));
        }
    });
}

#[test]
fn malformed_requests_get_no_page_of_the_site() {
    on_each_driver(&FILES, &[Site { error_pages: vec![page(400, "/404.html")], ..site() }], |served| {
        let mut client = served.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
        let response = client.response("GET");
        assert_eq!(response.status, 400);
        assert!(!response.text().contains("own page"), "{}", response.text());
        // Neither does a path that leaves the root, wherever it would lead.
        let above = served.get("/../f.txt", &[]);
        assert_eq!(above.status, 400);
        assert!(!above.text().contains("own page"), "{}", above.text());
        // HTTP/2 has no such field.
        assert_eq!(above.field("Connection"), Some("close").filter(|_| !testkit::http2::is_on()));
    });
}

/// Sets a field around a site.
struct Wrapped(SiteService);

impl Service for Wrapped {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        self.0.respond(request, response);
        response.field("X-Policy", "1");
    }
}

/// A page keeps few fields of its error, but all of what surrounds the site.
#[test]
fn a_field_set_around_a_site_is_in_each_response() {
    for is_slow in [false, true] {
        let folder = TestFolder::new();
        folder.file("404.html", "page").file("a.txt", "a");
        let opened = Folder::open(&folder.at(".")).expect("a folder");
        let opened = if is_slow { opened.with_slow_disk(|_| ()) } else { opened };
        let site =
            Site { content: Content::Files(0), error_pages: vec![page(404, "/404.html")], ..Site::default() };
        let options = Options { folders: vec![opened], cache: CacheLimits::default(), sites: vec![site] };
        let sites = Sites::new(options).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let app = App::new().mount("/", move |_| Wrapped(sites.service()));
        let mut tested = Tested::new(app).expect("valid routes");
        for (target, text) in [("/none", "page"), ("/a.txt", "a"), ("/none", "page"), ("/404.html", "page")] {
            let response = tested.get(target);
            assert_eq!(
                (response.text(), response.field("X-Policy")),
                (text, Some("1")),
                "{is_slow} {target}"
            );
        }
    }
}

/// The statuses that a step has seen, with the number of calls of the sites before it.
type Seen = Arc<Mutex<(usize, Vec<(usize, u16)>)>>;

/// Counts calls of sites.
struct Counted(SiteService, Seen);

impl Service for Counted {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        self.1.lock().expect("no panic").0 += 1;
        self.0.respond(request, response);
    }
}

/// Mounts sites behind a step, on a simulated clock.
fn counted_app(sites: Sites, seen: &Seen) -> Tested {
    let (seeing, counting) = (Arc::clone(seen), Arc::clone(seen));
    let note = move |_: &Request, response: &mut Response| {
        let status = response.status_code();
        response.field("X-After", status.to_string());
        let mut seen = seeing.lock().expect("no panic");
        let calls = std::mem::take(&mut seen.0);
        seen.1.push((calls, status));
    };
    let mount = move |_: usize| Counted(sites.service(), Arc::clone(&counting));
    let app = App::new().with(after(note)).mount("/", mount);
    Tested::new(app).expect("valid routes")
}

#[test]
fn steps_see_pages_once_from_each_disk() {
    let folder = laid_out(&FILES);
    let sent = [false, true].map(|is_slow| {
        let seen = Seen::default();
        let mut tested = counted_app(opened(&folder, is_slow, &sites()), &seen);
        let mut sent = Vec::new();
        for (method, target, field, status, text) in [
            ("GET", "/f.txt", "X: y", 200, "file"),
            ("GET", "/404.html", "X: y", 200, PAGE),
            ("GET", "/none", "X: y", 404, PAGE),
            ("HEAD", "/none", "X: y", 404, ""),
            ("GET", "/a/none", "X: y", 404, "{}"),
            ("GET", "/two/none", "X: y", 404, PAGE),
            ("POST", "/f.txt", "X: y", 405, PAGE),
            ("GET", "/f.txt", "If-None-Match: *", 304, ""),
            (
                "GET",
                "/f.txt",
                "If-Match: \"x\"",
                412,
                "The file is another version than the one asked for.\n",
            ),
            // Its page is missing.
            (
                "GET",
                "/f.txt",
                "Range: bytes=9-",
                416,
                "The file has none of the bytes that were asked for.\n",
            ),
        ] {
            // Twice: the second may be cached.
            for round in 0..2 {
                let mut client = tested.connect();
                client.send(format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n\r\n"));
                tested.settle_offloaded();
                let bytes = String::from_utf8_lossy(client.unread()).into_owned();
                let seen = std::mem::take(&mut seen.lock().expect("no panic").1);
                assert_eq!(seen, [(1, status)], "{method} {target} {field} {is_slow} {round}: {bytes}");
                assert!(bytes.starts_with(&format!("HTTP/1.1 {status} ")), "{target} {field}: {bytes}");
                assert!(bytes.contains(&format!("X-After: {status}\r\n")), "{target} {field}: {bytes}");
                assert!(bytes.ends_with(&format!("\r\n\r\n{text}")), "{target} {field}: {bytes}");
                let lines = bytes.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: "));
                sent.push(lines.collect::<String>());
            }
        }
        sent
    });
    assert_eq!(sent[0], sent[1]);
}
