//! Request bodies: discarded, buffered up to a limit, or read as they arrive.

use shearwater::{App, Call, Request, Response};

use crate::client::Client;
use crate::served::Served;

const BUFFER_BYTES_MAX: u64 = 1000;

/// Sums up bytes, and rejects those above 127.
async fn sum(call: &mut Call) {
    let (mut bytes, mut sum) = (0, 0);
    while let Some(piece) = call.read().await {
        assert!(!piece.is_empty());
        bytes += piece.len();
        sum += piece.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        if !piece.is_ascii() {
            call.response().status(422);
            return;
        }
    }
    assert!(call.kept_body().is_none_or(<[u8]>::is_empty));
    call.response().text(&format!("{bytes} bytes, sum {sum}"));
}

fn served() -> Served {
    let mut app = App::new();
    app.post("/discard", |request: &Request, response: &mut Response| {
        response.text(&format!("{:?} seen", request.kept_body()));
    });
    app.post("/forgotten", |request: &Request, response: &mut Response| {
        response.body(request.body());
    });
    app.post_async("/forgotten-async", async |call: &mut Call| {
        let body = call.body().to_vec();
        call.response().body(body);
    });
    app.post_async("/forgotten-read", async |call: &mut Call| {
        let body = call.read_to_end(100).await.expect("it is short");
        call.response().body(body);
    });
    app.post_async("/read-though-kept", async |call: &mut Call| {
        let body = call.read_to_end(100).await.expect("it is short");
        call.response().body(body);
    })
    .buffer(BUFFER_BYTES_MAX);
    app.post_async("/kept-though-read", async |call: &mut Call| {
        let body = call.body().to_vec();
        call.response().body(body);
    })
    .read();
    app.post("/buffer", |request: &Request, response: &mut Response| {
        response.body(request.body());
    })
    .buffer(BUFFER_BYTES_MAX);
    app.post_async("/sum", sum).read();
    Served::app(app)
}

fn post(client: &mut Client, target: &str, body: &[u8]) -> (u16, Vec<u8>) {
    client.ask("POST", target, &[&format!("Content-Length: {}", body.len())]).send(body);
    let response = client.response("POST");
    (response.status, response.body)
}

/// The same body in chunks of `chunk_bytes`.
fn post_chunked(client: &mut Client, target: &str, body: &[u8], chunk_bytes: usize) -> (u16, Vec<u8>) {
    client.ask("POST", target, &["Transfer-Encoding: chunked"]);
    for chunk in body.chunks(chunk_bytes) {
        client.send(format!("{:x}\r\n", chunk.len())).send(chunk).send("\r\n");
    }
    client.send("0\r\n\r\n");
    let response = client.response("POST");
    (response.status, response.body)
}

#[test]
fn a_body_is_discarded_buffered_or_read() {
    let served = served();
    let mut client = served.connect();
    let body = [b'x'; BUFFER_BYTES_MAX as usize];
    let sum = format!("{} bytes, sum {}", body.len(), body.len() * usize::from(b'x')).into_bytes();
    for (target, expected) in [("/discard", b"None seen".to_vec()), ("/buffer", body.to_vec()), ("/sum", sum)]
    {
        assert_eq!(post(&mut client, target, &body), (200, expected.clone()), "{target}");
        assert_eq!(post_chunked(&mut client, target, &body, 333), (200, expected), "{target}, chunked");
    }
    assert_eq!(post(&mut client, "/buffer", b""), (200, b"".to_vec()));
}

/// The body would silently be empty.
#[test]
fn a_body_that_nobody_keeps_is_an_error_where_it_is_asked_for() {
    const FORGOTTEN: [&str; 5] =
        ["/forgotten", "/forgotten-async", "/forgotten-read", "/read-though-kept", "/kept-though-read"];
    let served = served();
    for target in FORGOTTEN {
        for chunk_bytes in [None, Some(1), Some(100)] {
            let mut client = served.connect();
            let (status, _) = match chunk_bytes {
                None => post(&mut client, target, b"a body"),
                Some(chunk_bytes) => post_chunked(&mut client, target, b"a body", chunk_bytes),
            };
            assert_eq!(status, 500, "{target}, chunks of {chunk_bytes:?}");
        }
        // There is no body to miss.
        let mut client = served.connect();
        let response = client.request("POST", target, &[]);
        assert_eq!((response.status, response.body), (200, Vec::new()), "{target}");
        assert_eq!(post(&mut client, target, b""), (200, Vec::new()), "{target}");
        if target != "/kept-though-read" {
            assert_eq!(post_chunked(&mut client, target, b"", 1), (200, Vec::new()), "{target}");
        }
    }
    assert_eq!(served.stop().handler_panics, 15);
}

#[test]
fn reads_a_large_body_in_pieces() {
    let served = served();
    let body = vec![b'a'; 5_000_000];
    let expected = format!("5000000 bytes, sum {}", 5_000_000 * u64::from(b'a')).into_bytes();
    assert_eq!(post(&mut served.connect(), "/sum", &body), (200, expected.clone()));
    assert_eq!(post_chunked(&mut served.connect(), "/sum", &body, 70_000), (200, expected));
}

#[test]
fn a_body_over_the_bound_of_its_buffer_is_refused() {
    let served = served();
    let body = [b'x'; BUFFER_BYTES_MAX as usize + 1];
    for chunked in [false, true] {
        let mut client = served.connect();
        let (status, _) = match chunked {
            true => post_chunked(&mut client, "/buffer", &body, body.len()),
            false => post(&mut client, "/buffer", &body),
        };
        assert_eq!(status, 413, "chunked: {chunked}");
        client.is_ended();
    }
    let totals = served.stop();
    assert_eq!((totals.requests, totals.requests_refused), (0, 2));
}

#[test]
fn rejects_a_body_while_reading_it() {
    let served = served();
    let mut client = served.connect();
    client.ask("POST", "/sum", &["Content-Length: 10"]).send(b"\xff\xff");
    assert_eq!(client.response("POST").status, 422);
    client.end_sending().is_ended();
    assert_eq!(post(&mut served.connect(), "/sum", b"a"), (200, b"1 bytes, sum 97".to_vec()));
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on_or_not() {
    let served = served();
    let mut client = served.connect();
    client.ask("POST", "/buffer", &["Content-Length: 3", "Expect: 100-continue"]);
    assert_eq!(client.response("POST").status, 100);
    assert_eq!(client.send("abc").response("POST").body, b"abc");
    client.ask("POST", "/buffer", &["Content-Length: 1001", "Expect: 100-continue"]);
    assert_eq!(client.response("POST").status, 413);
    client.end_sending().is_ended();
}

#[test]
fn a_body_for_no_route_is_discarded_and_the_connection_goes_on() {
    let served = served();
    let mut client = served.connect();
    for (target, status) in [("/none", 404), ("/discard", 200), ("/none", 404)] {
        assert_eq!(post(&mut client, target, &[b'x'; 100_000]).0, status);
    }
    assert_eq!(client.request("DELETE", "/buffer", &["Content-Length: 0"]).status, 405);
}
