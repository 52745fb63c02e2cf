//! Deadlines of deferred requests, while bytes flow in both directions.

use shearwater_engine::Timeouts;

use crate::harness::asking::{end, get, got};
use crate::harness::unit::head;
use crate::harness::waiting::at_work;
use crate::harness::{Setting, World};

/// A client that sends this and reads nothing, but may send a byte more.
fn who_takes_nothing(request: &[u8], more: &[u8]) -> World {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_reading(false);
    client.send(request);
    world.pass(1000);
    assert_eq!(at_work(), 1);
    client.send(more);
    world.pass(300_000);
    assert_eq!(client.peer.saw_reset(), world.net.connections() == 0);
    world
}

/// Neither an expected nor an incoming body postpones the deadline of a send.
#[test]
fn who_takes_nothing_is_ended_whatever_the_body_does() {
    for (expect, more) in [("", ""), ("Expect: 100-continue\r\n", ""), ("Expect: 100-continue\r\n", "a")] {
        let request = head("POST", "/flood", &format!("{expect}Content-Length: 10\r\n"));
        let mut world = who_takes_nothing(&request, more.as_bytes());
        assert_eq!((at_work(), world.totals().hit_write_ms), (0, 1), "{expect:?} {more:?}");
        world.end();
    }
}

#[test]
fn a_body_that_trickles_in_puts_nothing_off() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_reading(false);
    client.send(head("POST", "/speaks-first", "Content-Length: 5000000\r\n"));
    for _ in 0..100 {
        client.send([b'a'; 2400]);
        world.pass(5000);
    }
    assert_eq!((at_work(), world.totals().hit_write_ms), (0, 1), "500 s without a byte taken");
    world.end();
}

/// During a send the client is measured by its reading, not its sending.
#[test]
fn the_deadline_of_a_body_is_none_of_what_is_sent() {
    for body in [0, 100] {
        let timeouts = Timeouts { body_ms: 2000, body_grace_ms: 2000, ..Timeouts::default() };
        let mut world = World::with_timeouts(timeouts);
        let mut client = world.connect();
        client.peer.set_reading(false);
        client.send(head("POST", "/speaks-first", "Content-Length: 5000000\r\n"));
        world.pass(8000);
        client.send(vec![b'a'; body]);
        world.pass(10_000);
        assert!(!client.peer.saw_reset() && at_work() == 1, "{body}: 18 s of 60");
        client.peer.reset();
        world.end();
    }
}

/// After another request as on its own: a client that waits for `100 Continue` has no deadline until the
/// handler reads the body.
#[test]
fn who_expects_behind_another_request_is_not_timed_out() {
    let timeouts = Timeouts { body_ms: 2000, body_grace_ms: 2000, ..Timeouts::default() };
    let mut world = World::with_timeouts(timeouts);
    let requests =
        [get("/plain/1"), head("POST", "/hungry/0", "Expect: 100-continue\r\nContent-Length: 3\r\n")]
            .concat();
    let (text, mut client) = got(&mut world, requests);
    assert!(text.starts_with("HTTP/1.1 200 ") && !text.contains("100 Continue"), "{text:?}");
    world.pass(21_000);
    let text = String::from_utf8_lossy(client.read()).into_owned();
    assert!(text.ends_with("HTTP/1.1 100 Continue\r\n\r\n"), "{text:?}");
    client.send("abc");
    world.pass(1000);
    assert!(client.read().ends_with(b"\r\n\r\n3\n"));
    end(world, &mut client);
}

/// Single bytes at intervals, echoed or not: the body is below the minimum rate.
#[test]
fn a_trickled_body_ends_though_it_is_mirrored() {
    for route in ["taken", "mirror"] {
        let mut world = World::default();
        let mut client = world.connect();
        client.send(head("POST", &format!("/{route}/0"), "Content-Length: 100000\r\n"));
        for _ in 0..30 {
            client.send("a");
            world.pass(9000);
        }
        assert_eq!((at_work(), world.totals().hit_body_rate), (0, 1), "{route}: {}", world.totals());
        world.end();
    }
}

/// An expired sleep that is never awaited doesn't keep the worker awake.
#[test]
fn a_sleep_of_nobody_does_not_spin() {
    let turns = |target: &str| {
        let mut world = World::new(Setting::default());
        let (text, _client) = got(&mut world, get(target));
        assert!(text.starts_with("HTTP/1.1 200 "), "{text:?}");
        let mut turns = 0;
        while world.net.connections() > 0 && turns < 1000 {
            world.turn();
            turns += 1;
        }
        turns
    };
    let usual = turns("/later/0");
    assert!(usual < 100, "{usual} turns");
    assert!(turns("/forgets-sleep") <= usual + 2, "the second of the sleep costs a turn");
}
