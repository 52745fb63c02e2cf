//! The engine's limits over real sockets: the client can read the response, and isn't reset while it still sends.

use shearwater::{App, Limits, Request, Response, Server, Timeouts, Totals};

use crate::client::Client;
use crate::served::{Served, here};

/// Bytes that a client sends after it was rejected.
const MORE_BYTES: usize = 1024 * 1024;

fn served(server: Server) -> Served {
    Served::of(server, App::of(|_: &Request, _: &mut Response| {}))
}

fn small() -> Server {
    let limits =
        Limits { head_bytes_max: 2000, target_bytes_max: 1000, body_bytes_max: 1000, ..Limits::default() };
    here().limits(limits)
}

/// Sends an invalid request and much more before it reads the response.
#[track_caller]
fn refused(client: &mut Client, sent: impl AsRef<[u8]>, status: u16) {
    client.send(sent).send(vec![b'x'; MORE_BYTES]);
    let response = client.response("GET");
    assert_eq!((response.status, response.field("Connection")), (status, Some("close")));
    // Sending continues after the end of the response, without a reset.
    client.send(vec![b'x'; MORE_BYTES]).is_ended();
    client.send(vec![b'x'; MORE_BYTES]).end_sending().is_ended();
}

#[track_caller]
fn one_refused(served: Served) -> Totals {
    let totals = served.stop();
    assert_eq!((totals.requests, totals.requests_refused, totals.connections_broken), (0, 1, 0));
    totals
}

#[test]
fn a_large_head_is_431() {
    let served = served(small());
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(2000));
    refused(&mut served.connect(), head, 431);
    one_refused(served);
}

#[test]
fn many_fields_are_431() {
    let served = served(here());
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(100));
    refused(&mut served.connect(), head, 431);
    one_refused(served);
}

#[test]
fn a_long_target_is_414() {
    let served = served(small());
    refused(&mut served.connect(), format!("GET /{}", "x".repeat(1000)), 414);
    one_refused(served);
}

#[test]
fn a_large_body_is_413_at_its_head() {
    let served = served(small());
    refused(&mut served.connect(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413);
    one_refused(served);
}

#[test]
fn a_large_body_in_chunks_is_413_when_it_has_grown() {
    let served = served(small());
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n";
    refused(&mut served.connect(), head, 413);
    one_refused(served);
}

#[test]
fn what_is_exactly_as_large_as_allowed_is_served() {
    let served = served(small());
    let mut client = served.connect();
    assert_eq!(client.request("GET", &format!("/{}", "x".repeat(999)), &[]).status, 200);
    let fixed = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(2000 - fixed)));
    assert_eq!(client.response("GET").status, 200);
    client.ask("POST", "/", &["Content-Length: 1000"]).send([b'x'; 1000]);
    assert_eq!(client.response("POST").status, 200);
}

#[test]
fn what_takes_too_long_is_408() {
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
fn a_connection_that_says_nothing_is_closed_in_silence() {
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
fn an_idle_connection_is_closed_in_silence() {
    let served = served(here().timeouts(Timeouts { idle_ms: 1, ..Timeouts::default() }));
    let mut client = served.connect();
    assert_eq!(client.request("GET", "/", &[]).status, 200);
    client.is_ended();
    assert_eq!(served.stop().hit_idle_ms, 1);
}
