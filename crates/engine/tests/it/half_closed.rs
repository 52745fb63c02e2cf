//! Clients that are half-closed or disconnected while a handler is at work on their request.

use shearwater_engine::{Limits, Timeouts};

use crate::harness::World;
use crate::harness::asking::{get, got, post};
use crate::harness::unit::head;
use crate::harness::waiting::{TICK_MS, at_work};

const HALF_CLOSED_MS: u64 = 30_000;
/// Tolerance of deadlines.
const LATE_MS: u64 = 300;

/// Input after a request: none, the first byte of another request, or a whole one.
const BEHIND: [&[u8]; 3] = [b"", b"G", b"GET /plain/1 HTTP/1.1\r\nHost: a\r\n\r\n"];

/// A request without a response, followed by this input; its handler is at work.
fn waiting(world: &mut World, target: &str, behind: &[u8]) -> crate::harness::Client {
    let (text, mut client) = got(world, get(target));
    assert!(text.is_empty(), "{text:?}");
    client.send(behind);
    world.settle();
    client
}

#[test]
fn drops_the_handler_of_a_half_closed_client_in_time() {
    for behind in BEHIND {
        let mut world = World::default();
        let client = waiting(&mut world, "/never", behind);
        client.peer.finish();
        world.pass(HALF_CLOSED_MS - LATE_MS);
        assert_eq!((at_work(), world.totals().hit_half_closed_ms), (1, 0), "{behind:?}");
        world.pass(3 * LATE_MS);
        assert_eq!((at_work(), world.totals().hit_half_closed_ms), (0, 1), "{behind:?}");
        assert_eq!(world.net.connections(), 0);
        world.end();
    }
}

#[test]
fn drops_the_handler_at_a_reset() {
    for behind in BEHIND {
        let mut world = World::default();
        let client = waiting(&mut world, "/never", behind);
        client.peer.reset();
        world.pass(LATE_MS);
        assert_eq!((at_work(), world.totals().connections_broken), (0, 1), "{behind:?}");
        world.end();
    }
}

#[test]
fn drops_a_handler_that_ends_with_its_client_at_a_fin() {
    for behind in BEHIND {
        let mut world = World::default();
        let client = waiting(&mut world, "/loyal", behind);
        client.peer.finish();
        world.pass(LATE_MS);
        assert_eq!((at_work(), world.totals().connections_broken), (0, 1), "{behind:?}");
        world.end();
    }
}

#[test]
fn responses_a_half_closed_client_within_the_time() {
    for (behind, responses) in [(BEHIND[0], "200"), (BEHIND[1], "200 400"), (BEHIND[2], "200 200")] {
        let mut world = World::default();
        let mut client = waiting(&mut world, "/hungry/0", behind);
        client.peer.finish();
        world.pass(21_000);
        let text = String::from_utf8_lossy(client.read()).into_owned();
        let statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|response| &response[..3]).collect();
        assert_eq!(statuses.join(" "), responses, "{text:?}");
        client.assert_closed();
        world.end();
    }
}

/// The client sends a FIN during its first response; the handler of the next request begins afterwards.
#[test]
fn bounds_a_handler_that_begins_after_the_fin() {
    for target in ["/never", "/loyal"] {
        let mut world = World::default();
        let (_, mut client) = got(&mut world, get("/plain/1"));
        client.peer.set_reading(false);
        client.peer.set_window(10);
        client.send(get("/plain/2"));
        world.settle();
        client.send([get(target), b"G".to_vec()].concat());
        client.peer.finish();
        world.settle();
        assert_eq!(at_work(), 0, "the second answer is on its way");
        client.peer.set_reading(true);
        world.pass(LATE_MS);
        world.pass(HALF_CLOSED_MS + LATE_MS);
        assert_eq!((at_work(), world.net.connections()), (0, 0), "{target}");
        world.end();
    }
}

/// The body arrives after its head, so that its deadline is armed before the handler begins.
#[test]
fn bounds_a_handler_that_begins_after_a_separate_body_and_the_fin() {
    for (target, lasts_ms) in [("/never", 60_000), ("/never", 10_000), ("/loyal", 0)] {
        let mut world =
            World::with_timeouts(Timeouts { half_closed_ms: lasts_ms.max(1), ..Timeouts::default() });
        let (_, mut client) = got(&mut world, get("/plain/1"));
        client.peer.set_reading(false);
        client.peer.set_window(10);
        client.send(get("/plain/2"));
        world.settle();
        client.send(head("POST", target, "Transfer-Encoding: chunked\r\n"));
        client.send("1\r\nx\r\n0\r\n\r\n");
        client.peer.finish();
        world.settle();
        assert_eq!(at_work(), 0, "the second answer is on its way");
        client.peer.set_reading(true);
        world.pass(LATE_MS);
        assert_eq!(at_work(), usize::from(lasts_ms > 0), "{target}");
        world.pass(lasts_ms.saturating_sub(2 * LATE_MS));
        assert_eq!(at_work(), usize::from(lasts_ms > 0), "{target}");
        world.pass(3 * LATE_MS);
        assert_eq!((at_work(), world.net.connections()), (0, 0), "{target}");
        assert_eq!(world.totals().hit_half_closed_ms, u64::from(lasts_ms > 0), "{target}");
        world.end();
    }
}

#[test]
fn restarts_the_time_with_each_send() {
    // The handler of the second one never reads its body, so receiving stays paused.
    let requests = [
        [get("/ticks?5"), b"G".to_vec()].concat(),
        post("/unread-ticks?5", &"x".repeat(300_000)).into_bytes(),
    ];
    for request in requests {
        for (half_closed_ms, lines) in [(TICK_MS + 1000, 5), (TICK_MS - 1000, 0)] {
            let mut world = World::with_timeouts(Timeouts { half_closed_ms, ..Timeouts::default() });
            let mut client = world.connect();
            client.send(&request);
            world.settle();
            client.peer.finish();
            world.pass(6 * TICK_MS);
            let text = String::from_utf8_lossy(client.read()).into_owned();
            assert_eq!(text.matches("tick").count(), lines, "{text:?}");
            assert_eq!((at_work(), world.totals().hit_half_closed_ms), (0, u64::from(lines == 0)));
            world.end();
        }
    }
}

/// A handler that stops reading its body keeps receiving paused: the FIN follows unread input.
#[test]
fn bounds_a_handler_that_takes_no_more_of_its_body() {
    for (half_closed_ms, is_responded) in [(25_000, true), (10_000, false)] {
        let mut world = World::with_timeouts(Timeouts { half_closed_ms, ..Timeouts::default() });
        let mut client = world.connect();
        client.send(post("/hungry/0", &"x".repeat(300_000)));
        world.settle();
        assert!(client.peer.unread() > 0, "no more is received than the handler takes");
        client.peer.finish();
        world.pass(40_000);
        let text = String::from_utf8_lossy(client.read()).into_owned();
        assert_eq!((text.ends_with("300000\n"), at_work()), (is_responded, 0), "{text:?}");
        assert_eq!(world.totals().hit_half_closed_ms, u64::from(!is_responded));
        world.end();
    }
}

/// A client that stays connected may be silent indefinitely.
#[test]
fn leaves_open_clients_alone() {
    let mut world = World::default();
    let client = waiting(&mut world, "/never", b"G");
    let mut trickling = world.connect();
    trickling.send(head("GET", "/never", ""));
    world.pass(10 * HALF_CLOSED_MS);
    assert_eq!((at_work(), world.totals().hit_half_closed_ms), (2, 0));
    client.peer.reset();
    trickling.peer.reset();
    world.end();
}

#[test]
fn frees_the_calls_of_clients_that_are_gone() {
    const CALLS_MAX: usize = 100;
    let mut world = World::with_limits(Limits { calls_max: CALLS_MAX, ..Limits::default() });
    let gone: Vec<_> =
        (0..CALLS_MAX).map(|number| waiting(&mut world, "/never", BEHIND[number % 3])).collect();
    gone.iter().for_each(|client| client.peer.close());
    let (text, _) = got(&mut world, get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 503 "), "{text:?}");
    world.pass(HALF_CLOSED_MS + LATE_MS);
    let (text, client) = got(&mut world, get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 200 "), "{text:?}");
    client.peer.finish();
    world.end();
}
