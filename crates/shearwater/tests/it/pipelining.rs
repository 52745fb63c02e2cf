//! Pipelined requests, byte for byte.

use shearwater::{App, Request, Response};

use crate::served::Served;

fn served() -> Served {
    let mut app = App::new();
    app.post("/echo", |request: &Request, response: &mut Response| {
        response.body(request.body());
    })
    .buffer(1000);
    app.get("/", |request: &Request, response: &mut Response| {
        response.text(request.query().unwrap_or("root"));
    });
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
fn responses_come_in_order_whatever_the_pieces() {
    let served = served();
    for piece_bytes in [REQUESTS.len(), 1, 2, 7, 100] {
        let mut client = served.connect();
        for piece in REQUESTS.as_bytes().chunks(piece_bytes) {
            client.send(piece);
        }
        assert_eq!(without_dates(&client.rest()), ANSWERS, "in pieces of {piece_bytes}");
    }
}

#[test]
fn far_more_than_one_turn_takes() {
    const REQUESTS: usize = 1000;
    let served = served();
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
fn a_client_that_has_ended_its_side_still_gets_its_responses() {
    let served = served();
    let mut client = served.connect();
    client.ask("GET", "/?one", &[]).ask("GET", "/?two", &[]).end_sending();
    assert_eq!(client.response("GET").text(), "one");
    assert_eq!(client.response("GET").text(), "two");
    client.is_ended();
}

#[test]
fn behind_the_last_request_nothing_is_responded() {
    let served = served();
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
fn a_malformed_request_ends_the_row_behind_the_responses_before_it() {
    let served = served();
    let mut client = served.connect();
    client.ask("GET", "/?one", &[]).send("GET / HTTP/1.1\r\nHost : a\r\n\r\n").ask("GET", "/?two", &[]);
    assert_eq!(client.response("GET").text(), "one");
    assert_eq!(client.response("GET").status, 400);
    client.end_sending().is_ended();
}
