//! Errors: with the page of their status, else with a line of text, or a small page to who asks for HTML.

use std::fs;

use shearwater_site::{Content, Route, Site};

use crate::served::{on_each_driver, page, route, site};

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
fn the_status_stays_and_the_page_is_the_sites() {
    on_each_driver(&FILES, &sites(), |served| {
        for target in ["/none", "/none/", "/x/y/z?q", "/f.txt/", "/a%2fb", "/two/none"] {
            let answer = served.get(target, &[]);
            assert_eq!((answer.status, answer.text()), (404, PAGE), "{target}");
            assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
            for name in ["ETag", "Last-Modified", "Accept-Ranges", "Content-Range"] {
                assert_eq!(answer.field(name), None, "{target} {name}");
            }
        }
        let page = served.get("/404.html", &[]);
        assert_eq!(
            (page.status, page.text()),
            (200, PAGE),
            "asked for by its own name it is a page as any other"
        );
        assert!(page.field("ETag").is_some());
        let answer = served.get("/a/none", &[]);
        assert_eq!((answer.status, answer.text()), (404, "{}"));
        assert_eq!(answer.field("Content-Type"), Some("application/json"));
    });
}

#[test]
fn what_the_client_asks_of_a_file_is_not_asked_of_the_page() {
    on_each_driver(&FILES, &sites(), |served| {
        let etag = served.get("/404.html", &[]).field("ETag").expect("an entity tag").to_owned();
        let same = format!("If-None-Match: {etag}");
        for fields in
            [[same.as_str()], ["Range: bytes=0-3"], ["If-Match: \"x\""], ["Accept: application/json"]]
        {
            let answer = served.get("/none", &fields);
            assert_eq!((answer.status, answer.text()), (404, PAGE), "{fields:?}");
        }
    });
}

#[test]
fn whatever_the_method_and_without_a_body_for_head() {
    on_each_driver(&FILES, &sites(), |served| {
        let mut client = served.connect();
        let head = client.request("HEAD", "/none", &[]);
        let len = PAGE.len().to_string();
        assert_eq!((head.status, head.field("Content-Length")), (404, Some(len.as_str())));
        let answer = client.ask("POST", "/f.txt", &["Content-Length: 4"]).send("body").answer("POST");
        assert_eq!((answer.status, answer.text()), (405, PAGE));
        assert_eq!(answer.field("Allow"), Some("GET, HEAD, OPTIONS"), "what the error has to say is kept");
        assert_eq!(client.request("GET", "/f.txt", &[]).text(), "file");
    });
}

#[test]
fn a_page_that_is_changed_is_sent_as_it_is_now_and_one_that_is_gone_is_done_without() {
    on_each_driver(&FILES, &sites(), |served| {
        assert_eq!(served.get("/a/none", &[]).text(), "{}");
        let path = served.path("one/404.html");
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("a folder in its place");
        // It was never asked for: nothing is kept of it.
        let answer = served.get("/none", &[]);
        assert_eq!((answer.status, answer.text()), (404, "Not Found\n"));
        let answer = served.get("/f.txt", &["Range: bytes=9-"]);
        assert_eq!(answer.status, 416, "its page was never there");
        assert_eq!(answer.field("Content-Range"), Some("bytes */4"));
        assert_eq!(answer.text(), "The file has none of the bytes that were asked for.\n");
    });
}

#[test]
fn without_a_page_a_browser_gets_a_small_one_and_others_a_line_of_text() {
    const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    on_each_driver(&[("one/f.txt", "file")], &[site()], |served| {
        for (target, fields, status, text, title) in [
            ("/none", &[][..], 404, "Not Found\n", "404 Not Found"),
            ("/a/../b", &[], 400, "A path with . or .. in it is not resolved here.\n", "400 Bad Request"),
            (
                "/f.txt",
                &["If-Match: \"x\""],
                412,
                "The file is another version than the one asked for.\n",
                "412 Precondition Failed",
            ),
        ] {
            for accept in ["Accept: */*", "Accept: text/html;q=0, */*", "X: y"] {
                let answer = served.get(target, &[fields, &[accept]].concat());
                assert_eq!((answer.status, answer.text()), (status, text), "{target} {accept}");
                assert_eq!(answer.field("Vary"), Some("Accept"));
                assert_eq!(answer.field("Content-Type"), Some("text/plain; charset=utf-8"));
            }
            let answer = served.get(target, &[fields, &[BROWSER]].concat());
            assert_eq!(answer.status, status);
            assert!(answer.text().contains(&format!("<title>{title}</title>")), "{}", answer.text());
            assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
            assert_eq!(answer.field("Vary"), Some("Accept"));
            let head = served.connect().request("HEAD", target, &[fields, &[BROWSER]].concat());
            assert_eq!(head.field("Content-Length"), Some(answer.body.len().to_string().as_str()));
        }
    });
}

#[test]
fn what_is_refused_before_its_route_is_known_has_the_servers_own_words() {
    on_each_driver(&FILES, &[Site { error_pages: vec![page(400, "/404.html")], ..site() }], |served| {
        let mut client = served.connect();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
        let answer = client.answer("GET");
        assert_eq!(answer.status, 400);
        assert!(!answer.text().contains("own page"), "{}", answer.text());
        // Of a path that names nothing the site is known.
        assert_eq!(served.get("/%zz", &[]).text(), PAGE);
    });
}
