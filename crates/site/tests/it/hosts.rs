//! Hosts: each request gets the site of its host.

use shearwater_site::Site;
use testkit::tls::target as in_scheme;

use crate::served::{fixed, hosts, on_each_driver};

fn saying(names: &[&str], text: &str) -> Site {
    Site { hosts: hosts(names), content: fixed(200, text), ..Site::default() }
}

fn sites() -> Vec<Site> {
    vec![
        saying(&["example.org", "*.example.org"], "org"),
        saying(&["a.example.org", "[::1]", "127.0.0.1"], "a"),
        saying(&[], "default"),
        saying(&["*.b.example.org"], "b"),
    ]
}

#[test]
fn the_most_specific_host_wins() {
    on_each_driver(&[], &sites(), |served| {
        for (host, text) in [
            ("example.org", "org"),
            ("EXAMPLE.ORG", "org"),
            ("example.org.", "org"),
            ("example.org:8080", "org"),
            ("Example.Org.:80", "org"),
            ("x.example.org", "org"),
            ("y.x.example.org", "org"),
            ("b.example.org", "org"),
            ("a.example.org", "a"),
            ("x.a.example.org", "org"),
            ("x.b.example.org", "b"),
            ("y.x.b.example.org:1", "b"),
            ("[::1]", "a"),
            ("[::1]:8080", "a"),
            ("127.0.0.1:80", "a"),
            ("[::2]", "default"),
            ("example.com", "default"),
            ("org", "default"),
            ("xexample.org", "default"),
            ("example.org.evil.example", "default"),
            ("localhost", "default"),
        ] {
            // Twice: looked up, and cached.
            for _ in 0..2 {
                assert_eq!(served.of_host(host, "/"), (200, text.to_owned()), "{host}");
            }
        }
    });
}

#[test]
fn the_authority_of_the_target_wins_over_host() {
    on_each_driver(&[], &sites(), |served| {
        for (target, host, text) in [
            ("http://a.example.org/", "example.org", "a"),
            ("http://example.org", "a.example.org", "org"),
            ("HTTP://X.B.EXAMPLE.ORG:443/?q", "example.com", "b"),
            ("http://example.com/", "a.example.org", "default"),
        ] {
            assert_eq!(served.of_host(host, &in_scheme(target)), (200, text.to_owned()), "{target} {host}");
        }
    });
}

#[test]
fn requests_without_host_get_the_default_site() {
    on_each_driver(&[], &sites(), |served| {
        let mut client = served.connect();
        client.send("GET / HTTP/1.0\r\n\r\n");
        assert_eq!(client.response("GET").text(), "default");
    });
}

#[test]
fn the_first_site_is_the_default() {
    on_each_driver(&[], &[saying(&["a.example"], "a"), saying(&["b.example"], "b")], |served| {
        assert_eq!(served.of_host("c.example", "/").1, "a");
        assert_eq!(served.of_host("b.example", "/").1, "b");
    });
}
