//! Memory of deferred requests: bounded, and freed however they end.

use shearwater_engine::Limits;
use shearwater_engine::limits::CALL_INPUT_BYTES_MAX;

use crate::harness::asking::{end, get, got};
use crate::harness::unit::head;
use crate::harness::waiting::at_work;
use crate::harness::{Client, World};

/// Room for two of [`large`], not for three.
const TWO_LARGE_BYTES: usize = 40_000;
/// Repetitions after which leaked memory would exceed the limit.
const ROUNDS: usize = 8;

/// Returns a request whose head needs a large buffer.
fn large(method: &str, target: &str, more: &str) -> Vec<u8> {
    head(method, target, &format!("X-Large: {}\r\n{more}", "x".repeat(15_000)))
}

/// Runs clients that send a request and disconnect, one after the other; each response begins with `wanted`,
/// and nothing is left.
#[track_caller]
fn assert_goes_back(limits: Limits, request: &[u8], wanted: &str) {
    let mut world = World::with_limits(limits);
    for round in 0..ROUNDS {
        let (text, client) = got(&mut world, request);
        assert_eq!(text.get(..wanted.len()), Some(wanted), "round {round}");
        client.peer.reset();
        world.pass(3000);
        let (tasks, held, _) = world.worker.waiting_in_use();
        assert_eq!((tasks, held, at_work()), (0, 0, 0), "(tasks, held bytes, handlers) after round {round}");
    }
    let (text, mut client) = got(&mut world, get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 200 "), "there is room: {text:?}");
    end(world, &mut client);
}

fn with_bytes(buffered_bytes_max: usize) -> Limits {
    Limits { buffered_bytes_max, ..Limits::default() }
}

fn with_calls(calls_max: usize) -> Limits {
    Limits { calls_max, ..Limits::default() }
}

#[test]
fn what_an_aborted_upload_held_goes_back() {
    let request = large("POST", "/taken/0", "Content-Length: 10\r\n");
    assert_goes_back(with_bytes(TWO_LARGE_BYTES), &request, "");
}

#[test]
fn what_an_early_response_held_goes_back() {
    let request = large("POST", "/unread/0", "Content-Length: 10\r\n");
    assert_goes_back(with_bytes(TWO_LARGE_BYTES), &request, "HTTP/1.1 200 ");
}

#[test]
fn what_the_first_of_two_responses_held_goes_back() {
    assert_goes_back(with_bytes(TWO_LARGE_BYTES), &large("GET", "/twice/0", ""), "HTTP/1.1 200 ");
    assert_goes_back(with_calls(2), &get("/twice/0"), "HTTP/1.1 200 ");
}

#[test]
fn what_was_begun_before_a_panic_goes_back() {
    let request = large("GET", "/begins-and-panics", "");
    assert_goes_back(with_bytes(TWO_LARGE_BYTES), &request, "HTTP/1.1 500 ");
    assert_goes_back(with_calls(2), &get("/begins-and-panics"), "HTTP/1.1 500 ");
}

#[test]
fn what_a_future_that_was_not_made_held_goes_back() {
    assert_goes_back(with_bytes(TWO_LARGE_BYTES), &large("GET", "/make-panics", ""), "HTTP/1.1 500 ");
    assert_goes_back(with_calls(2), &get("/make-panics"), "HTTP/1.1 500 ");
}

#[test]
fn who_is_refused_for_want_of_room_holds_nothing() {
    let mut world = World::with_limits(with_bytes(TWO_LARGE_BYTES));
    let clients: Vec<_> = (0..ROUNDS).map(|_| got(&mut world, large("GET", "/never", ""))).collect();
    let refused = clients.iter().filter(|(text, _)| text.starts_with("HTTP/1.1 503 ")).count();
    assert_eq!((refused, at_work()), (ROUNDS - 2, 2));
    clients.iter().for_each(|(_, client)| client.peer.reset());
    world.pass(20_000);
    let (text, mut client) = got(&mut world, get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 200 "), "there is room: {text:?}");
    end(world, &mut client);
}

/// The handler never ends and its call is elsewhere: the disconnect frees the memory of both.
#[test]
fn what_a_kept_call_held_goes_back() {
    let mut world = World::with_limits(with_bytes(TWO_LARGE_BYTES));
    for round in 0..ROUNDS {
        let (text, client) = got(&mut world, large("GET", "/keeps", ""));
        assert_eq!(text, "", "round {round}: the call is not over");
        client.peer.reset();
        world.pass(3000);
        assert_eq!(at_work(), 0, "round {round}");
        let (text, client) = got(&mut world, get("/lets-go"));
        assert!(text.ends_with("let go\n"), "round {round}: {text:?}");
        client.peer.reset();
    }
    let (text, mut client) = got(&mut world, get("/later/0"));
    assert!(text.starts_with("HTTP/1.1 200 "), "there is room: {text:?}");
    end(world, &mut client);
}

/// The piece that a handler holds counts until it reads the next one.
#[test]
fn a_piece_in_the_hands_of_its_handler_is_counted() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send([head("POST", "/hungry/0", "Content-Length: 300000\r\n"), vec![b'x'; 300_000]].concat());
    world.settle();
    assert!(world.worker.waiting_in_use().1 > CALL_INPUT_BYTES_MAX);
    // The handler holds one piece and sleeps, and as much was received after it.
    world.pass(20_050);
    let held = world.worker.waiting_in_use().1;
    assert!(held > 2 * CALL_INPUT_BYTES_MAX, "{held} bytes");
    world.pass(5000);
    assert!(client.read().ends_with(b"300000\n"));
    assert_eq!(world.worker.waiting_in_use().1, 0);
    client.peer.finish();
    world.end();
}

/// Bodies that arrive faster than they are read: the sum of all queues is bounded.
#[test]
fn many_slow_takers_stay_within_the_bound() {
    const MAX: usize = 400_000;
    let mut world = World::with_limits(with_bytes(MAX));
    let mut clients: Vec<Client> = (0..100)
        .map(|_| {
            let mut client = world.connect();
            client.send(head("POST", "/hungry/0", "Content-Length: 1000000\r\n"));
            client
        })
        .collect();
    world.pass(100);
    assert_eq!(at_work(), clients.len());
    let mut most = 0;
    for client in &mut clients {
        client.send(vec![b'x'; 120_000]);
        while world.turn_if_ready() {
            most = most.max(world.worker.waiting_in_use().1);
        }
    }
    assert!(most > MAX / 2, "{most} bytes: the bound was not tried");
    assert!(most <= MAX, "{most} bytes held");
    clients.iter().for_each(|client| client.peer.reset());
    world.end();
    assert_eq!(at_work(), 0);
}
