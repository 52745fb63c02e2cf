//! Deferred responses: streams, bodies read as they arrive, and everything that can end a handler early.

use shearwater_engine::{Limits, Notice, Timeouts};

use crate::harness::handlers::{ANNOUNCED_BYTES, at_work};
use crate::harness::unit::{chunked, get, head, post};
use crate::harness::{Setting, SimClient, SimWorld};

const OK: &str = "HTTP/1.1 200 ";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const CHUNKED: &str = "\r\nTransfer-Encoding: chunked";
const CLOSE: &str = "\r\nConnection: close";

fn with_calls(calls_max: usize) -> SimWorld {
    SimWorld::with_limits(Limits { calls_max, ..Limits::default() })
}

/// Returns head and body of a response.
#[track_caller]
fn parts(response: &str) -> (&str, &str) {
    response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no end of the head: {response:?}"))
}

/// Asserts a response that begins with `start` and ends with `end`, after which the connection is usable, or
/// closed.
#[track_caller]
fn assert_response(
    world: &mut SimWorld,
    request: impl AsRef<[u8]>,
    (start, end): (&str, &str),
    closes: bool,
) {
    let (text, mut client) = world.ask(request);
    assert!(text.starts_with(start) && text.ends_with(end), "{text:?}");
    match closes {
        true => client.assert_closed(),
        false => world.assert_usable(&mut client),
    }
    client.peer.finish();
    world.settle();
}

/// The digit says how the handler waits: not at all, and its pieces are sent as one.
#[test]
fn a_stream_is_framed_by_the_request() {
    let request = |digit: u8, version: &str, method: &str| {
        format!("{method} /stream/{digit}?2 HTTP/{version}\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
    };
    for digit in 0..4 {
        let chunked = match digit {
            0 => "e\r\nline 0\nline 1\n\r\n0\r\n\r\n",
            _ => "7\r\nline 0\n\r\n7\r\nline 1\n\r\n0\r\n\r\n",
        };
        for (version, method, framing, expected) in [
            ("1.1", "GET", CHUNKED, chunked),
            ("1.0", "GET", CLOSE, "line 0\nline 1\n"),
            ("1.1", "HEAD", "", ""),
        ] {
            let mut world = SimWorld::default();
            let (text, mut client) = world.ask(request(digit, version, method));
            let (head, body) = parts(&text);
            for field in [CHUNKED, CLOSE, "\r\nContent-Length"] {
                assert_eq!(head.contains(field), field == framing, "{head}");
            }
            assert_eq!(body, expected, "{method} {version} {digit}");
            match framing {
                CLOSE => client.assert_closed(),
                _ => world.assert_usable(&mut client),
            }
            world.finish(&client);
        }
    }
}

#[test]
fn a_response_to_head_needs_not_have_the_announced_length() {
    for digit in 0..4 {
        for sent in [0, 3, ANNOUNCED_BYTES + 2] {
            let mut world = SimWorld::default();
            let request = head("HEAD", &format!("/announced/{digit}?{sent}"), "");
            let (text, mut client) = world.ask(request);
            let (head, body) = parts(&text);
            assert!(head.contains(&format!("\r\nContent-Length: {ANNOUNCED_BYTES}")), "{head}");
            assert_eq!((body, world.totals().handler_errors), ("", 0), "{digit} {sent}");
            world.assert_usable(&mut client);
            world.finish(&client);
        }
    }
}

#[test]
fn a_response_has_the_announced_length_or_the_connection_ends_short() {
    for digit in 0..4 {
        for sent in [0, 3, ANNOUNCED_BYTES, ANNOUNCED_BYTES + 2] {
            let mut world = SimWorld::default();
            let (text, mut client) = world.ask(get(&format!("/announced/{digit}?{sent}")));
            let faults = u64::from(sent != ANNOUNCED_BYTES);
            assert_eq!(world.totals().handler_errors, faults, "{digit} {sent}");
            if sent == 0 || sent < ANNOUNCED_BYTES && digit == 0 {
                // Nothing was sent yet: a rejection is possible.
                assert!(text.starts_with("HTTP/1.1 500 "), "{digit} {sent}: {text:?}");
            } else {
                let (head, body) = parts(&text);
                assert!(head.contains(&format!("\r\nContent-Length: {ANNOUNCED_BYTES}")), "{head}");
                assert_eq!(body.len() as u64, sent.min(ANNOUNCED_BYTES), "{digit} {sent}");
            }
            match sent < ANNOUNCED_BYTES {
                true => client.assert_closed(),
                false => world.assert_usable(&mut client),
            }
            world.finish(&client);
        }
    }
}

/// Before the response has begun a failure is a 500, afterwards the stream is cut off.
#[test]
fn a_failing_handler_costs_its_request() {
    const FAILED: (&str, &str) = ("HTTP/1.1 500 ", "Internal Server Error\n");
    const CUT_OFF: (&str, &str) = (OK, "\r\n\r\n5\r\nbegun\r\n");
    for (target, response) in [
        ("/cut/0", FAILED),
        ("/cut/1", CUT_OFF),
        ("/cut/2", CUT_OFF),
        ("/later-panics/0", FAILED),
        ("/later-panics/1", FAILED),
        ("/later-panics/2", FAILED),
        ("/later-panics/3", FAILED),
        ("/later-panics/1?begun", CUT_OFF),
        ("/later-panics/2?begun", CUT_OFF),
        ("/later-panics/3?begun", CUT_OFF),
        ("/bad-field-stream", FAILED),
    ] {
        println!("{target}");
        let mut world = SimWorld::default();
        assert_response(&mut world, get(target), response, true);
        let totals = world.totals();
        let is_panic = target.contains("panics");
        let faults = (totals.handler_panics, totals.handler_errors);
        assert_eq!(faults, (u64::from(is_panic), u64::from(!is_panic)));
        assert_eq!(totals.responses_5xx, u64::from(response == FAILED));
        assert!(!is_panic || matches!(world.notices()[..], [Notice::HandlerPanicked { .. }]));
        world.end();
    }
}

#[test]
fn echoes_a_body_while_it_arrives() {
    let mut world = SimWorld::default();
    let mut client = world.send(chunked("/mirror/0", ""));
    let text = client.text();
    assert!(text.starts_with("HTTP/1.1 202 Accepted\r\n") && text.ends_with("\r\n\r\n"), "{text:?}");
    for chunk in ["3\r\nabc\r\n", "5\r\ndefgh\r\n", "0\r\n\r\n"] {
        client.got.clear();
        world.feed(&mut client, chunk);
        assert_eq!(client.text(), chunk);
    }
    world.assert_usable(&mut client);
    world.finish(&client);
}

#[test]
fn a_response_before_the_body_is_read_closes_unless_the_body_is_there() {
    for target in ["/unread/0", "/unread/1", "/unread/2", "/at-once/1"] {
        let end = if target.starts_with("/unread") { "unread\n" } else { "at once\n" };
        let whole = post(target, "twelve bytes");
        let mut world = SimWorld::default();
        assert_response(&mut world, &whole[..whole.len() - 5], (OK, end), true);
        assert_response(&mut world, &whole, (OK, end), false);
        world.end();
    }
}

#[test]
fn a_100_continue_is_sent_when_the_handler_reads_the_body() {
    let expecting = |target: &str| head("POST", target, "Expect: 100-continue\r\nContent-Length: 3\r\n");
    let mut world = SimWorld::default();
    let (text, client) = world.ask(expecting("/unread/1"));
    assert!(text.starts_with(OK), "no 100: {text:?}");
    world.finish(&client);

    let mut world = SimWorld::default();
    let (text, mut client) = world.ask(expecting("/hungry/0"));
    assert_eq!(text, "", "it doesn't read yet");
    world.pass(20_000);
    assert_eq!(client.read(), CONTINUE);
    client.send("abc");
    world.pass(1000);
    assert!(client.read().ends_with(b"\r\n\r\n3\n"));
    world.finish(&client);
}

/// Unread input is not received: it stays with the client, and costs it nothing.
#[test]
fn receives_no_more_than_the_handler_takes() {
    const BODY: usize = 1_000_000;
    let limits = Limits { buffered_bytes_max: 400_000, ..Limits::default() };
    let timeouts = Timeouts { body_grace_ms: 1000, body_ms: 1000, ..Timeouts::default() };
    let mut world = SimWorld::new(Setting { limits, timeouts, ..Setting::default() });
    let mut client = world.connect();
    client.send(head("POST", "/hungry/0", &format!("Content-Length: {BODY}\r\n")));
    client.send(vec![b'x'; BODY]);
    world.pass(15_000);
    let received = world.totals().bytes_received;
    assert!(received < 300_000, "{received} bytes before the handler has taken one");
    assert_eq!(client.read(), b"", "the client doesn't cause the delay");
    world.pass(40_000);
    assert!(client.read().ends_with(format!("\r\n\r\n{BODY}\n").as_bytes()));
    world.finish(&client);
}

/// Output that the client doesn't read is not produced.
#[test]
fn makes_no_more_than_the_client_takes() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.peer.set_reading(false);
    world.feed(&mut client, get("/stream/0?1000000"));
    let before = world.totals();
    world.pass(1000);
    assert_eq!(at_work(), 1, "it waits for room");
    assert_eq!(world.totals().bytes_sent, before.bytes_sent);
    drop(client);
    world.end();
}

#[test]
fn a_slow_body_is_rejected_and_its_handler_dropped() {
    let mut world =
        SimWorld::with_timeouts(Timeouts { body_ms: 2000, body_grace_ms: 1000, ..Timeouts::default() });
    let (text, mut client) = world.ask(head("POST", "/taken/0", "Content-Length: 10\r\n"));
    assert_eq!((&*text, at_work()), ("", 1));
    world.pass(5000);
    assert!(client.read().starts_with(b"HTTP/1.1 408 "), "{}", client.text());
    assert_eq!(at_work(), 0);
    world.finish(&client);
}

#[test]
fn a_bad_body_is_rejected_before_the_response_and_cut_off_after_its_head() {
    let mut world = SimWorld::default();
    let bad = "3\r\nabc\r\nzz\r\n";
    assert_response(&mut world, chunked("/taken/0", bad), ("HTTP/1.1 400 Bad Request\r\n", ""), true);
    let (text, mut client) = world.ask(chunked("/mirror/0", ""));
    assert!(text.starts_with("HTTP/1.1 202 "), "{text:?}");
    world.feed(&mut client, bad);
    let text = client.text();
    assert!(!text.contains("400") && !text.ends_with("0\r\n\r\n"), "{text:?}");
    client.assert_closed();
    world.finish(&client);
    let early_end = post("/taken/0", "abc").replace("Content-Length: 3", "Content-Length: 4");
    let mut client = world.send(early_end);
    world.finish(&client);
    assert!(client.read().starts_with(b"HTTP/1.1 400 "));
}

#[test]
fn a_body_beyond_the_limit_is_rejected_and_reported_once() {
    let chunks = format!("65\r\n{}\r\n0\r\n\r\n", "x".repeat(0x65));
    for (request, calls) in
        [(head("POST", "/taken/0", "Content-Length: 101\r\n"), Some(0)), (chunked("/taken/1", &chunks), None)]
    {
        let mut world = SimWorld::with_limits(Limits { body_bytes_max: 100, ..Limits::default() });
        for _ in 0..2 {
            assert_response(&mut world, &request, ("HTTP/1.1 413 ", ""), true);
        }
        assert!(calls.is_none_or(|calls| world.totals().requests == calls), "its handler was called");
        assert_eq!(world.notices(), [Notice::BodyTooLarge { worker: 0, bytes_max: 100 }]);
        world.end();
    }
}

#[test]
fn as_many_responses_are_deferred_as_allowed() {
    let mut world = with_calls(2);
    let mut clients: Vec<_> = (0..2).map(|_| world.ask(get("/never")).1).collect();
    for target in ["/later/0", "/polled-now/0"] {
        let (text, refused) = world.ask(get(target));
        assert!(text.starts_with("HTTP/1.1 503 "), "{text:?}");
        clients.push(refused);
    }
    assert_eq!((world.totals().hit_calls, at_work()), (2, 2), "nothing was polled without room");
    let (text, refused) = world.ask(head("HEAD", "/later/0", ""));
    assert!(text.starts_with("HTTP/1.1 503 ") && text.ends_with("\r\n\r\n"), "{text:?}");
    clients.push(refused);
    let (text, client) = world.ask(get("/plain/0"));
    assert!(text.starts_with(OK), "others don't notice: {text:?}");
    clients.push(client);
    clients[0].peer.reset();
    world.pass(100);
    for (target, end) in [("/later/0", ""), ("/polled-now/1", "later\n")] {
        assert_response(&mut world, get(target), (OK, end), false);
    }
    clients.iter().for_each(|client| client.peer.reset());
    world.end();
}

#[test]
fn a_handler_may_continue_after_its_response() {
    let mut world = SimWorld::default();
    let (text, mut client) = world.ask(get("/background"));
    assert!(text.ends_with("responded\n"), "{text:?}");
    assert_eq!(at_work(), 1);
    world.assert_usable(&mut client);
    world.pass(1000);
    assert_eq!(at_work(), 0);
    world.finish(&client);
}

#[test]
fn a_drain_waits_for_handlers_and_ends_those_that_take_too_long() {
    let mut world = SimWorld::default();
    let mut clients = [world.connect(), world.connect()];
    clients[0].send(get("/later/2"));
    clients[1].send(get("/never"));
    world.turn();
    world.control.drain(5000);
    let took_ms = world.run();
    assert!((5000..6000).contains(&took_ms), "{took_ms}");
    let text = clients[0].text();
    assert!(text.starts_with(OK) && text.contains(CLOSE), "{text:?}");
    assert_eq!(clients[1].read(), b"");
    assert_eq!((at_work(), world.totals().connections_cut_off), (0, 1));
}

/// Pipelined requests get their responses, however each is handled.
#[test]
fn a_drain_serves_pipelined_requests() {
    for route in ["buffer/0", "taken/0", "taken/1", "later/0", "later/1"] {
        let mut world = SimWorld::default();
        let (_, mut client) = world.ask(get("/plain/1"));
        world.control.drain(5000);
        world.turn();
        client.send([post(&format!("/{route}"), "abc").into_bytes(), get("/plain/9")].concat());
        world.run();
        let text = client.text();
        assert_eq!(text.matches(OK).count(), 3, "{route}: {text:?}");
    }
}

/// Many waiting handlers don't delay others: a request gets its response by the next turn.
#[test]
fn two_thousand_waiting_handlers_delay_no_other() {
    const WAITING: usize = 2_000;
    let mut world = SimWorld::default();
    let mut clients: Vec<SimClient> = (0..WAITING).map(|_| world.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(get("/hungry/2")));
    world.settle();
    assert_eq!(at_work(), WAITING);
    let mut quick = world.connect();
    world.settle();
    for _ in 0..10 {
        let before = quick.read().len();
        quick.send(get("/plain/1"));
        world.turn();
        world.turn();
        assert!(quick.read().len() > before, "by the next turn");
    }
    world.pass(25_000);
    assert!(clients.iter_mut().all(|client| client.read().ends_with(b"\r\n\r\n0\n")));
    clients.iter_mut().for_each(|client| client.peer.finish());
    world.finish(&quick);
}

/// The prebuilt response has its own length.
#[test]
fn a_stream_replaces_a_prebuilt_response() {
    let mut world = SimWorld::default();
    let (text, mut client) = world.ask(get("/prebuilt-stream"));
    let (head, body) = parts(&text);
    assert!(head.contains(CHUNKED) && !head.contains("Content-Length"), "{head}");
    assert_eq!(body, "8\r\nstreamed\r\n0\r\n\r\n");
    world.assert_usable(&mut client);
    world.finish(&client);
}

/// The rest of a response to `HEAD` is never sent: the handler ends at once, whatever its length.
#[test]
fn the_head_of_a_long_stream_ends() {
    let mut world = SimWorld::default();
    let (text, mut client) = world.ask(head("HEAD", "/stream/0?20000", ""));
    assert!(text.starts_with(OK) && parts(&text).1.is_empty(), "{text:?}");
    assert_eq!(at_work(), 0);
    world.assert_usable(&mut client);
    world.finish(&client);
}

#[test]
fn polling_at_once_changes_no_turn() {
    let turns = |target: &str, end: &str| {
        let mut world = SimWorld::default();
        let mut client = world.connect();
        client.send(get(target));
        let turns = (1..10).find(|_| {
            world.turn();
            !client.read().is_empty()
        });
        let text = client.text();
        assert!(text.ends_with(end), "{text:?}");
        world.assert_usable(&mut client);
        world.finish(&client);
        turns.expect("a response")
    };
    turns("/polled-now/0", "\r\n\r\nat once\n");
    for yields in [1, 3] {
        let usual = turns(&format!("/later/{yields}"), "");
        assert_eq!(turns(&format!("/polled-now/{yields}"), "\r\n\r\nlater\n"), usual);
    }
}
