//! A busy server of sites allocates nothing in 10,000 requests for cached files, redirects, fixed responses and error pages. A binary of
//! its own, since the counter replaces the allocator of the process.

#[path = "../../files/tests/steady/mod.rs"]
mod steady;

use std::io::Write;

use shearwater_files::{CacheLimits, Folder};
use shearwater_site::{Content, ErrorPage, Fixed, Headers, Options, Redirect, Route, Site, Sites};
use testkit::TestFolder;

use crate::steady::{SteadyLoad, assert_no_calls};

const FILES: usize = 16;
const FILE_BYTES: usize = 1024;

/// Paths and statuses. Most routes are cached, those beyond `CACHED_ROUTES_MAX` are looked up.
const ASKED: [(&str, &str); 8] = [
    ("/", "HTTP/1.1 200"),
    ("/assets/", "HTTP/1.1 200"),
    ("/%61ssets//", "HTTP/1.1 200"),
    ("/old/", "HTTP/1.1 308"),
    ("/health?", "HTTP/1.1 200"),
    ("/closed/", "HTTP/1.1 403"),
    ("/gone/", "HTTP/1.1 410"),
    ("/none/../closed/", "HTTP/1.1 403"),
];

/// Hosts: one of the site's own, one beneath a star, the default's.
const HOSTS: [&str; 4] = ["example.org", "WWW.Example.org:8080", "a.b.example.org.", "other.example"];

/// Requests of which no two heads are alike. All have the same length: a buffer that has held one holds all.
const LOAD: SteadyLoad = SteadyLoad {
    write: |head, number| {
        let (path, host, own) = (
            ASKED[number % ASKED.len()].0,
            HOSTS[number / ASKED.len() % HOSTS.len()],
            1_000_000 + number * 7,
        );
        // Fixed responses get new paths every time.
        let (file, page) = match path {
            "/" | "/assets/" | "/%61ssets//" => (number / 64 % FILES, ".txt"),
            _ => (own, ""),
        };
        let accept = if number.is_multiple_of(2) { "text/html,*/*;q=0.8" } else { "*/*" };
        if path.ends_with('?') {
            write!(head, "GET {path}{own} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n")
        } else {
            write!(head, "GET {path}{file}{page} HTTP/1.1\r\nX-Own: {own}\r\n")?;
            write!(head, "Host: {host}\r\nAccept: {accept}\r\n\r\n")
        }
    },
    check: |response, number| {
        let (path, status) = ASKED[number % ASKED.len()];
        assert!(response.starts_with(status.as_bytes()), "{path}: {}", String::from_utf8_lossy(response));
        let has = |line: &[u8]| response.windows(line.len()).any(|window| window == line);
        assert!(has(b"\r\nX-Frame-Options: DENY\r\n") && !has(b"\r\nLast-Modified:"));
    },
};

fn sites(folder: Folder) -> Sites {
    let route = |path: &str| Route { path: path.to_owned(), ..Route::default() };
    let fixed = |path: &str, status, text: &str| {
        let response = Fixed { status, media_type: "text/plain".to_owned(), body: text.into() };
        Route { content: Some(Content::Fixed(response)), ..route(path) }
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let set =
        vec![pair("X-Frame-Options", "DENY"), pair("Referrer-Policy", "same-origin"), pair("Server", "s")];
    let site = Site {
        hosts: vec!["example.org".to_owned(), "*.example.org".to_owned()],
        content: Content::Files(0),
        headers: Headers { set, remove: vec!["Last-Modified".to_owned()] },
        error_pages: vec![ErrorPage { status: 403, path: "/403.html".to_owned() }],
        redirects: vec![Redirect { from: "/old/*".to_owned(), to: "/new/{rest}".to_owned(), status: 308 }],
        routes: vec![
            route("/assets/*"),
            fixed("/health", 200, "up"),
            fixed("/closed/*", 403, ""),
            fixed("/gone/*", 410, ""),
        ],
        ..Site::default()
    };
    let default = Site { hosts: Vec::new(), ..site.clone() };
    let options =
        Options { folders: vec![folder], cache: CacheLimits::default(), sites: vec![site, default] };
    Sites::new(options).expect("sites")
}

#[test]
fn ten_thousand_requests_allocate_nothing() {
    let folder = TestFolder::new();
    for file in 0..FILES {
        folder.file(format!("{file}.txt"), [b'x'; FILE_BYTES]);
        folder.file(format!("assets/{file}.txt"), [b'y'; FILE_BYTES]);
    }
    folder.file("403.html", [b'z'; FILE_BYTES]);
    assert_no_calls(|path| sites(Folder::open(path).expect("a folder")).service(), folder.path(), &LOAD);
}
