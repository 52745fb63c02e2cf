//! The form of responses on the wire: the same for every kind of handler, on each driver.

use shearwater::tasks::yield_now;
use shearwater::{App, Call, CoroutineCall, Fast, Request, Response, Service, Timeouts};
use std::io::ErrorKind;

use crate::client::{Client, ClientResponse};
use crate::served::{Served, drivers, here};

const TEXT: &str = "some text";

/// Paths of handlers with immediate, whole responses.
const WHOLE: [&str; 6] = ["/fast", "/sync", "/async", "/async-late", "/coroutine", "/mounted/x"];
/// Paths of handlers that stream without a length.
const STREAMS: [&str; 2] = ["/async-stream", "/coroutine-stream"];

/// An app with each kind of handler, all with this status.
fn app(status: u16) -> App {
    let mut app = App::new();
    app.fast(
        "/fast",
        Fast::with(move |response| {
            response.status(status).text(TEXT);
        }),
    );
    app.get("/sync", move |_: &Request, response: &mut Response| {
        response.status(status).text(TEXT);
    });
    app.get_async("/async", async move |call: &mut Call| {
        call.response().status(status).text(TEXT);
    });
    app.get_async("/async-late", async move |call: &mut Call| {
        yield_now().await;
        call.response().status(status).text(TEXT);
    });
    app.get_async("/async-stream", async move |call: &mut Call| {
        call.response().status(status);
        call.begin(None);
        call.send(TEXT.as_bytes()).await
    });
    app.get_coroutine("/coroutine", move |line: &mut CoroutineCall| {
        line.yield_now();
        line.response().status(status).text(TEXT);
    });
    app.get_coroutine("/coroutine-stream", move |line: &mut CoroutineCall| {
        line.response().status(status);
        line.begin(None);
        line.send(TEXT.as_bytes())
    });
    app.mount("/mounted", move |_| Mounted(status));
    app.post("/post", move |_: &Request, response: &mut Response| {
        response.status(status).text(TEXT);
    });
    app.post_async("/post-async", async move |call: &mut Call| {
        call.response().status(status).text(TEXT);
    });
    app.post_async("/post-unread", async move |call: &mut Call| {
        yield_now().await;
        call.response().status(status).text(TEXT);
    })
    .read();
    app.post_coroutine("/post-coroutine", move |line: &mut CoroutineCall| {
        line.yield_now();
        line.response().status(status).text(TEXT);
    });
    app.post_coroutine("/post-coroutine-unread", move |line: &mut CoroutineCall| {
        line.response().status(status).text(TEXT);
    })
    .read();
    app
}

struct Mounted(u16);

impl Service for Mounted {
    fn respond(&self, _: &Request<'_>, response: &mut Response<'_>) {
        response.status(self.0).text(TEXT);
    }
}

/// Returns the response to an HTTP/1.0 request with keep-alive.
fn ask_1_0(client: &mut Client, method: &str, path: &str) -> ClientResponse {
    client.send(format!("{method} {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    client.head()
}

#[test]
fn a_205_has_no_content() {
    for driver in drivers() {
        let served = Served::of(here().driver(driver), app(205));
        for path in WHOLE.iter().chain(&STREAMS) {
            let mut client = served.connect();
            for method in ["GET", "HEAD", "GET"] {
                let response = client.request(method, path, &[]);
                let form =
                    (response.status, response.field("Content-Length"), response.field("Transfer-Encoding"));
                assert_eq!(form, (205, Some("0"), None), "{driver:?} {method} {path}");
            }
        }
    }
}

#[test]
fn a_head_of_unknown_length_has_no_transfer_encoding() {
    for driver in drivers() {
        let served = Served::of(here().driver(driver), app(200));
        for path in STREAMS {
            let mut client = served.connect();
            for _ in 0..2 {
                let response = client.request("HEAD", path, &[]);
                let form =
                    (response.status, response.field("Content-Length"), response.field("Transfer-Encoding"));
                assert_eq!(form, (200, None, None), "{driver:?} {path}");
            }
        }
    }
}

#[test]
fn http_1_0_keeps_its_connection_where_the_end_of_the_response_is_known() {
    for driver in drivers() {
        for status in [200, 204, 205, 304] {
            let served = Served::of(here().driver(driver), app(status));
            for path in WHOLE.iter().chain(&STREAMS) {
                let mut client = served.connect();
                for method in ["HEAD", "GET", "HEAD"] {
                    if method == "GET" && status == 200 && STREAMS.contains(path) {
                        continue;
                    }
                    let response = ask_1_0(&mut client, method, path);
                    let what = format!("{driver:?} {status} {method} {path}");
                    assert_eq!(
                        (response.status, response.field("Connection")),
                        (status, Some("keep-alive")),
                        "{what}"
                    );
                    assert_eq!(response.field("Transfer-Encoding"), None, "{what}");
                    let length =
                        response.field("Content-Length").map(|length| length.parse().expect("a number"));
                    let mut body = vec![0; if method == "GET" { length.unwrap_or(0) } else { 0 }];
                    std::io::Read::read_exact(&mut client.stream, &mut body).expect("a body");
                }
            }
        }
        let served = Served::of(here().driver(driver), app(200));
        for path in STREAMS {
            let mut client = served.connect();
            let response = ask_1_0(&mut client, "GET", path);
            assert_eq!(response.field("Connection"), Some("close"), "{driver:?} {path}");
            assert_eq!(client.rest(), TEXT.as_bytes());
        }
    }
}

#[test]
fn a_head_that_is_refused_early_gets_no_body() {
    for driver in drivers() {
        let timeouts = Timeouts { first_head_ms: 50, ..Timeouts::default() };
        let served = Served::of(here().driver(driver).timeouts(timeouts), app(200));
        let long = format!("HEAD / HTTP/1.1\r\nX: {}\r\n", "x".repeat(65_536));
        for (request, status) in
            [("HEAD  /sync HTTP/1.1\r\n", 400), (&long, 431), ("HEAD /sync HTTP/1.1\r\nHos", 408)]
        {
            let mut client = served.connect();
            client.send(request);
            let response = client.head();
            assert_eq!(response.status, status, "{driver:?}");
            assert_ne!(response.field("Content-Length"), Some("0"), "{driver:?} {status}");
            client.is_ended();
        }
    }
}

#[test]
fn what_comes_late_behind_the_last_request_resets_nothing() {
    for driver in drivers() {
        let served = Served::of(here().driver(driver), app(200));
        for path in WHOLE.iter().chain(&STREAMS) {
            let mut client = served.connect();
            let more = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            client.ask("GET", path, &["Connection: close"]);
            // The response has arrived; the client hasn't read it.
            while let Err(error) = client.stream.get_ref().peek(&mut [0]) {
                assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
            }
            client.send(&more).send(&more);
            let got = String::from_utf8(client.rest()).expect("text");
            assert_eq!(got.matches("HTTP/1.1 ").count(), 1, "{driver:?} {path}: {got}");
            assert!(got.starts_with("HTTP/1.1 200 ") && got.contains(TEXT), "{driver:?} {path}: {got}");
            client.send(&more).end_sending().is_ended();
        }
        assert_eq!(served.stop().connections_reset, 0);
    }
}

#[test]
fn a_request_that_is_doomed_by_its_head_gets_its_status_at_once() {
    for driver in drivers() {
        let served = Served::of(here().driver(driver), app(403));
        for (path, fields, status) in [
            ("/post", "", 403),
            ("/post-async", "", 403),
            ("/post-unread", "", 403),
            ("/post-coroutine", "", 403),
            ("/post-coroutine-unread", "", 403),
            ("/mounted/x", "", 403),
            ("/none", "", 404),
            ("/sync", "", 405),
            ("/fast", "", 405),
            ("/post", "Content-Length: 99999999\r\n", 413),
            ("/post-unread", "Content-Length: 99999999\r\n", 413),
            ("/post", "Expect: more\r\n", 417),
            ("https://a/post", "", 421),
            ("/sync", "", 501),
            ("/none", "", 501),
        ] {
            let length = if fields.contains("Length") { "" } else { "Content-Length: 5\r\n" };
            let mut client = served.connect();
            let method = if status == 501 { "BREW" } else { "POST" };
            client.send(format!(
                "{method} {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n{length}{fields}\r\n"
            ));
            let response = client.response("POST");
            assert_eq!(
                (response.status, response.field("Connection")),
                (status, Some("close")),
                "{driver:?} {path}"
            );
            // The server neither waits for the body nor resets the connection.
            client.send("GET /sync HTTP/1.1\r\nHost: a\r\n\r\n").end_sending().is_ended();
        }
        let totals = served.stop();
        assert_eq!((totals.connections_reset, totals.connections_broken), (0, 0));
    }
}

#[test]
fn a_target_of_another_scheme_is_misdirected() {
    for driver in drivers() {
        for (is_trusted, https) in [(false, 421), (true, 200)] {
            let served = Served::of(here().driver(driver).trusted_gateway(is_trusted), app(200));
            for path in WHOLE {
                for (scheme, status) in [("https", https), ("ftp", 421), ("http", 200)] {
                    let response = served.connect().request("GET", &format!("{scheme}://a{path}"), &[]);
                    assert_eq!(response.status, status, "{driver:?} {scheme} {path}");
                }
            }
        }
    }
}
