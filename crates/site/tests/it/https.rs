//! Requests in clear and by TLS, as a trusted proxy says: redirects, HSTS, and challenges of certificate authorities.

use std::time::Duration;

use shearwater_site::{Hsts, Route, Site, Sites};
use testkit::ClientResponse;

use crate::served::{
    SitesServer, behind_a_proxy, fixed, headers, hosts, on_each_driver, page, redirect, route, says, site,
};

const HSTS: &str = "Strict-Transport-Security";
const BY_TLS: &str = "X-Forwarded-Proto: https\r\n";
const CHALLENGE: &str = "/.well-known/acme-challenge/";

/// A site that is served by TLS only.
fn only(names: &[&str]) -> Site {
    Site { hosts: hosts(names), https_only: true, ..site() }
}

/// Sends a request with these field lines to a host; `-`: without a host, by HTTP/1.0.
fn ask(served: &SitesServer, method: &str, host: &str, target: &str, fields: &str) -> ClientResponse {
    let mut client = served.connect();
    if host == "-" {
        return client.send(format!("{method} {target} HTTP/1.0\r\n{fields}\r\n")).response(method);
    }
    let host = format!("Host: {host}");
    client.request(method, target, &[&[&*host], &fields.lines().collect::<Vec<_>>()[..]].concat())
}

fn unchanged(_: &mut Sites) {}

#[test]
fn redirects_requests_in_clear() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    let sites = [
        only(&["example.org", "www.example.org"]),
        only(&["*.wild.example"]),
        Site { hosts: hosts(&["clear.example"]), ..site() },
    ];
    on_each_driver(&[("one/f.txt", "content"), ("one/a/index.html", "a")], &sites, |served| {
        for (host, target, location) in [
            ("example.org", "/f.txt", "https://example.org/f.txt"),
            ("EXAMPLE.org:8080", "/f.txt?a=b&c", "https://EXAMPLE.org/f.txt?a=b&c"),
            ("www.example.org.", "/", "https://www.example.org/"),
            ("x.wild.example", "/?", "https://x.wild.example/?"),
            // Neither whether a file exists nor where a folder redirects to is told in clear.
            ("example.org", "/none", "https://example.org/none"),
            ("example.org", "/a", "https://example.org/a"),
            ("example.org", "/a/%2e%2e/%78", "https://example.org/%78"),
            ("example.org", "//evil.example/x", "https://example.org//evil.example/x"),
            ("example.org", "/a\"<b>\\", "https://example.org/a%22%3Cb%3E%5C"),
            ("example.org", "http://www.example.org/x", "https://www.example.org/x"),
            ("example.org", "http://www.example.org", "https://www.example.org/"),
            // Others get the first site and its name.
            ("evil.example", "/x", "https://example.org/x"),
            ("192.0.2.1:80", "/x", "https://example.org/x"),
            ("-", "/x", "https://example.org/x"),
        ] {
            for _ in 0..2 {
                let response = ask(served, "GET", host, target, "");
                assert_eq!((response.status, response.field("Location")), (301, Some(location)), "{host}");
                assert_eq!(response.text(), format!("{location}\n"));
            }
        }
        assert_eq!(ask(served, "GET", "clear.example", "/f.txt", "").text(), "content");
        // A client can't say that it came by TLS.
        assert_eq!(ask(served, "GET", "example.org", "/f.txt", BY_TLS).status, 301);
    });
}

#[test]
fn a_redirect_keeps_the_method() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    on_each_driver(&[], &[only(&["example.org"])], |served| {
        for (method, status) in
            [("GET", 301), ("HEAD", 301), ("POST", 308), ("PUT", 308), ("OPTIONS", 308), ("BREW", 308)]
        {
            let response = ask(served, method, "example.org", "/x", "");
            assert_eq!(
                (response.status, response.field("Location")),
                (status, Some("https://example.org/x")),
                "{method}"
            );
        }
        assert_ne!(ask(served, "OPTIONS", "example.org", "*", "").status / 100, 3);
    });
}

#[test]
fn redirects_to_the_port_of_tls() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    for (port, location) in [(443, "https://a.example/x"), (8443, "https://a.example:8443/x")] {
        let change = |sites: &mut Sites| sites.set_https_port(port);
        behind_a_proxy(&[], &[only(&["a.example"])], change, |served| {
            assert_eq!(ask(served, "GET", "a.example:80", "/x", "").field("Location"), Some(location));
        });
    }
}

#[test]
fn a_site_for_any_name_redirects_to_valid_ones() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    on_each_driver(&[], &[only(&[])], |served| {
        for (host, location) in [
            ("any.example:8080", Some("https://any.example/x")),
            ("[::1]:8080", Some("https://[::1]/x")),
            ("a'b", None),
            ("-", None),
        ] {
            let response = ask(served, "GET", host, "/x", "");
            assert_eq!(response.field("Location"), location, "{host}");
            assert_eq!(response.status, if location.is_some() { 301 } else { 400 }, "{host}");
        }
    });
}

#[test]
fn comes_before_redirects_and_fixed_responses() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    let first = Site {
        redirects: vec![redirect("/old", "/new", 302)],
        routes: vec![says("/health", "ok")],
        headers: headers(&[("X-Own", "own")], &[]),
        ..only(&["a.example"])
    };
    behind_a_proxy(&[], &[first], unchanged, |served| {
        for target in ["/old", "/health", "/none"] {
            let response = ask(served, "GET", "a.example", target, "");
            let location = format!("https://a.example{target}");
            assert_eq!((response.status, response.field("Location")), (301, Some(location.as_str())));
            assert_eq!(response.field("X-Own"), Some("own"));
        }
        assert_eq!(ask(served, "GET", "a.example", "/old", BY_TLS).field("Location"), Some("/new"));
        assert_eq!(ask(served, "GET", "a.example", "/health", BY_TLS).text(), "ok");
    });
}

/// A site without TLS of its own, behind a proxy that ends it: no loop.
#[test]
fn a_request_that_came_by_tls_isnt_redirected() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    behind_a_proxy(&[("one/f.txt", "content")], &[only(&["a.example"])], unchanged, |served| {
        assert_eq!(ask(served, "GET", "a.example", "/f.txt", BY_TLS).text(), "content");
        assert_eq!(ask(served, "GET", "a.example", "https://a.example/f.txt", "").text(), "content");
        assert_eq!(ask(served, "GET", "a.example", "/f.txt", "X-Forwarded-Proto: http\r\n").status, 301);
        assert_eq!(ask(served, "GET", "a.example", "/f.txt", "").status, 301);
    });
}

#[test]
fn hsts_is_on_every_response_by_tls_and_on_none_in_clear() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    let hsts = Some(Hsts { max_age: Duration::from_secs(300), subdomains: true, preload: false });
    let own = Route { headers: headers(&[("X-Route", "r")], &["X-Own"]), ..route("/r/*") };
    let everything = Site {
        hosts: hosts(&["a.example"]),
        hsts,
        headers: headers(&[("X-Own", "own")], &[]),
        redirects: vec![redirect("/old", "/new", 302)],
        routes: vec![
            says("/health", "ok"),
            own,
            Route { content: Some(fixed(403, "")), ..route("/closed") },
            Route { content: Some(fixed(204, "")), ..route("/nothing") },
        ],
        error_pages: vec![page(404, "/404.html")],
        ..site()
    };
    let neighbour = Site { hosts: hosts(&["b.example"]), ..site() };
    let files = [("one/f.txt", "content"), ("one/a/index.html", "a"), ("one/r/f.txt", "r")];
    behind_a_proxy(&files, &[everything, neighbour], unchanged, |served| {
        for (method, target, status) in [
            ("GET", "/f.txt", 200),
            ("HEAD", "/f.txt", 200),
            ("GET", "/r/f.txt", 200),
            ("GET", "/a", 301),
            ("GET", "/old", 302),
            ("GET", "/health", 200),
            ("GET", "/nothing", 204),
            ("GET", "/closed", 403),
            ("GET", "/none", 404),
            ("GET", "/r/none", 404),
            ("GET", "/%2f", 404),
            ("POST", "/f.txt", 405),
            ("BREW", "/f.txt", 501),
        ] {
            for _ in 0..2 {
                let shown = format!("{method} {target}");
                let by_tls = ask(served, method, "a.example", target, BY_TLS);
                assert_eq!(
                    (by_tls.status, by_tls.field(HSTS)),
                    (status, Some("max-age=300; includeSubDomains")),
                    "{shown}"
                );
                let in_clear = ask(served, method, "a.example", target, "");
                assert_eq!((in_clear.status, in_clear.field(HSTS)), (status, None), "{shown}");
                for header in ["X-Own", "X-Route"] {
                    assert_eq!(in_clear.field(header), by_tls.field(header), "{shown}");
                }
                assert_eq!(ask(served, method, "b.example", target, BY_TLS).field(HSTS), None);
            }
        }
        let unmodified = format!("{BY_TLS}If-None-Match: *\r\n");
        let unmodified = ask(served, "GET", "a.example", "/f.txt", &unmodified);
        assert_eq!((unmodified.status, unmodified.field(HSTS).is_some()), (304, true));
    });
}

#[test]
fn a_redirect_to_tls_has_no_hsts() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    let hsts = Some(Hsts { max_age: Duration::from_secs(300), subdomains: false, preload: false });
    behind_a_proxy(&[], &[Site { hsts, ..only(&["a.example"]) }], unchanged, |served| {
        let response = ask(served, "GET", "a.example", "/", "");
        assert_eq!((response.status, response.field(HSTS)), (301, None));
        assert_eq!(ask(served, "GET", "a.example", "/none", BY_TLS).field(HSTS), Some("max-age=300"));
    });
}

#[test]
fn challenges_are_answered_in_clear() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    let answer = |sites: &mut Sites| {
        sites.answer_challenges(|token| (token == "abc").then(|| format!("{token}.key")));
    };
    let well_known = format!("one{CHALLENGE}file");
    let sites = [only(&["a.example"]), Site { hosts: hosts(&["b.example"]), ..site() }];
    behind_a_proxy(&[(well_known.as_str(), "of certbot")], &sites, answer, |served| {
        for host in ["a.example", "b.example", "other.example"] {
            let response = ask(served, "GET", host, &format!("{CHALLENGE}abc"), "");
            assert_eq!((response.status, response.text()), (200, "abc.key"), "{host}");
            assert_eq!(response.field("Cache-Control"), Some("no-store"));
            // One that isn't ours: a file of another program, or nothing.
            let file = ask(served, "GET", host, &format!("{CHALLENGE}file"), "");
            assert_eq!((file.status, file.text()), (200, "of certbot"), "{host}");
            assert_eq!(ask(served, "GET", host, &format!("{CHALLENGE}none"), "").status, 404);
            assert_eq!(ask(served, "POST", host, &format!("{CHALLENGE}abc"), "").status, 405);
            assert_eq!(ask(served, "GET", host, &format!("{CHALLENGE}abc"), BY_TLS).status, 404);
        }
        assert_eq!(ask(served, "GET", "a.example", "/.well-known/other", "").status, 301);
    });
}
