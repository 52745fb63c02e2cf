//! Deferred requests: streams, bodies read as they arrive, and everything that can end a handler early.

use shearwater_engine::{Limits, Notice, Timeouts};

use crate::harness::asking::{assert_goes_on, end, get, got, parts, post};
use crate::harness::unit::head;
use crate::harness::waiting::{ANNOUNCED_BYTES, at_work};
use crate::harness::{Setting, World};

#[test]
fn a_stream_comes_in_chunks_as_it_is_made() {
    for digit in 0..4 {
        let mut world = World::default();
        let (text, mut client) = got(&mut world, get(&format!("/stream/{digit}?3")));
        let (head, body) = parts(&text);
        assert!(
            head.contains("\r\nTransfer-Encoding: chunked") && !head.contains("Content-Length"),
            "{head}"
        );
        assert_eq!(body, "7\r\nline 0\n\r\n7\r\nline 1\n\r\n7\r\nline 2\n\r\n0\r\n\r\n", "{digit}");
        assert_goes_on(&mut world, &mut client);
        end(world, &mut client);
    }
}

#[test]
fn a_stream_to_http_1_0_ends_with_its_connection() {
    for digit in 0..4 {
        let mut world = World::default();
        let request = format!("GET /stream/{digit}?2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let (text, mut client) = got(&mut world, request);
        let (head, body) = parts(&text);
        assert!(head.contains("\r\nConnection: close") && !head.contains("Transfer-Encoding"), "{head}");
        assert_eq!(body, "line 0\nline 1\n");
        client.assert_closed();
        end(world, &mut client);
    }
}

#[test]
fn a_stream_s_head_alone_responses_head() {
    for digit in 0..4 {
        let mut world = World::default();
        let (text, mut client) = got(&mut world, head("HEAD", &format!("/stream/{digit}?3"), ""));
        let (head, body) = parts(&text);
        assert!(!head.contains("Transfer-Encoding") && !head.contains("Content-Length"), "{head}");
        assert_eq!(body, "");
        assert_goes_on(&mut world, &mut client);
        end(world, &mut client);
    }
}

#[test]
fn a_length_that_head_is_told_need_not_be_kept() {
    for digit in 0..4 {
        for sent in [0, 3, ANNOUNCED_BYTES + 2] {
            let mut world = World::default();
            let (text, mut client) = got(&mut world, head("HEAD", &format!("/announced/{digit}?{sent}"), ""));
            let (head, body) = parts(&text);
            assert!(head.contains(&format!("\r\nContent-Length: {ANNOUNCED_BYTES}")), "{head}");
            assert_eq!((body, world.totals().handler_errors), ("", 0), "{digit} {sent}");
            assert_goes_on(&mut world, &mut client);
            end(world, &mut client);
        }
    }
}

#[test]
fn an_announced_length_is_kept_or_the_connection_ends_short() {
    for digit in 0..4 {
        for sent in [0, 3, ANNOUNCED_BYTES, ANNOUNCED_BYTES + 2] {
            let mut world = World::default();
            let (text, mut client) = got(&mut world, get(&format!("/announced/{digit}?{sent}")));
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
                false => assert_goes_on(&mut world, &mut client),
            }
            end(world, &mut client);
        }
    }
}

#[test]
fn a_handler_that_gives_up_is_told_apart_from_one_that_ends() {
    for (target, is_begun) in [("/cut/0", false), ("/cut/1", true), ("/cut/2", true)] {
        let mut world = World::default();
        let (text, mut client) = got(&mut world, get(target));
        match is_begun {
            true => assert!(text.ends_with("\r\n\r\n5\r\nbegun\r\n"), "{text:?}"),
            false => assert!(text.starts_with("HTTP/1.1 500 "), "{text:?}"),
        }
        client.assert_closed();
        assert_eq!(world.totals().handler_errors, 1);
        end(world, &mut client);
    }
}

#[test]
fn a_panic_costs_its_request() {
    for digit in 0..4 {
        let mut world = World::default();
        let (text, mut client) = got(&mut world, get(&format!("/later-panics/{digit}")));
        assert!(text.starts_with("HTTP/1.1 500 "), "{text:?}");
        client.assert_closed();
        assert_eq!((world.totals().handler_panics, world.totals().responses_5xx), (1, 1));
        assert!(matches!(world.told()[..], [Notice::HandlerPanicked { .. }]));
        end(world, &mut client);
    }
}

#[test]
fn a_panic_in_a_stream_cuts_it_off() {
    for digit in 1..4 {
        let mut world = World::default();
        let (text, mut client) = got(&mut world, get(&format!("/later-panics/{digit}?begun")));
        assert!(text.ends_with("\r\n\r\n5\r\nbegun\r\n"), "no last chunk: {text:?}");
        client.assert_closed();
        assert_eq!(world.totals().handler_panics, 1);
        end(world, &mut client);
    }
}

#[test]
fn a_body_comes_back_while_it_is_sent() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(head("POST", "/mirror/0", "Transfer-Encoding: chunked\r\n"));
    world.settle();
    let text = String::from_utf8_lossy(client.read()).into_owned();
    assert!(text.starts_with("HTTP/1.1 202 Accepted\r\n") && text.ends_with("\r\n\r\n"), "{text:?}");
    for piece in ["abc", "defgh"] {
        let before = client.read().len();
        client.send(format!("{:x}\r\n{piece}\r\n", piece.len()));
        world.settle();
        let wanted = format!("{:x}\r\n{piece}\r\n", piece.len());
        assert_eq!(String::from_utf8_lossy(&client.read()[before..]), wanted);
    }
    client.send("0\r\n\r\n");
    world.settle();
    assert!(client.read().ends_with(b"\r\n0\r\n\r\n"));
    let before = client.read().len();
    client.send(get("/plain/1"));
    world.settle();
    assert!(client.read()[before..].starts_with(b"HTTP/1.1 200 OK\r\n"));
    end(world, &mut client);
}

#[test]
fn an_response_before_the_body_is_read_closes_unless_it_is_there() {
    for target in ["/unread/0", "/unread/1", "/unread/2", "/at-once/1"] {
        let mut world = World::default();
        let whole = post(target, "twelve bytes");
        let (begun, _) = whole.split_at(whole.len() - 5);
        let (text, mut client) = got(&mut world, begun);
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text:?}");
        assert!(text.contains("\r\nConnection: close\r\n"), "{text:?}");
        assert!(text.ends_with("unread\n") || text.ends_with("at once\n"), "{text:?}");
        end(world, &mut client);

        let mut world = World::default();
        let (text, mut client) = got(&mut world, &whole);
        assert!(!text.contains("Connection: close"), "{text:?}");
        assert_goes_on(&mut world, &mut client);
        end(world, &mut client);
    }
}

#[test]
fn only_who_looks_for_the_body_is_sent_it() {
    let expecting = |target: &str| head("POST", target, "Expect: 100-continue\r\nContent-Length: 3\r\n");
    let mut world = World::default();
    let (text, mut client) = got(&mut world, expecting("/unread/1"));
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "no 100: {text:?}");
    end(world, &mut client);

    let mut world = World::default();
    let (text, mut client) = got(&mut world, expecting("/hungry/0"));
    assert_eq!(text, "", "it is not hungry yet");
    world.pass(20_000);
    assert_eq!(client.read(), b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    world.pass(1000);
    assert!(client.read().ends_with(b"\r\n\r\n3\n"));
    end(world, &mut client);
}

/// Unread input is not received: it stays with the client, and costs it nothing.
#[test]
fn no_more_is_received_than_the_handler_takes() {
    const BODY: usize = 1_000_000;
    let limits = Limits { buffered_bytes_max: 400_000, ..Limits::default() };
    let timeouts = Timeouts { body_grace_ms: 1000, body_ms: 1000, ..Timeouts::default() };
    let mut world = World::new(Setting { limits, timeouts, ..Setting::default() });
    let mut client = world.connect();
    client.send(head("POST", "/hungry/0", &format!("Content-Length: {BODY}\r\n")));
    client.send(vec![b'x'; BODY]);
    world.pass(15_000);
    let received = world.totals().bytes_received;
    assert!(received < 300_000, "{received} bytes before anybody has taken one");
    assert_eq!(client.read(), b"", "the client isn't to blame");
    world.pass(40_000);
    assert!(client.read().ends_with(format!("\r\n\r\n{BODY}\n").as_bytes()));
    end(world, &mut client);
}

/// Output that the client doesn't read is not produced.
#[test]
fn no_more_is_made_than_the_client_takes() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_reading(false);
    client.send(get("/stream/0?1000000"));
    world.settle();
    let before = world.totals();
    world.pass(1000);
    assert_eq!(at_work(), 1, "it waits for room");
    assert_eq!(world.totals().bytes_sent, before.bytes_sent);
    drop(client);
    world.end();
    assert_eq!(at_work(), 0);
}

#[test]
fn a_slow_body_is_refused_and_its_handler_dropped() {
    let mut world =
        World::with_timeouts(Timeouts { body_ms: 2000, body_grace_ms: 1000, ..Timeouts::default() });
    let (text, mut client) = got(&mut world, head("POST", "/taken/0", "Content-Length: 10\r\n"));
    assert_eq!((&*text, at_work()), ("", 1));
    world.pass(5000);
    assert!(client.read().starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(client.read()));
    assert_eq!(at_work(), 0);
    end(world, &mut client);
}

#[test]
fn a_bad_body_is_refused_before_the_response_and_cut_off_behind_its_head() {
    let mut world = World::default();
    let request =
        [&head("POST", "/taken/0", "Transfer-Encoding: chunked\r\n")[..], b"3\r\nabc\r\nzz\r\n"].concat();
    let (text, mut client) = got(&mut world, request);
    assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text:?}");
    end(world, &mut client);

    let mut world = World::default();
    let (text, mut client) = got(&mut world, head("POST", "/mirror/0", "Transfer-Encoding: chunked\r\n"));
    assert!(text.starts_with("HTTP/1.1 202 "), "{text:?}");
    client.send("3\r\nabc\r\nzz\r\n");
    world.settle();
    let text = String::from_utf8_lossy(client.read()).into_owned();
    assert!(!text.contains("400") && !text.ends_with("0\r\n\r\n"), "{text:?}");
    client.assert_closed();
    end(world, &mut client);
}

#[test]
fn a_body_beyond_the_bound_is_refused() {
    let mut world = World::with_limits(Limits { body_bytes_max: 100, ..Limits::default() });
    let (text, mut client) = got(&mut world, head("POST", "/taken/0", "Content-Length: 101\r\n"));
    assert!(text.starts_with("HTTP/1.1 413 "), "{text:?}");
    assert_eq!(world.totals().requests, 0, "its handler was not called");
    let (text, _) = got(&mut world, head("POST", "/taken/0", "Content-Length: 101\r\n"));
    assert!(text.starts_with("HTTP/1.1 413 "), "{text:?}");
    assert_eq!(world.told(), [Notice::BodyTooLarge { worker: 0, bytes_max: 100 }], "it is reported once");
    end(world, &mut client);
    let mut world = World::with_limits(Limits { body_bytes_max: 100, ..Limits::default() });
    let chunk = format!("65\r\n{}\r\n0\r\n\r\n", "x".repeat(0x65));
    let request =
        [&head("POST", "/taken/1", "Transfer-Encoding: chunked\r\n")[..], chunk.as_bytes()].concat();
    let (text, mut client) = got(&mut world, request);
    assert!(text.starts_with("HTTP/1.1 413 "), "{text:?}");
    assert_eq!(world.told(), [Notice::BodyTooLarge { worker: 0, bytes_max: 100 }]);
    end(world, &mut client);
}

#[test]
fn a_client_that_is_gone_takes_its_handler_along() {
    for request in [get("/never"), head("POST", "/taken/0", "Content-Length: 10\r\n")] {
        let mut world = World::default();
        let mut client = world.connect();
        client.send(request);
        world.settle();
        assert_eq!(at_work(), 1);
        client.peer.reset();
        world.pass(3000);
        assert_eq!(at_work(), 0);
        world.end();
    }
}

#[test]
fn a_half_closed_client_gets_its_response() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(get("/later/2"));
    client.peer.finish();
    world.pass(100);
    assert!(client.read().starts_with(b"HTTP/1.1 200 OK\r\n"));
    world.end();
}

#[test]
fn a_handler_may_end_with_its_client_s_side() {
    for request in [
        get("/loyal"),
        post("/loyal-taken", "abc").into(),
        head("POST", "/loyal-taken", "Content-Length: 10\r\n"),
    ] {
        let mut world = World::default();
        let mut client = world.connect();
        client.send(request);
        world.settle();
        assert_eq!(at_work(), 1);
        client.peer.finish();
        world.pass(100);
        assert_eq!(at_work(), 0);
        client.assert_closed();
        assert_eq!(world.totals().connections_broken, 1);
        world.end();
    }
}

#[test]
fn a_body_that_ends_early_is_refused() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(post("/taken/0", "abc").replace("Content-Length: 3", "Content-Length: 4"));
    client.peer.finish();
    world.pass(100);
    assert!(client.read().starts_with(b"HTTP/1.1 400 "));
    world.end();
    assert_eq!(at_work(), 0);
}

#[test]
fn as_many_as_may_be_are_responded_later_and_no_more() {
    let mut world = World::with_limits(Limits { calls_max: 2, ..Limits::default() });
    let mut waiting: Vec<_> = (0..2).map(|_| got(&mut world, get("/never")).1).collect();
    let (text, mut refused) = got(&mut world, get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 503 "), "{text:?}");
    assert_eq!(world.totals().hit_calls, 1);
    let (text, mut other) = got(&mut world, get("/plain/0"));
    assert!(text.starts_with("HTTP/1.1 200 "), "others don't notice: {text:?}");
    waiting.pop().expect("two").peer.reset();
    world.pass(100);
    let (text, mut client) = got(&mut world, get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 200 "), "there is room again: {text:?}");
    waiting.iter_mut().chain([&mut refused, &mut other]).for_each(|client| client.peer.reset());
    end(world, &mut client);
}

#[test]
fn what_calls_hold_counts_among_what_is_buffered() {
    let mut world = World::with_limits(Limits { buffered_bytes_max: 40_000, ..Limits::default() });
    let large = || head("GET", "/never", &format!("X-Large: {}\r\n", "x".repeat(15_000)));
    let clients: Vec<_> = (0..3).map(|_| got(&mut world, large())).collect();
    let texts: Vec<_> = clients.iter().map(|(text, _)| text.get(..13).unwrap_or_default()).collect();
    assert_eq!(texts, ["", "", "HTTP/1.1 503 "]);
    clients.iter().for_each(|(_, client)| client.peer.reset());
    world.end();
}

#[test]
fn a_handler_may_go_on_behind_its_response() {
    let mut world = World::default();
    let (text, mut client) = got(&mut world, get("/background"));
    assert!(text.ends_with("answered\n"), "{text:?}");
    assert_eq!(at_work(), 1);
    assert_goes_on(&mut world, &mut client);
    world.pass(1000);
    assert_eq!(at_work(), 0);
    end(world, &mut client);
}

#[test]
fn a_drain_waits_for_handlers_and_ends_those_that_take_too_long() {
    let mut world = World::default();
    let mut clients: Vec<_> = ["/later/2", "/never"]
        .map(|target| {
            let mut client = world.connect();
            client.send(get(target));
            client
        })
        .into();
    world.turn();
    world.control.drain(5000);
    let took_ms = world.run();
    assert!((5000..6000).contains(&took_ms), "{took_ms}");
    let text = String::from_utf8_lossy(clients[0].read()).into_owned();
    assert!(text.starts_with("HTTP/1.1 200 ") && text.contains("\r\nConnection: close\r\n"), "{text:?}");
    assert_eq!(clients[1].read(), b"");
    assert_eq!((at_work(), world.totals().connections_cut_off), (0, 1));
}

/// Many waiting handlers don't delay others: a request gets its response by the next turn.
#[test]
fn ten_thousand_that_wait_hold_nobody_up() {
    const WAITING: usize = 10_000;
    let mut world = World::default();
    let mut clients: Vec<_> = (0..WAITING)
        .map(|_| {
            let mut client = world.connect();
            client.send(get("/hungry/2"));
            client
        })
        .collect();
    world.settle();
    assert_eq!(at_work(), WAITING);
    let mut quick = world.connect();
    world.settle();
    for _ in 0..10 {
        let before = quick.read().len();
        quick.send(get("/plain/1"));
        world.turn();
        world.turn();
        assert!(quick.read().len() > before, "answered by the next turn");
    }
    world.pass(25_000);
    let responded =
        clients.iter_mut().filter_map(|client| client.read().ends_with(b"\r\n\r\n0\n").then_some(()));
    assert_eq!(responded.count(), WAITING);
    clients.iter_mut().for_each(|client| client.peer.finish());
    end(world, &mut quick);
}

/// The prebuilt response has its own length.
#[test]
fn a_stream_takes_the_place_of_a_prebuilt_response() {
    let mut world = World::default();
    let (text, mut client) = got(&mut world, get("/prebuilt-stream"));
    let (head, body) = parts(&text);
    assert!(head.contains("\r\nTransfer-Encoding: chunked") && !head.contains("Content-Length"), "{head}");
    assert_eq!(body, "8\r\nstreamed\r\n0\r\n\r\n");
    assert_goes_on(&mut world, &mut client);
    end(world, &mut client);
}

#[test]
fn a_stream_with_a_bad_field_is_an_error() {
    let mut world = World::default();
    let (text, mut client) = got(&mut world, get("/bad-field-stream"));
    assert!(text.starts_with("HTTP/1.1 500 ") && !text.contains("streamed"), "{text:?}");
    end(world, &mut client);
}

/// The rest of a response to `HEAD` is never sent: the handler ends at once, whatever its length.
#[test]
fn the_head_of_a_long_stream_ends() {
    let mut world = World::default();
    let (text, mut client) = got(&mut world, head("HEAD", "/stream/0?20000", ""));
    assert!(text.starts_with("HTTP/1.1 200 ") && parts(&text).1.is_empty(), "{text:?}");
    assert_eq!(at_work(), 0);
    assert_goes_on(&mut world, &mut client);
    end(world, &mut client);
}

/// Pipelined requests get their responses, however each is handled.
#[test]
fn a_drain_responses_what_was_sent_behind() {
    for route in ["buffer/0", "taken/0", "taken/1", "later/0", "later/1"] {
        let mut world = World::default();
        let (_, mut client) = got(&mut world, get("/plain/1"));
        world.control.drain(5000);
        world.turn();
        client.send([post(&format!("/{route}"), "abc").into_bytes(), get("/plain/9")].concat());
        world.run();
        let text = String::from_utf8_lossy(client.read()).into_owned();
        assert_eq!(text.matches("HTTP/1.1 200 ").count(), 3, "{route}: {text:?}");
    }
}
