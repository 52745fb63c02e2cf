//! Methods of files: `GET`, `HEAD` and `OPTIONS`.

use crate::site::Site;

const ALLOW: Option<&str> = Some("GET, HEAD, OPTIONS");

#[test]
fn other_methods_are_refused_and_change_nothing() {
    let site = Site::new();
    site.file("f.txt", "content");
    let mut client = site.connect();
    for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW", "get", "PROPFIND"] {
        let form = if matches!(method, "BREW" | "get" | "PROPFIND") { (501, None) } else { (405, ALLOW) };
        for target in ["/f.txt", "/", "/none"] {
            let response = client.ask(method, target, &["Content-Length: 4"]).send("body").response(method);
            assert_eq!((response.status, response.field("Allow")), form, "{method} {target}");
        }
    }
    assert_eq!(client.request("GET", "/f.txt", &[]).text(), "content");
}

#[test]
fn options_names_the_methods() {
    let site = Site::new();
    site.file("f.txt", "content");
    let mut client = site.connect();
    for target in ["/f.txt", "/", "*"] {
        let response = client.request("OPTIONS", target, &[]);
        assert_eq!((response.status, response.field("Allow")), (204, ALLOW), "{target}");
    }
}

#[test]
fn a_get_with_a_body_is_responded_and_the_body_skipped() {
    let site = Site::new();
    site.file("f.txt", "content");
    let mut client = site.connect();
    client.ask("GET", "/f.txt", &["Content-Length: 100000"]).send(vec![b'x'; 100_000]);
    assert_eq!(client.response("GET").text(), "content");
    assert_eq!(client.request("GET", "/f.txt", &[]).text(), "content");
    client.end_sending().is_ended();
}
