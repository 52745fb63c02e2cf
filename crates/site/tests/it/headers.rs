//! Headers that a site and its routes set and remove, in each kind of response.

use shearwater_site::{Route, Site};

use crate::served::{SitesServer, headers, on_each_driver, redirect, route, says, site};

fn sites() -> Vec<Site> {
    vec![Site {
        headers: headers(
            &[
                ("X-Frame-Options", "DENY"),
                ("Cache-Control", "no-cache"),
                ("Content-Language", "en"),
                ("Vary", "Origin"),
            ],
            &["Last-Modified", "Expires"],
        ),
        redirects: vec![redirect("/moved", "/f.txt", 308)],
        routes: vec![
            Route {
                headers: headers(
                    &[
                        ("cache-control", "max-age=60"),
                        ("Accept-Ranges", "none"),
                        ("X-Route", "r"),
                        ("Server", "S/1"),
                    ],
                    &["x-frame-options"],
                ),
                ..route("/a/*")
            },
            Route { headers: headers(&[("Expires", "never")], &["Server", "ETag"]), ..route("/b/*") },
            says("/fixed", "fixed"),
        ],
        ..site()
    }]
}

const FILES: [(&str, &str); 4] = [
    ("one/f.txt", "file"),
    ("one/a/f.txt", "file of a"),
    ("one/b/f.txt", "file of b"),
    ("one/b/f.txt.br", "\u{c}packed"),
];

/// Returns the head of the response to a request, and closes the connection.
fn head(served: &SitesServer, line: &str, fields: &str) -> String {
    let mut client = served.connect();
    client.send(format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n"));
    let text = String::from_utf8(client.rest()).expect("text");
    text[..text.find("\r\n\r\n").expect("a head") + 2].to_owned()
}

#[track_caller]
fn assert_fields(head: &str, there: &[&str], not_there: &[&str]) {
    for line in there {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} is missing:\n{head}");
    }
    for name in not_there {
        assert!(
            !head.to_lowercase().contains(&format!("\r\n{}:", name.to_lowercase())),
            "{name} is there:\n{head}"
        );
    }
}

#[test]
fn sets_headers_on_every_response() {
    on_each_driver(&FILES, &sites(), |served| {
        let file = head(served, "GET /f.txt", "");
        assert!(file.starts_with("HTTP/1.1 200 OK\r\nServer: shearwater\r\nDate: "), "{file}");
        let own = ["X-Frame-Options: DENY", "Vary: Origin"];
        let all = [own[0], own[1], "Cache-Control: no-cache", "Content-Language: en"];
        assert_fields(&file, &all, &["Last-Modified"]);
        assert_fields(&file, &["Content-Type: text/plain; charset=utf-8", "Content-Length: 4"], &[]);
        assert_fields(&head(served, "GET /fixed", ""), &all, &["Last-Modified"]);
        assert_fields(&head(served, "HEAD /f.txt", ""), &all, &["Last-Modified"]);
        assert_fields(&head(served, "GET /f.txt", "Range: bytes=0-1\r\n"), &all, &["Last-Modified"]);
        let etag = file.lines().find_map(|line| line.strip_prefix("ETag: ")).expect("an entity tag");
        let unchanged = head(served, "GET /f.txt", &format!("If-None-Match: {etag}\r\n"));
        assert!(unchanged.starts_with("HTTP/1.1 304 "), "{unchanged}");
        assert_fields(&unchanged, &all, &["Last-Modified"]);
    });
}

#[test]
fn errors_have_no_caching_headers_and_redirects_no_language() {
    on_each_driver(&FILES, &sites(), |served| {
        let own = ["X-Frame-Options: DENY", "Vary: Origin"];
        for (line, fields, status) in [
            ("GET /none", "", 404),
            ("GET /none", "Accept: text/html\r\n", 404),
            ("POST /f.txt", "Content-Length: 0\r\n", 405),
            ("GET /%zz", "", 404),
            ("GET /f.txt", "If-Match: \"x\"\r\n", 412),
            ("GET /f.txt", "Range: bytes=9-\r\n", 416),
        ] {
            let head = head(served, line, fields);
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            assert_fields(&head, &own, &["Cache-Control", "Content-Language", "Last-Modified"]);
        }
        let moved = head(served, "GET /moved", "");
        assert_fields(&moved, &own, &["Content-Language"]);
        assert_fields(&moved, &["Cache-Control: no-cache", "Location: /f.txt"], &[]);
    });
}

#[test]
fn headers_of_a_route_override_those_of_its_site() {
    on_each_driver(&FILES, &sites(), |served| {
        let file = head(served, "GET /a/f.txt", "");
        let there = [
            "Server: S/1",
            "cache-control: max-age=60",
            "Accept-Ranges: none",
            "X-Route: r",
            "Content-Language: en",
        ];
        assert_fields(&file, &there, &["X-Frame-Options", "Last-Modified"]);
        assert_eq!(
            file.matches("\r\nAccept-Ranges:").count() + file.matches("\r\ncache-control").count(),
            2,
            "{file}"
        );
        assert!(file.starts_with("HTTP/1.1 200 OK\r\nServer: S/1\r\nDate: "), "{file}");
        let missing = head(served, "GET /a/none", "");
        assert_fields(
            &missing,
            &["Server: S/1", "X-Route: r"],
            &["cache-control", "Accept-Ranges", "X-Frame-Options"],
        );
    });
}

#[test]
fn removes_headers_from_every_response() {
    on_each_driver(&FILES, &sites(), |served| {
        for (line, fields) in [
            ("GET /b/f.txt", ""),
            ("GET /b/f.txt", "Accept-Encoding: br\r\n"),
            ("GET /b/f.txt", "Range: bytes=0-1\r\n"),
            ("GET /b/f.txt", "If-None-Match: *\r\n"),
            ("GET /b/none", "Accept: text/html\r\n"),
        ] {
            let head = head(served, line, fields);
            assert_fields(&head, &["X-Frame-Options: DENY"], &["Server", "ETag"]);
            assert_eq!(
                head.matches("\r\nExpires: never\r\n").count(),
                usize::from(!line.contains("none")),
                "{head}"
            );
        }
    });
}

#[test]
fn headers_stay_with_their_route_on_a_connection() {
    on_each_driver(&FILES, &sites(), |served| {
        let mut client = served.connect();
        for _ in 0..3 {
            let plain = client.request("GET", "/f.txt", &[]);
            assert_eq!((plain.field("X-Frame-Options"), plain.field("X-Route")), (Some("DENY"), None));
            let fixed = client.request("GET", "/fixed", &[]);
            assert_eq!((fixed.field("X-Frame-Options"), fixed.text()), (Some("DENY"), "fixed"));
        }
        client.end_sending().is_ended();
    });
}
