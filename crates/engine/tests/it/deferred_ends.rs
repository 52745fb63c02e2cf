//! Ends of deferred requests: clients that are half-closed or gone, deadlines while bytes flow in both
//! directions, and memory, which is bounded and freed.

use shearwater_engine::limits::CALL_INPUT_BYTES_MAX;
use shearwater_engine::{Limits, Timeouts};

use crate::harness::handlers::{TICK_MS, at_work};
use crate::harness::unit::{chunked, get, head, post};
use crate::harness::{SimClient, SimWorld};

const HALF_CLOSED_MS: u64 = 30_000;
/// Tolerance of deadlines.
const LATE_MS: u64 = 300;
/// Input after a request: none, the first byte of another request, or a whole one.
const NEXT: [&[u8]; 3] = [b"", b"G", b"GET /plain/1 HTTP/1.1\r\nHost: a\r\n\r\n"];

/// Room for two of [`large`], not for three.
const TWO_LARGE_BYTES: usize = 40_000;
/// Repetitions after which leaked memory would exceed the limit.
const ROUNDS: usize = 8;

/// A request whose handler is at work, followed by this input.
fn waiting(world: &mut SimWorld, request: impl AsRef<[u8]>, next: &[u8]) -> SimClient {
    let (text, mut client) = world.ask(request);
    assert_eq!((&*text, at_work() > 0), ("", true));
    world.feed(&mut client, next);
    client
}

#[test]
fn drops_the_handler_of_a_half_closed_client_in_time() {
    for next in NEXT {
        let mut world = SimWorld::default();
        let client = waiting(&mut world, get("/never"), next);
        client.peer.finish();
        world.pass(HALF_CLOSED_MS - LATE_MS);
        assert_eq!((at_work(), world.totals().hit_half_closed_ms), (1, 0), "{next:?}");
        world.pass(3 * LATE_MS);
        assert_eq!((at_work(), world.totals().hit_half_closed_ms), (0, 1), "{next:?}");
        assert_eq!(world.net.connections(), 0);
        world.end();
    }
}

/// At a reset, and at a FIN if the handler asked for that.
#[test]
fn drops_the_handler_of_a_client_that_is_gone() {
    let half_read = head("POST", "/taken/0", "Content-Length: 10\r\n");
    let loyal_half_read = head("POST", "/loyal-taken", "Content-Length: 10\r\n");
    for (request, is_reset) in [
        (get("/never"), true),
        (half_read, true),
        (get("/loyal"), false),
        (post("/loyal-taken", "abc").into_bytes(), false),
        (loyal_half_read, false),
    ] {
        for next in NEXT.into_iter().take(if request.starts_with(b"GET") { 3 } else { 1 }) {
            let mut world = SimWorld::default();
            let mut client = waiting(&mut world, &request, next);
            match is_reset {
                true => client.peer.reset(),
                false => client.peer.finish(),
            }
            world.pass(LATE_MS);
            assert_eq!((at_work(), world.totals().connections_broken), (0, 1), "{next:?}");
            client.read();
            assert!(client.peer.saw_fin() || is_reset);
            world.end();
        }
    }
}

/// The handler ends with its client, whose FIN has arrived before the handler begins.
#[test]
fn drops_a_handler_that_reads_its_body_and_ends_with_a_client_that_has_gone_before() {
    let mut world = SimWorld::default();
    let (_, client) = world.ask(get("/ticks?1"));
    client.peer.write(post("/loyal-taken", "abc").as_bytes());
    world.settle();
    client.peer.finish();
    world.pass(TICK_MS + 2 * LATE_MS);
    assert_eq!((at_work(), world.totals().connections_broken), (0, 1));
    world.end();
}

#[test]
fn responds_to_a_half_closed_client_within_the_time() {
    for (next, expected) in NEXT.into_iter().zip(["200", "200 400", "200 200"]) {
        let mut world = SimWorld::default();
        let mut client = waiting(&mut world, get("/hungry/0"), next);
        client.peer.finish();
        world.pass(21_000);
        let text = client.text();
        let statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|response| &response[..3]).collect();
        assert_eq!(statuses.join(" "), expected, "{text:?}");
        client.assert_closed();
        world.end();
    }
}

/// Returns a client whose second response waits for it to read, and which has sent this and a FIN meanwhile.
fn half_closed_during_a_response(world: &mut SimWorld, next: [&[u8]; 2]) -> SimClient {
    let (_, mut client) = world.ask(get("/plain/1"));
    client.stop_reading(10);
    world.feed(&mut client, get("/plain/2"));
    next.into_iter().for_each(|piece| client.send(piece));
    client.peer.finish();
    world.settle();
    assert_eq!(at_work(), 0, "the second response is in flight");
    client.peer.set_reading(true);
    world.pass(LATE_MS);
    client
}

#[test]
fn limits_a_handler_that_begins_after_the_fin() {
    for target in ["/never", "/loyal"] {
        let mut world = SimWorld::default();
        half_closed_during_a_response(&mut world, [&get(target), b"G"]);
        world.pass(HALF_CLOSED_MS + LATE_MS);
        assert_eq!((at_work(), world.net.connections()), (0, 0), "{target}");
        world.end();
    }
}

/// The body arrives after its head, so that its deadline is armed before the handler begins.
#[test]
fn limits_a_handler_that_begins_after_a_separate_body_and_the_fin() {
    for (target, lasts_ms) in [("/never", 60_000), ("/never", 10_000), ("/loyal", 0)] {
        let timeouts = Timeouts { half_closed_ms: lasts_ms.max(1), ..Timeouts::default() };
        let mut world = SimWorld::with_timeouts(timeouts);
        half_closed_during_a_response(&mut world, [&chunked(target, ""), b"1\r\nx\r\n0\r\n\r\n"]);
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
fn each_send_restarts_the_time_of_a_half_closed_client() {
    // The handler of the second one never reads its body, so receiving stays paused.
    let requests = [
        [get("/ticks?5"), b"G".to_vec()].concat(),
        post("/unread-ticks?5", &"x".repeat(300_000)).into_bytes(),
    ];
    for request in requests {
        for (half_closed_ms, lines) in [(TICK_MS + 1000, 5), (TICK_MS - 1000, 0)] {
            let mut world = SimWorld::with_timeouts(Timeouts { half_closed_ms, ..Timeouts::default() });
            let mut client = world.send(&request);
            client.peer.finish();
            world.pass(6 * TICK_MS);
            let text = client.text();
            assert_eq!(text.matches("tick").count(), lines, "{text:?}");
            assert_eq!((at_work(), world.totals().hit_half_closed_ms), (0, u64::from(lines == 0)));
            world.end();
        }
    }
}

/// A handler that stops reading its body keeps receiving paused: the FIN follows unread input.
#[test]
fn limits_a_handler_that_takes_no_more_of_its_body() {
    for (half_closed_ms, responds) in [(25_000, true), (10_000, false)] {
        let mut world = SimWorld::with_timeouts(Timeouts { half_closed_ms, ..Timeouts::default() });
        let mut client = world.send(post("/hungry/0", &"x".repeat(300_000)));
        assert!(client.peer.unread() > 0, "no more is received than the handler takes");
        client.peer.finish();
        world.pass(40_000);
        let text = client.text();
        assert_eq!((text.ends_with("300000\n"), at_work()), (responds, 0), "{text:?}");
        assert_eq!(world.totals().hit_half_closed_ms, u64::from(!responds));
        world.end();
    }
}

/// A client that stays connected may be silent indefinitely.
#[test]
fn open_clients_have_no_deadline() {
    let mut world = SimWorld::default();
    let clients = [b"G", &b""[..]].map(|next| waiting(&mut world, get("/never"), next));
    world.pass(10 * HALF_CLOSED_MS);
    assert_eq!((at_work(), world.totals().hit_half_closed_ms), (2, 0));
    clients.iter().for_each(|client| client.peer.reset());
    world.end();
}

#[test]
fn frees_the_calls_of_clients_that_are_gone() {
    const CALLS_MAX: usize = 100;
    let mut world = SimWorld::with_limits(Limits { calls_max: CALLS_MAX, ..Limits::default() });
    let gone: Vec<_> =
        (0..CALLS_MAX).map(|number| waiting(&mut world, get("/never"), NEXT[number % 3])).collect();
    gone.iter().for_each(|client| client.peer.close());
    let (text, _) = world.ask(get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 503 "), "{text:?}");
    world.pass(HALF_CLOSED_MS + LATE_MS);
    assert_has_room(&mut world);
}

/// Neither an expected nor an incoming body postpones the deadline of a send.
#[test]
fn resets_a_client_that_reads_nothing_whatever_its_body_does() {
    for (expect, more) in [("", ""), ("Expect: 100-continue\r\n", ""), ("Expect: 100-continue\r\n", "a")] {
        let mut world = SimWorld::default();
        let mut client = world.connect();
        client.peer.set_reading(false);
        client.send(head("POST", "/flood", &format!("{expect}Content-Length: 10\r\n")));
        world.pass(1000);
        assert_eq!(at_work(), 1);
        client.send(more);
        world.pass(300_000);
        assert_eq!((at_work(), world.totals().hit_write_ms), (0, 1), "{expect:?} {more:?}");
        assert!(client.peer.saw_reset() && world.net.connections() == 0);
        world.end();
    }
}

/// Returns a client that sends a body and reads nothing of the response that its handler begins meanwhile.
fn sending_and_not_reading(world: &mut SimWorld) -> SimClient {
    let mut client = world.connect();
    client.peer.set_reading(false);
    client.send(head("POST", "/speaks-first", "Content-Length: 5000000\r\n"));
    client
}

#[test]
fn a_slow_body_does_not_postpone_the_deadline_of_a_send() {
    let mut world = SimWorld::default();
    let mut client = sending_and_not_reading(&mut world);
    for _ in 0..100 {
        client.send([b'a'; 2400]);
        world.pass(5000);
    }
    assert_eq!((at_work(), world.totals().hit_write_ms), (0, 1), "500 s without a byte read");
    world.end();
}

/// During a send the client is measured by its reading, not its sending.
#[test]
fn the_deadline_of_a_body_does_not_apply_during_a_send() {
    for body in [0, 100] {
        let timeouts = Timeouts { body_ms: 2000, body_grace_ms: 2000, ..Timeouts::default() };
        let mut world = SimWorld::with_timeouts(timeouts);
        let mut client = sending_and_not_reading(&mut world);
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
fn a_pipelined_request_that_expects_is_not_timed_out() {
    let timeouts = Timeouts { body_ms: 2000, body_grace_ms: 2000, ..Timeouts::default() };
    let mut world = SimWorld::with_timeouts(timeouts);
    let expecting = head("POST", "/hungry/0", "Expect: 100-continue\r\nContent-Length: 3\r\n");
    let (text, mut client) = world.ask([get("/plain/1"), expecting].concat());
    assert!(text.starts_with("HTTP/1.1 200 ") && !text.contains("100 Continue"), "{text:?}");
    world.pass(21_000);
    assert!(client.read().ends_with(b"HTTP/1.1 100 Continue\r\n\r\n"), "{:?}", client.text());
    client.send("abc");
    world.pass(1000);
    assert!(client.read().ends_with(b"\r\n\r\n3\n"));
    world.finish(&client);
}

/// Single bytes at intervals, echoed or not: the body is below the minimum rate.
#[test]
fn a_slow_body_ends_though_it_is_echoed() {
    for route in ["taken", "mirror"] {
        let mut world = SimWorld::default();
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
fn an_abandoned_sleep_does_not_spin() {
    let turns = |target: &str| {
        let mut world = SimWorld::default();
        let (text, _client) = world.ask(get(target));
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

/// Returns a request whose head needs a large buffer.
fn large(method: &str, target: &str, more: &str) -> Vec<u8> {
    head(method, target, &format!("X-Large: {}\r\n{more}", "x".repeat(15_000)))
}

fn with_bytes(buffered_bytes_max: usize) -> Limits {
    Limits { buffered_bytes_max, ..Limits::default() }
}

#[track_caller]
fn assert_has_room(world: &mut SimWorld) {
    let (text, client) = world.ask(get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 200 "), "there is room: {text:?}");
    world.finish(&client);
}

/// Clients send a request and disconnect, one after the other: nothing is left, however their requests end.
#[test]
fn frees_the_memory_of_a_request_however_it_ends() {
    let (upload, bytes) = ("Content-Length: 10\r\n", with_bytes(TWO_LARGE_BYTES));
    let calls = Limits { calls_max: 2, ..Limits::default() };
    for (name, limits, request, response) in [
        ("aborted upload", bytes, large("POST", "/taken/0", upload), ""),
        ("early response", bytes, large("POST", "/unread/0", upload), "HTTP/1.1 200 "),
        ("two responses", bytes, large("GET", "/twice/0", ""), "HTTP/1.1 200 "),
        ("two calls", calls, get("/twice/0"), "HTTP/1.1 200 "),
        ("panic after deferring", bytes, large("GET", "/begins-and-panics", ""), "HTTP/1.1 500 "),
        ("call, then panic", calls, get("/begins-and-panics"), "HTTP/1.1 500 "),
        ("panic instead of a future", bytes, large("GET", "/make-panics", ""), "HTTP/1.1 500 "),
        ("call without a future", calls, get("/make-panics"), "HTTP/1.1 500 "),
    ] {
        let mut world = SimWorld::with_limits(limits);
        for round in 0..ROUNDS {
            let (text, client) = world.ask(&request);
            assert_eq!(text.get(..response.len()), Some(response), "{name}: round {round}");
            client.peer.reset();
            world.pass(3000);
            let (tasks, held, _) = world.worker.waiting_in_use();
            let left = (tasks, held, at_work());
            assert_eq!(left, (0, 0, 0), "{name}: (tasks, held bytes, handlers) after round {round}");
        }
        assert_has_room(&mut world);
    }
}

#[test]
fn a_request_that_is_rejected_for_lack_of_memory_holds_nothing() {
    let mut world = SimWorld::with_limits(with_bytes(TWO_LARGE_BYTES));
    let clients: Vec<_> = (0..ROUNDS).map(|_| world.ask(large("GET", "/never", ""))).collect();
    let refused = clients.iter().filter(|(text, _)| text.starts_with("HTTP/1.1 503 ")).count();
    assert_eq!((refused, at_work()), (ROUNDS - 2, 2));
    clients.iter().for_each(|(_, client)| client.peer.reset());
    world.pass(20_000);
    assert_has_room(&mut world);
}

/// The handler never ends and its call is elsewhere: the disconnect frees the memory of both.
#[test]
fn frees_the_memory_of_a_call_that_is_kept() {
    let mut world = SimWorld::with_limits(with_bytes(TWO_LARGE_BYTES));
    for round in 0..ROUNDS {
        let client = waiting(&mut world, large("GET", "/keeps", ""), b"");
        client.peer.reset();
        world.pass(3000);
        assert_eq!(at_work(), 0, "round {round}");
        let held = world.worker.waiting_in_use().1;
        assert!(held < 25_000, "round {round}: {held} bytes for a head of 15,000 and no trailers");
        let (text, client) = world.ask(get("/lets-go"));
        assert!(text.ends_with("let go\n"), "round {round}: {text:?}");
        client.peer.reset();
    }
    assert_has_room(&mut world);
}

#[test]
fn counts_a_piece_until_its_handler_reads_the_next() {
    let mut world = SimWorld::default();
    let mut client = world.send(post("/hungry/0", &"x".repeat(300_000)));
    assert!(world.worker.waiting_in_use().1 > CALL_INPUT_BYTES_MAX);
    // The handler holds one piece and sleeps, and as much was received after it.
    world.pass(20_050);
    let held = world.worker.waiting_in_use().1;
    assert!(held > 2 * CALL_INPUT_BYTES_MAX, "{held} bytes");
    world.pass(5000);
    assert!(client.read().ends_with(b"300000\n"));
    assert_eq!(world.worker.waiting_in_use().1, 0);
    world.finish(&client);
}

/// Bodies that arrive faster than they are read: the sum of all queues is bounded.
#[test]
fn many_slow_handlers_stay_within_the_limit() {
    const MAX: usize = 400_000;
    let mut world = SimWorld::with_limits(with_bytes(MAX));
    let mut clients: Vec<SimClient> = (0..100).map(|_| world.connect()).collect();
    let request = head("POST", "/hungry/0", "Content-Length: 1000000\r\n");
    clients.iter_mut().for_each(|client| client.send(&request));
    world.pass(100);
    assert_eq!(at_work(), clients.len());
    let mut most = 0;
    for client in &mut clients {
        client.send(vec![b'x'; 120_000]);
        while world.turn_if_ready() {
            most = most.max(world.worker.waiting_in_use().1);
        }
    }
    assert!(most > MAX / 2, "{most} bytes: the limit was not reached");
    assert!(most <= MAX, "{most} bytes held");
    clients.iter().for_each(|client| client.peer.reset());
    world.end();
}
