//! Request bodies, and pipelined requests byte for byte.

use shearwater::{App, Call, Failure, Reading, Request, Response, Status, buffered, get, later_reading};
use testkit::TestClient;

use crate::served::Served;

const BUFFER_BYTES_MAX: u64 = 1000;

/// Sums up bytes, and rejects those above 127.
async fn sum(call: &mut Call<(), Reading>) -> Result<String, Failure> {
    let (mut bytes, mut sum) = (0, 0);
    while let Some(piece) = call.read().await {
        assert!(!piece.is_empty());
        bytes += piece.len();
        sum += piece.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        if !piece.is_ascii() {
            return Err(Failure::new(Status::UNPROCESSABLE_CONTENT, "not ASCII"));
        }
    }
    assert!(call.kept_body().is_none_or(<[u8]>::is_empty));
    Ok(format!("{bytes} bytes, sum {sum}"))
}

fn served() -> Served {
    let app = App::new()
        .route(
            "/discard",
            shearwater::post(|request: &Request, response: &mut Response| {
                response.text(&format!("{:?} seen", request.kept_body()));
            }),
        )
        .route(
            "/buffer",
            shearwater::post(buffered(
                BUFFER_BYTES_MAX,
                |_: &Request, body: &[u8], response: &mut Response| {
                    response.body(body);
                },
            )),
        )
        .route("/sum", shearwater::post(later_reading(sum)));
    Served::app(app)
}

fn post(client: &mut TestClient, target: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let response = client.send_body("POST", target, &[], body);
    (response.status, response.body)
}

/// The same body in chunks of `chunk_bytes`.
fn post_chunked(client: &mut TestClient, target: &str, body: &[u8], chunk_bytes: usize) -> (u16, Vec<u8>) {
    client.ask_chunked("POST", target, &[]);
    for chunk in body.chunks(chunk_bytes) {
        client.chunk(chunk);
    }
    let response = client.last_chunk(&[]).response("POST");
    (response.status, response.body)
}

#[test]
fn discards_buffers_or_reads_bodies() {
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

#[test]
fn reads_a_large_body_in_pieces() {
    let served = served();
    let body = vec![b'a'; 5_000_000];
    let expected = format!("5000000 bytes, sum {}", 5_000_000 * u64::from(b'a')).into_bytes();
    assert_eq!(post(&mut served.connect(), "/sum", &body), (200, expected.clone()));
    assert_eq!(post_chunked(&mut served.connect(), "/sum", &body, 70_000), (200, expected));
}

#[test]
fn rejects_bodies_over_the_buffers_limit() {
    let served = served();
    let body = [b'x'; BUFFER_BYTES_MAX as usize + 1];
    for chunked in [false, true] {
        let mut client = served.connect();
        let (status, _) = match chunked {
            true => post_chunked(&mut client, "/buffer", &body, body.len()),
            false => post(&mut client, "/buffer", &body),
        };
        assert_eq!(status, 413, "chunked: {chunked}");
        if !testkit::http2::is_on() {
            client.is_ended();
        }
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
fn sends_100_or_rejects() {
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
fn discards_bodies_of_unmatched_requests() {
    let served = served();
    let mut client = served.connect();
    for (target, status) in [("/none", 404), ("/discard", 200), ("/none", 404)] {
        assert_eq!(post(&mut client, target, &[b'x'; 100_000]).0, status);
    }
    assert_eq!(client.request("DELETE", "/buffer", &["Content-Length: 0"]).status, 405);
}

fn pipelined() -> Served {
    let app = App::new()
        .route(
            "/echo",
            shearwater::post(buffered(1000, |_: &Request, body: &[u8], response: &mut Response| {
                response.body(body);
            })),
        )
        .route(
            "/",
            get(|request: &Request, response: &mut Response| {
                response.text(request.query_raw().unwrap_or("root"));
            }),
        );
    Served::app(app)
}

/// Removes the value of `Date` from responses, after checking its format.
fn without_dates(responses: &[u8]) -> String {
    let text = std::str::from_utf8(responses).expect("text");
    let mut parts = text.split("\r\nDate: ");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |gathered, part| {
        let (date, rest) = part.split_at(29);
        assert!(date.ends_with(" GMT") && rest.starts_with("\r\n"), "{date:?}");
        gathered + "\r\nDate: *" + rest
    })
}

const REQUESTS: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n\
    POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
    HEAD / HTTP/1.1\r\nHost: a\r\n\r\n\
    POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n\
    GET /none HTTP/1.1\r\nHost: a\r\n\r\n\
    OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n\
    GET /?last HTTP/1.0\r\n\r\n";

const ANSWERS: &str = "HTTP/1.1 200 OK\r\nServer: shearwater\r\nDate: *\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 4\r\n\r\nroot\
    HTTP/1.1 200 OK\r\nServer: shearwater\r\nDate: *\r\nContent-Length: 5\r\n\r\nhello\
    HTTP/1.1 200 OK\r\nServer: shearwater\r\nDate: *\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 4\r\n\r\n\
    HTTP/1.1 200 OK\r\nServer: shearwater\r\nDate: *\r\nContent-Length: 5\r\n\r\nabcde\
    HTTP/1.1 404 Not Found\r\nServer: shearwater\r\nDate: *\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 10\r\n\r\nNot Found\n\
    HTTP/1.1 204 No Content\r\nServer: shearwater\r\nDate: *\r\nAllow: GET, HEAD, OPTIONS\r\n\r\n\
    HTTP/1.1 200 OK\r\nServer: shearwater\r\nDate: *\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 4\r\n\r\nlast";

#[test]
fn responds_in_order_however_requests_are_split() {
    let served = pipelined();
    for piece_bytes in [REQUESTS.len(), 1, 2, 7, 100] {
        let mut client = served.connect();
        for piece in REQUESTS.as_bytes().chunks(piece_bytes) {
            client.send(piece);
        }
        assert_eq!(without_dates(&client.rest()), ANSWERS, "in pieces of {piece_bytes}");
    }
}

#[test]
fn responds_to_more_requests_than_fit_a_turn() {
    const REQUESTS: usize = 1000;
    let served = pipelined();
    let mut client = served.connect();
    let asked: String =
        (0..REQUESTS).map(|number| format!("GET /?{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.send(asked);
    for number in 0..REQUESTS {
        assert_eq!(client.response("GET").text(), number.to_string());
    }
    client.end_sending().is_ended();
    assert_eq!(served.stop().requests, REQUESTS as u64);
}

#[test]
fn responds_to_a_half_closed_client() {
    let served = pipelined();
    let mut client = served.connect();
    client.ask("GET", "/?one", &[]).ask("GET", "/?two", &[]).end_sending();
    assert_eq!(client.response("GET").text(), "one");
    assert_eq!(client.response("GET").text(), "two");
    client.is_ended();
}

#[test]
fn ignores_requests_after_connection_close() {
    let served = pipelined();
    let mut client = served.connect();
    // Sent whole: after the client's `Connection: close` the server may be gone before a second piece arrives (RFC 9112
    // section 9.6).
    let both =
        "GET /?one HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /?two HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(both).end_sending();
    assert_eq!(client.response("GET").text(), "one");
    client.is_ended();
}

#[test]
fn responds_before_rejecting_a_malformed_request() {
    if testkit::http2::skips("it sends a malformed head of HTTP/1") {
        return;
    }
    let served = pipelined();
    let mut client = served.connect();
    client.ask("GET", "/?one", &[]).send("GET / HTTP/1.1\r\nHost : a\r\n\r\n").ask("GET", "/?two", &[]);
    assert_eq!(client.response("GET").text(), "one");
    assert_eq!(client.response("GET").status, 400);
    client.end_sending().is_ended();
}
