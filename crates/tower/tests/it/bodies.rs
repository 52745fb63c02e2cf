//! Request bodies of services.

use std::convert::Infallible;
use std::sync::mpsc::sync_channel;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::post;
use futures_util::StreamExt;
use http_body_util::BodyExt;
use shearwater::Limits;
use testkit::TIMEOUT;

use crate::served::{Served, drivers, here};

/// Returns the length of a body and the sum of its bytes.
async fn sum(body: Body) -> String {
    let mut pieces = body.into_data_stream();
    let (mut len, mut sum) = (0, 0u64);
    while let Some(piece) = pieces.next().await {
        let Ok(piece) = piece else { return "cut off".to_owned() };
        len += piece.len();
        sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
    format!("{len} {sum}")
}

/// Reads a body on a tokio thread.
async fn elsewhere(body: Body) -> String {
    tokio::spawn(sum(body)).await.expect("no panic")
}

/// Echoes a body as it arrives.
async fn back(body: Body) -> Body {
    let pieces = body.into_data_stream().map(|piece| Ok::<_, Infallible>(piece.unwrap_or_default()));
    Body::from_stream(pieces)
}

async fn hint(body: Body) -> String {
    let hint = http_body::Body::size_hint(&body);
    let is_over = http_body::Body::is_end_stream(&body);
    let collected = body.collect().await.map(|all| all.to_bytes().len());
    format!("{:?} {is_over} {:?}", hint.exact(), collected.ok())
}

fn router() -> Router {
    Router::new()
        .route("/echo", post(|body: Bytes| async { body }))
        .route("/sum", post(sum))
        .route("/elsewhere", post(elsewhere))
        .route("/back", post(back))
        .route("/hint", post(hint))
        .route("/collected", post(|body: Bytes| async move { body.len().to_string() }))
        .route(
            "/collected-late",
            post(|body: Bytes| async move {
                tokio::task::yield_now().await;
                body.len().to_string()
            }),
        )
        .route("/refused", post(|| async { (StatusCode::FORBIDDEN, "no") }))
}

/// Bytes without a pattern that repeats within a buffer.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

fn summed(bytes: &[u8]) -> String {
    format!("{} {}", bytes.len(), bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>())
}

#[test]
fn receives_bodies_of_any_size() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        for len in [0, 1, 1000, 1025, 16_384, 65_536, 100_000, 1_000_000] {
            let body = bytes(len);
            assert_eq!(client.send_body("POST", "/echo", &[], &body).body, body, "{len}");
            assert_eq!(client.send_body("POST", "/sum", &[], &body).text(), summed(&body), "{len}");
            assert_eq!(client.send_body("POST", "/elsewhere", &[], &body).text(), summed(&body), "{len}");
        }
        assert_eq!(served.totals().connections_accepted, 1);
    }
}

#[test]
fn receives_bodies_byte_by_byte_and_in_chunks() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        client.ask("POST", "/sum", &["Content-Length: 20"]);
        for byte in bytes(20) {
            client.send([byte]);
        }
        assert_eq!(client.response("POST").text(), summed(&bytes(20)));
        client.ask_chunked("POST", "/sum", &[]);
        for piece in bytes(200_000).chunks(999) {
            client.chunk(piece);
        }
        let response = client.last_chunk(&["X-Trailer: 1"]).response("POST");
        assert_eq!(response.text(), summed(&bytes(200_000)));
        assert_eq!(client.request("POST", "/sum", &[]).text(), "0 0", "the connection stays open");
    }
}

#[test]
fn reports_the_length_of_bodies() {
    let served = Served::new(router());
    let mut client = served.connect();
    assert_eq!(client.request("POST", "/hint", &[]).text(), "Some(0) true Some(0)");
    assert_eq!(client.send_body("POST", "/hint", &[], b"12345").text(), "Some(5) false Some(5)");
    assert_eq!(
        client.send_body("POST", "/hint", &[], &bytes(200_000)).text(),
        "Some(200000) false Some(200000)"
    );
    let response = client.ask_chunked("POST", "/hint", &[]).chunk("abc").last_chunk(&[]).response("POST");
    assert!(
        ["None false Some(3)", "Some(3) false Some(3)"].contains(&response.text()),
        "{}",
        response.text()
    );
}

#[test]
fn streams_the_response_while_the_request_arrives() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        client.ask_chunked("POST", "/back", &[]);
        let head = client.head();
        let coding = Some("chunked").filter(|_| !testkit::http2::is_on());
        assert_eq!((head.status, head.field("transfer-encoding")), (200, coding));
        for number in 0..20 {
            let said = format!("piece {number}");
            assert_eq!(client.chunk(&said).data(), said.as_bytes());
        }
        assert_eq!(client.last_chunk(&[]).data(), b"");
        assert_eq!(client.send_body("POST", "/echo", &[], b"again").text(), "again");
    }
}

#[test]
fn sends_100_once_the_body_is_read() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        client.ask("POST", "/sum", &["Content-Length: 3", "Expect: 100-continue"]);
        assert_eq!(client.head().status, 100);
        client.send([1, 2, 3]);
        assert_eq!(client.response("POST").text(), "3 6");
    }
}

#[test]
fn rejects_by_the_head_without_waiting_for_the_body() {
    if testkit::http2::skips("only the stream ends") {
        return;
    }
    for driver in drivers() {
        let served = Served::on(driver, router());
        for (method, target, length, status) in
            [("POST", "/refused", 3, 403), ("POST", "/none", 3, 404), ("DELETE", "/sum", 3, 405)]
        {
            let mut client = served.connect();
            client.ask(method, target, &[&format!("Content-Length: {length}"), "Expect: 100-continue"]);
            let response = client.response(method);
            assert_eq!((response.status, response.field("connection")), (status, Some("close")), "{target}");
            client.ask("GET", "/none", &[]).end_sending().is_ended();
        }
        assert_eq!(served.totals().connections_reset, 0);
    }
}

#[test]
fn discards_bodies_that_are_not_read() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        let response = client.send_body("POST", "/refused", &[], b"short");
        assert_eq!((response.status, response.field("connection")), (403, None));
        let response = client.send_body("POST", "/refused", &[], &bytes(1_000_000));
        assert_eq!((response.status, response.text()), (403, "no"));
    }
}

#[test]
fn rejects_bodies_over_the_limit() {
    let limits = Limits { body_bytes_max: 1000, ..Limits::default() };
    let served = Served::of(here(router()).limits(limits));
    assert_eq!(served.connect().send_body("POST", "/sum", &[], &bytes(1000)).status, 200);
    assert_eq!(served.connect().send_body("POST", "/sum", &[], &bytes(1001)).status, 413);
    let mut client = served.connect();
    assert_eq!(client.ask_chunked("POST", "/sum", &[]).chunk(bytes(1001)).response("POST").status, 413);
}

/// axum's limit is the one that counts, unless the server's is set.
#[test]
fn the_server_limits_bodies_only_if_asked() {
    const LEN: usize = 20 << 20;
    let disabled = || router().layer(DefaultBodyLimit::disable());
    let limits = Limits { fields_max: 50, ..Limits::default() };
    let bound = Limits { body_bytes_max: 1 << 20, ..Limits::default() };
    for (serve, len, status) in [
        (here(router()), 3 << 20, 413),
        (here(disabled()), 3 << 20, 200),
        (here(disabled()), LEN, 200),
        (here(disabled()).limits(limits), LEN, 200),
        (here(disabled()).limits(bound), LEN, 413),
        (here(disabled()).body_bytes_max(LEN as u64 - 1).limits(limits), LEN, 413),
        (here(disabled()).limits(bound).body_bytes_max(LEN as u64), LEN, 200),
    ] {
        let served = Served::of(serve);
        let mut client = served.connect();
        client.ask("POST", "/collected", &[&format!("Content-Length: {len}")]);
        // A rejected client may be unable to send all of it.
        client.try_send(vec![7; len]);
        assert_eq!(client.response("POST").status, status, "{len}");
    }
}

/// Also if the handler then waits for something else.
#[test]
fn passes_a_body_that_came_with_its_head() {
    for driver in drivers() {
        let served = Served::on(driver, router());
        let mut client = served.connect();
        for path in ["/collected", "/collected-late"] {
            for len in [1, 1000, 1025, 30_000] {
                assert_eq!(client.send_body("POST", path, &[], &bytes(len)).text(), len.to_string());
            }
        }
    }
}

/// Whether the client has closed or the response has ended.
#[test]
fn cuts_off_a_body_that_is_read_on_another_thread() {
    for driver in drivers() {
        for awaits in [true, false] {
            let (result, results) = sync_channel(1);
            let detached = move |body: Body| {
                let result = result.clone();
                let read = async move { result.send(sum(body).await).expect("the test receives") };
                let task = tokio::spawn(read);
                async move {
                    if awaits {
                        task.await.expect("no panic");
                    }
                    "accepted"
                }
            };
            let served = Served::on(driver, Router::new().route("/", post(detached)));
            let mut client = served.connect();
            client.ask("POST", "/", &["Content-Length: 10"]).send([1, 2, 3]);
            if awaits {
                drop(client);
            } else {
                assert_eq!(client.response("POST").text(), "accepted");
            }
            assert_eq!(results.recv_timeout(TIMEOUT).expect("it ends"), "cut off", "awaits: {awaits}");
        }
    }
}

#[test]
fn stops_receiving_for_a_slow_reader() {
    if testkit::tls::skips("it writes parts of what the socket accepts")
        || testkit::http2::skips("it writes parts of what the socket accepts")
    {
        return;
    }
    // The client can't send more than the buffers in between hold while nobody reads.
    let (go_on, gone_on) = tokio::sync::watch::channel(false);
    let slow = move |body: Body| {
        let mut gone_on = gone_on.clone();
        async move {
            let mut pieces = body.into_data_stream();
            let first = pieces.next().await.expect("a piece").expect("readable").len();
            drop(gone_on.wait_for(|go_on| *go_on).await);
            let mut len = first;
            while let Some(piece) = pieces.next().await {
                len += piece.expect("readable").len();
            }
            len.to_string()
        }
    };
    const LEN: usize = 64 * 1024 * 1024;
    let limits = Limits { body_bytes_max: LEN as u64, ..Limits::default() };
    for driver in drivers() {
        let router = Router::new().route("/", post(slow.clone()));
        let served = Served::of(here(router).driver(driver).limits(limits));
        let mut client = served.connect();
        client.ask("POST", "/", &[&format!("Content-Length: {LEN}")]);
        let stream = client.stream();
        stream.set_nonblocking(true).expect("it can");
        let piece = vec![7; 256 * 1024];
        let mut sent = 0;
        let mut stuck = 0;
        // Blocked for many checks in a row, since the server must have made room for all that the socket accepts.
        while stuck < 2000 && sent < LEN {
            match std::io::Write::write(&mut client.stream(), &piece[..piece.len().min(LEN - sent)]) {
                Ok(len) => {
                    sent += len;
                    stuck = 0;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    stuck += 1;
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(sent < LEN / 2, "{sent} bytes left the client though nobody reads");
        client.stream().set_nonblocking(false).expect("it can");
        go_on.send_replace(true);
        while sent < LEN {
            let len = piece.len().min(LEN - sent);
            client.send(&piece[..len]);
            sent += len;
        }
        assert_eq!(client.response("POST").text(), LEN.to_string());
        go_on.send_replace(false);
    }
}
