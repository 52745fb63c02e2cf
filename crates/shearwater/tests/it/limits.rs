//! The engine's limits over real sockets, and the form of responses on the wire.

use std::io::ErrorKind;

use shearwater::tasks::yield_now;
use shearwater::{
    App, Call, Gone, Head, Limits, Line, Reading, Request, Response, Server, Service, Status, Timeouts,
    TrustedProxies, get, later, later_reading, line, line_reading, post,
};
use testkit::{ClientResponse, TestClient};

use crate::served::{Served, drivers, here};

/// Bytes that a client sends after it was rejected.
const MORE_BYTES: usize = 1024 * 1024;

fn served(server: Server) -> Served {
    Served::of(server, App::new().fallback(|_: &Request, _: &mut Response| {}))
}

fn small() -> Server {
    let limits =
        Limits { head_bytes_max: 2000, target_bytes_max: 1000, body_bytes_max: 1000, ..Limits::default() };
    here().limits(limits)
}

/// The client sends much more before it reads the response, and after it.
#[test]
fn rejects_requests_over_each_limit() {
    let (x, fields) = ("x".repeat(2000), "X: y\r\n".repeat(100));
    let post = "POST / HTTP/1.1\r\nHost: a\r\n";
    for (server, request, status) in [
        (small(), format!("GET / HTTP/1.1\r\nHost: a\r\nX: {x}"), 431),
        (here(), format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"), 431),
        (small(), format!("GET /{}", &x[..1000]), 414),
        (small(), format!("{post}Content-Length: 1001\r\n\r\n"), 413),
        (small(), format!("{post}Transfer-Encoding: chunked\r\n\r\nffffffff\r\n"), 413),
    ] {
        let served = served(server);
        let mut client = served.connect();
        client.send(&request).send(vec![b'x'; MORE_BYTES]);
        let response = client.response("GET");
        let form = (response.status, response.field("Connection"));
        assert_eq!(form, (status, Some("close")), "{request:.40?}");
        // Sending continues after the end of the response, without a reset.
        client.send(vec![b'x'; MORE_BYTES]).is_ended();
        client.send(vec![b'x'; MORE_BYTES]).end_sending().is_ended();
        let totals = served.stop();
        let counts = (totals.requests, totals.requests_refused, totals.connections_broken);
        assert_eq!(counts, (0, 1, 0), "{request:.40?}");
    }
}

#[test]
fn serves_requests_of_exactly_the_maximum_size() {
    if testkit::http2::skips("the size is that of a head of HTTP/1") {
        return;
    }
    let served = served(small());
    let mut client = served.connect();
    assert_eq!(client.get(&format!("/{}", "x".repeat(999))).status, 200);
    let fixed = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(2000 - fixed)));
    assert_eq!(client.response("GET").status, 200);
    client.ask("POST", "/", &["Content-Length: 1000"]).send([b'x'; 1000]);
    assert_eq!(client.response("POST").status, 200);
}

#[test]
fn responds_408_to_slow_requests() {
    let timeouts = Timeouts { first_head_ms: 1, head_ms: 1, body_ms: 1, ..Timeouts::default() };
    for (before, slow) in [
        ("", "GET / HTTP/1.1\r\nHost"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HT"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nsome"),
    ] {
        let served = served(here().timeouts(timeouts));
        let mut client = served.connect();
        if !before.is_empty() {
            assert_eq!(client.send(before).response("GET").status, 200);
        }
        let response = client.send(slow).response("GET");
        assert_eq!((response.status, response.field("Connection")), (408, Some("close")), "{slow:?}");
        client.send(vec![b'x'; MORE_BYTES]).is_ended();
        client.end_sending().is_ended();
        let totals = served.stop();
        let timeouts = [totals.hit_first_head_ms, totals.hit_head_ms, totals.hit_body_ms];
        assert_eq!((timeouts.iter().sum::<u64>(), totals.connections_broken), (1, 0), "{slow:?}");
    }
}

#[test]
fn closes_silent_connections_without_a_response() {
    if testkit::http2::skips("a preface precedes the first head") {
        return;
    }
    let timeouts = Timeouts { first_head_ms: 1, idle_ms: 1, ..Timeouts::default() };
    let served = served(here().timeouts(timeouts));
    let mut silent = served.connect();
    silent.is_ended();
    let mut once = served.connect();
    // Either the first head is in time or the connection is closed without a response.
    once.ask("GET", "/", &[]).rest();
    assert!(served.stop().hit_first_head_ms >= 1);
}

#[test]
fn closes_idle_connections_without_a_response() {
    let served = served(here().timeouts(Timeouts { idle_ms: 1, ..Timeouts::default() }));
    let mut client = served.connect();
    assert_eq!(client.get("/").status, 200);
    client.is_ended();
    assert_eq!(served.stop().hit_idle_ms, 1);
}

const TEXT: &str = "some text";

/// Paths of handlers with immediate, whole responses.
const WHOLE: [&str; 6] = ["/replies", "/sync", "/async", "/async-late", "/coroutine", "/mounted/x"];
/// Paths of handlers that stream without a length.
const STREAMS: [&str; 2] = ["/async-stream", "/coroutine-stream"];

/// An app with each kind of handler, all with this status.
fn app(status: u16) -> App {
    let reply = (Status::new(status), TEXT);
    let sync = move |_: &Request, response: &mut Response| {
        response.status(status).text(TEXT);
    };
    let yielding = async move |_: &mut Call| {
        yield_now().await;
        reply
    };
    let reading = async move |_: &mut Call<(), Reading>| {
        yield_now().await;
        reply
    };
    let streaming = async move |call: &mut Call| {
        let mut body = call.begin(Head::new(reply.0));
        body.send(TEXT).await?;
        Ok::<_, Gone>(body.end())
    };
    let coroutine = move |line: &mut Line| {
        line.yield_now();
        reply
    };
    let streaming_coroutine = move |line: &mut Line| {
        let mut body = line.begin(Head::new(reply.0));
        body.send(TEXT)?;
        Ok::<_, Gone>(body.end())
    };
    App::new()
        .route("/replies", get(move |_: &Request| reply))
        .route("/sync", get(sync))
        .route("/async", get(later(async move |_: &mut Call| reply)))
        .route("/async-late", get(later(yielding)))
        .route("/async-stream", get(later(streaming)))
        .route("/coroutine", get(line(coroutine)))
        .route("/coroutine-stream", get(line(streaming_coroutine)))
        .mount("/mounted", move |_| Mounted(status))
        .route("/post", post(sync))
        .route("/post-async", post(later(async move |_: &mut Call| reply)))
        .route("/post-unread", post(later_reading(reading)))
        .route("/post-coroutine", post(line(coroutine)))
        .route("/post-coroutine-unread", post(line_reading(move |_: &mut Line<(), Reading>| reply)))
}

struct Mounted(u16);

impl Service for Mounted {
    fn respond(&self, _: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        response.status(self.0).text(TEXT);
    }
}

/// Returns the response to an HTTP/1.0 request with keep-alive.
fn ask_1_0(client: &mut TestClient, method: &str, path: &str) -> ClientResponse {
    client.send(format!("{method} {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")).response(method)
}

#[test]
fn sends_no_content_with_a_205() {
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
fn sends_no_transfer_encoding_to_head_requests() {
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
fn keeps_http_1_0_connections_if_the_end_is_known() {
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
                }
            }
        }
        let served = Served::of(here().driver(driver), app(200));
        for path in STREAMS {
            let mut client = served.connect();
            let response = ask_1_0(&mut client, "GET", path);
            let form = (response.field("Connection"), response.text());
            assert_eq!(form, (Some("close"), TEXT), "{driver:?} {path}");
        }
    }
}

#[test]
fn rejects_head_requests_without_a_body() {
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
fn closes_without_reset_despite_late_requests() {
    for driver in drivers() {
        let served = Served::of(here().driver(driver), app(200));
        for path in WHOLE.iter().chain(&STREAMS) {
            let mut client = served.connect();
            let more = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            client.ask("GET", path, &["Connection: close"]);
            // The response has arrived; the client hasn't read it.
            while let Err(error) = client.stream().peek(&mut [0]) {
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
fn rejects_by_the_head_without_waiting_for_the_body() {
    if testkit::tls::skips("its targets have the schemes of a connection in clear") {
        return;
    }
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
            ("/replies", "", 405),
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
fn rejects_targets_of_another_scheme() {
    if testkit::tls::skips("its targets have the schemes of a connection in clear") {
        return;
    }
    for driver in drivers() {
        for (proxies, https) in [(&[][..], 421), (&["10.0.0.0/8"], 421), (&["127.0.0.1"], 200)] {
            let trusted = TrustedProxies::new(proxies).expect("addresses");
            let served = Served::of(here().driver(driver).trusted_proxies(trusted), app(200));
            for path in WHOLE {
                for (scheme, status) in [("https", https), ("ftp", 421), ("http", 200)] {
                    let response = served.connect().get(&format!("{scheme}://a{path}"));
                    assert_eq!(response.status, status, "{driver:?} {scheme} {path}");
                }
            }
        }
    }
}
