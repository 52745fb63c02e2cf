//! Redirects on this host and to others, never to a host of the client's choice.

use shearwater_site::Site;
use testkit::tls::target as in_scheme;

use crate::served::{headers, on_each_driver, redirect, says, site};

fn moved() -> Site {
    Site {
        redirects: vec![
            redirect("/old", "/new", 301),
            redirect("/blog/*", "/news/{rest}", 308),
            redirect("/blog/feed", "/feed.xml?from=blog#top", 302),
            redirect("/see", "https://example.com/there", 303),
            redirect("/all/*", "/{rest}", 307),
            redirect("/both/*", "/instead", 308),
        ],
        routes: vec![says("/both/*", "a route"), says("/blog/kept", "kept")],
        headers: headers(&[("X-Own", "own")], &[]),
        ..site()
    }
}

#[test]
fn redirects_with_status_and_location() {
    on_each_driver(&[], &[moved()], |served| {
        for (target, status, location) in [
            ("/old", 301, "/new"),
            ("/old?a=b&c", 301, "/new?a=b&c"),
            ("/%6fld?", 301, "/new?"),
            ("/blog", 308, "/news/"),
            ("/blog/2024/a%20b?x", 308, "/news/2024/a%20b?x"),
            ("//blog//2024//", 308, "/news/2024//"),
            ("/blog/feed?x=y", 302, "/feed.xml?from=blog#top"),
            ("/see?a", 303, "https://example.com/there?a"),
            ("http://localhost/see", 303, "https://example.com/there"),
            ("/both/x", 308, "/instead"),
        ] {
            for _ in 0..2 {
                let response = served.get(&in_scheme(target), &[]);
                assert_eq!(
                    (response.status, response.field("Location")),
                    (status, Some(location)),
                    "{target}"
                );
                assert_eq!(response.text(), format!("{location}\n"), "{target}");
                assert_eq!(response.field("X-Own"), Some("own"));
                assert_eq!(response.field("Content-Type"), Some("text/plain; charset=utf-8"));
            }
        }
        assert_eq!(served.get("/blog/kept", &[]).text(), "kept", "this very path goes before a star");
        assert_eq!(served.get("/old/", &[]).status, 404, "another path");
    });
}

#[test]
fn redirects_every_method() {
    on_each_driver(&[], &[moved()], |served| {
        for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
            let mut client = served.connect();
            let response =
                client.ask(method, "/blog/x", &["Content-Length: 4"]).send("body").response(method);
            assert_eq!((response.status, response.field("Location")), (308, Some("/news/x")), "{method}");
        }
    });
}

#[test]
fn no_path_redirects_to_another_host_on_the_wire() {
    on_each_driver(&[], &[moved()], |served| {
        for (target, location) in [
            ("/all//evil.example", "/evil.example"),
            ("/all///evil.example/a", "/evil.example/a"),
            ("//all//evil.example", "/evil.example"),
            ("/all/x/..//evil.example", "/evil.example"),
            ("/.//all/.//evil.example", "/evil.example"),
            ("/all/\\evil.example", "/%5Cevil.example"),
            ("/all/\\/evil.example", "/%5C/evil.example"),
            ("/all/%5cevil.example", "/%5cevil.example"),
            ("/all/https://evil.example", "/https://evil.example"),
            ("/all/@evil.example", "/@evil.example"),
            ("http://localhost//all//evil.example", "/evil.example"),
        ] {
            let response = served.get(&in_scheme(target), &[]);
            assert_eq!((response.status, response.field("Location")), (307, Some(location)), "{target}");
        }
        for target in [
            "/all/%2fevil.example",
            "/all/..//evil.example",
            "/all/%2e%2e//evil.example",
            "/.//evil.example",
            "/../all/x",
        ] {
            let response = served.get(&in_scheme(target), &[]);
            assert!(matches!(response.status, 400 | 404) && response.field("Location").is_none(), "{target}");
        }
    });
}
