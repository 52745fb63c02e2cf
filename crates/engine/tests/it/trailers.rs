//! Trailers of requests and responses.

use crate::harness::SimWorld;
use crate::harness::unit::{chunked, dechunked, get, head};

/// A body of two chunks with two trailers, at `/trailers`.
const ECHOED: &str = "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 1\r\ngrpc-status:\t0 \r\n\r\n";
/// The trailers as they are sent back.
const TRAILERS: &str = "0\r\nX-Sum: 1\r\ngrpc-status: 0\r\n\r\n";

/// Returns what follows the head of the response.
#[track_caller]
fn body(response: &str) -> &str {
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {response:?}"));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body
}

#[test]
fn trailers_are_echoed_however_they_are_split() {
    let mut world = SimWorld::default();
    let request = chunked("/trailers", ECHOED);
    let mut check = |pieces: &[&[u8]]| {
        let mut client = world.send_pieces(pieces);
        let text = client.text();
        assert_eq!(dechunked(body(&text)), ("abcde".to_owned(), TRAILERS), "{text:?}");
        world.assert_usable(&mut client);
        client.peer.finish();
        world.settle();
    };
    check(&[&request]);
    for at in 1..request.len() {
        let (first, second) = request.split_at(at);
        check(&[first, second]);
    }
    check(&request.chunks(1).collect::<Vec<_>>());
    world.end();
    assert_eq!(world.totals().handler_errors, 0);
}

#[test]
fn a_request_after_trailers_has_none_of_them() {
    let mut world = SimWorld::default();
    let request = [chunked("/trailers", ECHOED), chunked("/trailers", "1\r\nx\r\n0\r\n\r\n")].concat();
    let (text, client) = world.ask(request);
    let (first, second) = text.split_at(text.rfind("HTTP/1.1 ").expect("two responses"));
    assert_eq!(dechunked(body(first)).1, TRAILERS);
    assert_eq!(dechunked(body(second)), ("x".to_owned(), "0\r\n\r\n"));
    world.finish(&client);
}

#[test]
fn trailers_follow_an_empty_body() {
    let mut world = SimWorld::default();
    for (request, expected) in [
        (chunked("/trailers", "0\r\nA: b\r\n\r\n"), "0\r\nA: b\r\n\r\n"),
        (chunked("/trailers", "0\r\n\r\n"), "0\r\n\r\n"),
        (get("/trailers?X-Only"), "0\r\nX-Only: x\r\n\r\n"),
    ] {
        let (text, client) = world.ask(request);
        assert_eq!(body(&text), expected);
        client.peer.finish();
    }
    world.end();
}

/// `http1` tests the whole list of names.
#[test]
fn a_handler_sees_no_trailer_that_is_needed_before_the_content() {
    let hidden = "Host: b\r\nContent-Length: 9\r\ntransfer-encoding: chunked\r\nAuthorization: c\r\n\
                  X-Forwarded-For: 1.2.3.4\r\nContent-Type: text/html\r\nTrailer: x\r\n";
    let mut world = SimWorld::default();
    let (text, mut client) =
        world.ask(chunked("/trailers", &format!("0\r\nA: 1\r\n{hidden}B: 2\r\nA: 3\r\n\r\n")));
    assert_eq!(body(&text), "0\r\nA: 1\r\nB: 2\r\nA: 3\r\n\r\n");
    world.assert_usable(&mut client);
    world.finish(&client);
}

#[test]
fn limits_trailers() {
    let many = |count: usize| format!("0\r\n{}\r\n", "A: b\r\n".repeat(count));
    let long = |bytes: usize| format!("0\r\nA: {}\r\n\r\n", "x".repeat(bytes - b"A: \r\n".len()));
    for (allowed, refused) in [(many(32), many(33)), (long(8192), long(8193))] {
        let mut world = SimWorld::default();
        let (text, client) = world.ask(chunked("/trailers", &allowed));
        assert_eq!(body(&text), allowed);
        client.peer.finish();
        // With its body, nothing of the response was sent when the limit was hit; then it was cut off.
        let (text, mut client) = world.ask(chunked("/trailers", &refused));
        assert!(text.starts_with("HTTP/1.1 431 "), "{text:?}");
        client.assert_closed();
        client.peer.finish();
        let mut client = world.send_pieces([chunked("/trailers", "1\r\nx\r\n"), refused.into_bytes()]);
        assert_eq!(body(&client.text()), "1\r\nx\r\n");
        client.assert_closed();
        world.finish(&client);
        let totals = world.totals();
        assert_eq!(totals.hit_trailers + totals.hit_trailer_bytes, 2);
    }
}

#[test]
fn trailers_need_a_body_in_chunks() {
    let http10 = |fields: &str| format!("GET /trailers?X-T HTTP/1.0\r\n{fields}\r\n").into_bytes();
    for (request, expected) in [
        (http10(""), ""),
        (http10("Connection: keep-alive\r\n"), ""),
        (head("HEAD", "/trailers?X-T", ""), ""),
        (chunked("/trailers?3", "3\r\nabc\r\n0\r\nX-T: x\r\n\r\n"), "abc"),
        (get("/trailers?0"), ""),
    ] {
        let mut world = SimWorld::default();
        let (text, client) = world.ask(request);
        assert_eq!(body(&text), expected);
        world.finish(&client);
        assert_eq!(world.totals().handler_errors, 0);
    }
}

#[test]
fn an_invalid_trailer_aborts_the_response() {
    for name in ["Content-Type", "SET-COOKIE", "Date", "a/b", "a:b", "transfer-encoding"] {
        let mut world = SimWorld::default();
        let target = format!("/trailers?{name}");
        let (text, mut client) = world.ask(chunked(&target, ECHOED));
        assert!(text.starts_with("HTTP/1.1 500 "), "{name}: {text:?}");
        client.assert_closed();
        client.peer.finish();
        let mut client = world.send_pieces([chunked(&target, "1\r\nx\r\n"), b"0\r\n\r\n".to_vec()]);
        assert_eq!(body(&client.text()), "1\r\nx\r\n", "{name}");
        client.assert_closed();
        world.finish(&client);
        assert_eq!(world.totals().handler_errors, 2, "{name}");
    }
}

/// The world checks that nothing is still held for them.
#[test]
fn frees_trailers_of_clients_that_disconnect() {
    let mut world = SimWorld::default();
    for at in 1..ECHOED.len() {
        let client = world.send(chunked("/trailers", &ECHOED[..at]));
        client.peer.reset();
        world.settle();
    }
    world.end();
}
