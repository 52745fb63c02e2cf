//! Memory: the largest connection is evicted when buffers are full, and a worker without events frees what it
//! doesn't need.

use std::cell::Cell;

use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::{
    IDLE_TRIM_AFTER_MS, IDLE_TRIM_EVENTS_MIN, OPEN_FILE_MS_MAX, REQUESTS_PER_TURN_MAX,
};
use shearwater_engine::{Limits, Notice, Timeouts};

use crate::harness::app::{SERVICE_TRIMS, is_kept};
use crate::harness::unit::{get, head};
use crate::harness::{Setting, SimClient, SimWorld, Unit};

const HEAD_END: &str = "\r\nHost: a\r\n\r\n";

fn with_bytes(buffered_bytes_max: usize) -> SimWorld {
    SimWorld::with_limits(Limits { buffered_bytes_max, ..Limits::default() })
}

fn half_head(len: usize) -> Vec<u8> {
    [&b"GET / HTTP/1.1\r\nX: "[..], &vec![b'x'; len]].concat()
}

/// The end of a connection as its client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Eviction {
    Refused,
    CutOff,
    Reset,
}

impl Eviction {
    fn of(client: &mut SimClient) -> Option<Self> {
        let text = client.text();
        match (client.peer.saw_reset(), client.peer.saw_fin()) {
            (true, _) => Some(Self::Reset),
            (false, true) if text.starts_with("HTTP/1.1 503 ") => Some(Self::Refused),
            (false, true) if text.starts_with("HTTP/1.1 202 ") => Some(Self::CutOff),
            (false, true) => panic!("{:?}", text.get(..200)),
            (false, false) => None,
        }
    }
}

/// Tests that a larger connection makes room in every phase in which it waits for its client.
#[test]
fn evicts_the_largest_holder() {
    let filler = |len| vec![b'x'; len];
    let pipeline = Unit::post("plain", 1, 2900).bytes.repeat(20);
    let upload =
        |route, len: u32| head("POST", &format!("/{route}/0"), &format!("Content-Length: {len}\r\n"));
    for (what, first, then, ending) in [
        ("a head", half_head(0), filler(60_000), Eviction::Refused),
        ("a body that is kept", upload("buffer", 32_000), filler(31_000), Eviction::Refused),
        ("a body that its handler takes", upload("hungry", 100_000), filler(60_000), Eviction::Refused),
        ("a body whose response has begun", upload("mirror", 100_000), filler(60_000), Eviction::CutOff),
        ("requests after a response", Unit::big().bytes, pipeline, Eviction::Reset),
    ] {
        assert_evicts(what, &first, &then, ending);
    }
}

#[test]
fn reports_full_buffers_once_a_second() {
    const MAX: usize = 400_000;
    let mut world = with_bytes(MAX);
    let _clients: Vec<_> = (0..300).map(|_| world.send(half_head(3000))).collect();
    let rejected = world.totals().hit_buffered_bytes;
    assert!(rejected > 10, "{rejected}");
    let line = format!(
        "worker 0: a connection was rejected: unfinished requests hold buffered_bytes_max ({MAX} bytes; raise it, or the \
         memory that the server may use)"
    );
    let lines = |world: &SimWorld| world.notices().iter().map(ToString::to_string).collect::<Vec<String>>();
    assert_eq!(lines(&world), [line.as_str()]);
    world.pass(1100);
    assert_eq!(lines(&world), [format!("{line} ({} more like it)", rejected - 2)]);
}

fn assert_evicts(what: &str, first: &[u8], then: &[u8], ending: Eviction) {
    const MAX: usize = 400_000;
    let mut world = with_bytes(MAX);
    let mut large: Vec<SimClient> = (0..2).map(|_| world.connect()).collect();
    for client in &mut large {
        client.peer.set_window(100);
        client.peer.set_reading(ending == Eviction::Refused);
        for bytes in [first, then] {
            world.feed(client, bytes);
        }
    }
    let held = world.worker.buffered_bytes();
    assert!(held > 60_000 && held < MAX, "{what}: {held} held by two");
    let mut small = Vec::new();
    while world.totals().hit_buffered_bytes == 0 && small.len() < 100 {
        small.push(world.send(half_head(3000)));
    }
    small.extend([3000, 3000].map(|len| world.send(half_head(len))));
    assert_eq!(world.totals().hit_buffered_bytes, 1, "{what}: one was enough");
    assert!(world.worker.buffered_bytes() <= MAX);
    for client in &mut large {
        client.peer.set_window(1 << 20);
        client.peer.set_reading(true);
    }
    world.settle();
    let endings: Vec<_> = large.iter_mut().filter_map(Eviction::of).collect();
    assert_eq!(endings, [ending], "{what}");
    let notice = Notice::BuffersFull { worker: 0, bytes_max: MAX, left_out: 0 };
    assert_eq!(world.notices(), [notice], "{what}");
    small.iter_mut().for_each(|client| client.send(HEAD_END));
    world.settle();
    assert!(small.iter_mut().all(|client| client.read().starts_with(b"HTTP/1.1 200 ")), "{what}");
    large.iter().for_each(|client| client.peer.reset());
    small.iter().for_each(|client| client.peer.finish());
    world.end();
    assert_eq!(world.worker.buffered_bytes(), 0);
}

/// The response to a `HEAD` has no body, also if its request was evicted in the middle of its head.
#[test]
fn an_evicted_head_request_gets_no_body() {
    let mut world = with_bytes(400_000);
    let mut large = world.send([&b"HEAD / HTTP/1.1\r\nX: "[..], &vec![b'x'; 60_000]].concat());
    let small: Vec<SimClient> = (0..100).map(|_| world.send(half_head(4000))).collect();
    let text = large.text();
    assert!(text.starts_with("HTTP/1.1 503 ") && text.ends_with("\r\n\r\n"), "{text:?}");
    small.iter().chain([&large]).for_each(|client| client.peer.reset());
    world.end();
}

/// As many responses fit a turn; the rest of the requests waits for the next one.
#[test]
fn an_evicted_head_request_that_waits_for_its_turn_gets_no_body() {
    let mut world = SimWorld::new(Setting {
        sim: SimOptions { sends_at_once: 1.0, ..SimOptions::default() },
        limits: Limits { buffered_bytes_max: 100_000, ..Limits::default() },
        ..Setting::default()
    });
    let mut clients: Vec<SimClient> = (0..40).map(|_| world.connect()).collect();
    world.settle();
    clients[0].send(head("HEAD", "/plain/1", "").repeat(8 * REQUESTS_PER_TURN_MAX));
    clients[1..].iter_mut().for_each(|client| client.send(half_head(3000)));
    world.settle();
    let text = clients[0].text();
    let (_, refused) = text.split_once("HTTP/1.1 503 ").expect("it was evicted");
    assert!(refused.ends_with("\r\n\r\n"), "{refused:?}");
    clients.iter().for_each(|client| client.peer.reset());
    world.end();
}

/// New requests are rejected instead.
#[test]
fn does_not_evict_a_request_in_progress() {
    let mut world = with_bytes(150_000);
    let large = head("GET", "/never/0", &format!("X: {}\r\n", "x".repeat(60_000)));
    let at_work = [0, 1].map(|_| world.send(&large));
    let small: Vec<SimClient> = (0..20).map(|_| world.send(half_head(3000))).collect();
    let refused = world.totals().hit_buffered_bytes;
    assert!((10..20).contains(&refused), "{refused} of 20 refused");
    assert!(at_work.iter().all(|client| !client.peer.saw_fin()));
    at_work.iter().chain(&small).for_each(|client| client.peer.reset());
    world.end();
}

/// The smaller connection isn't evicted for a handler's copy of a larger request.
#[test]
fn compares_a_kept_request_together_with_its_copy() {
    let mut world = with_bytes(60_000);
    let large = world.send(half_head(40_000));
    let request = head("POST", "/buffer-never/0", "Content-Length: 31000\r\n");
    let mut larger = world.send_pieces([&request[..], &[b'x'; 31_000]]);
    assert_eq!((Eviction::of(&mut larger), large.peer.saw_fin()), (Some(Eviction::Refused), false));
    large.peer.reset();
    world.finish(&larger);
}

/// Its block is no reason to reject a complete request: its handler waits for nothing from the client.
#[test]
fn calls_a_deferred_handler_although_its_own_request_fills_the_buffers() {
    let mut world = with_bytes(12_000);
    let large = format!("X-Large: {}\r\nContent-Length: 3\r\n", "x".repeat(6000));
    let mut client = world.send_pieces([&head("POST", "/later/0", &large)[..], b"abc"]);
    let text = client.text();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text:?}");
    world.finish(&client);
}

/// Pages are freed over several turns and count until then. No request is rejected for them.
#[test]
fn memory_that_is_being_returned_makes_room() {
    const MAX: usize = 4_000_000;
    const CLIENTS: usize = MAX / 70_000;
    let mut world = with_bytes(MAX);
    let mut clients: Vec<SimClient> = (0..CLIENTS).map(|_| world.send(half_head(60_000))).collect();
    assert_eq!(world.totals().hit_buffered_bytes, 0);
    let mut next: Vec<SimClient> = (0..CLIENTS).map(|_| world.connect()).collect();
    world.settle();
    let full = world.worker.buffered_bytes();
    clients.iter_mut().for_each(|client| client.send(HEAD_END));
    world.turn();
    assert!(world.worker.buffered_bytes() > full / 2, "it takes many turns");
    next.iter_mut().for_each(|client| client.send(half_head(60_000)));
    world.turn();
    assert_eq!(world.totals().hit_buffered_bytes, 0);
    clients.iter().chain(&next).for_each(|client| client.peer.finish());
    world.end();
}

#[test]
fn does_not_evict_small_holders() {
    const MAX: usize = 100_000;
    let mut world = with_bytes(MAX);
    let mut halves = Vec::new();
    while world.worker.buffered_bytes() + 2700 < MAX {
        halves.push(world.send(half_head(1)));
    }
    // A handler's copy is smaller than each of them, but larger than the remaining room.
    for waiting in 0..2 {
        let ending = Eviction::of(&mut world.send(head("GET", "/never/0", "")));
        assert!(ending == Some(Eviction::Refused) || waiting == 0, "{ending:?}");
    }
    assert!(halves.iter().all(|client| !client.peer.saw_fin()));
}

thread_local! {
    static TRIMS: Cell<u32> = const { Cell::new(0) };
}

fn trims() -> u32 {
    TRIMS.get()
}

/// A world that counts its idle trims by this hook, and a client.
fn counting_trims(at_rest: fn()) -> (SimWorld, SimClient) {
    TRIMS.set(0);
    SERVICE_TRIMS.set(0);
    let timeouts = Timeouts { idle_ms: 60 * IDLE_TRIM_AFTER_MS, ..Timeouts::default() };
    let mut world = SimWorld::new(Setting { at_rest: Some(at_rest), timeouts, ..Setting::default() });
    let client = world.connect();
    world.settle();
    (world, client)
}

fn count_trim() {
    TRIMS.set(TRIMS.get() + 1);
}

/// Causes as many events as a trim requires.
fn stir(world: &mut SimWorld, client: &mut SimClient) {
    (0..IDLE_TRIM_EVENTS_MIN).for_each(|_| world.assert_usable(client));
}

#[test]
fn an_idle_worker_trims_once() {
    let (mut world, mut client) = counting_trims(count_trim);
    for times in 1..=3 {
        stir(&mut world, &mut client);
        let began_ms = world.net.now_ms();
        assert_eq!(trims(), times - 1, "there were events just now");
        let took_ms = world.sleep_until(|_| trims() == times) - began_ms;
        assert!((IDLE_TRIM_AFTER_MS..=IDLE_TRIM_AFTER_MS + 1).contains(&took_ms), "{took_ms}");
        assert_eq!(SERVICE_TRIMS.get(), times, "and its service");
    }
    // It continues sleeping, and wakes for the client's deadline alone, by way of its timer's levels.
    let trimmed_ms = world.net.now_ms();
    world.sleep_until(|net| net.now_ms() > trimmed_ms + 10 * IDLE_TRIM_AFTER_MS);
    assert_eq!(trims(), 3, "once");
    drop(client);
    world.end();
}

#[test]
fn a_busy_worker_does_not_trim() {
    let (mut world, mut client) = counting_trims(count_trim);
    for _ in 0..20 {
        let until_ms = world.net.now_ms() + IDLE_TRIM_AFTER_MS - 1;
        stir(&mut world, &mut client);
        world.net.advance(IDLE_TRIM_AFTER_MS - 1);
        assert!(world.net.now_ms() >= until_ms);
    }
    assert_eq!(trims(), 0);
}

/// State in use remains: half a head, a pipeline whose responses are unread.
#[test]
fn unfinished_requests_outlive_a_trim() {
    let (mut world, mut client) = counting_trims(count_trim);
    stir(&mut world, &mut client);
    client.got.clear();
    let mut other = world.connect();
    let Unit { bytes, response, .. } = Unit::get(0);
    let (first, last) = bytes.split_at(bytes.len() / 2);
    client.send(first);
    other.send(bytes.repeat(3));
    world.sleep_until(|_| trims() == 1);
    world.feed(&mut client, last);
    client.assert_got([&response]);
    other.assert_got([&response; 3]);
}

#[test]
fn a_panicking_hook_harms_nothing() {
    let (mut world, mut client) = counting_trims(|| {
        count_trim();
        panic!("at rest");
    });
    for times in 1..=2 {
        stir(&mut world, &mut client);
        world.sleep_until(|_| trims() == times);
    }
    world.assert_usable(&mut client);
}

#[test]
fn few_events_cause_no_trim() {
    let (mut world, mut client) = counting_trims(count_trim);
    (0..5).for_each(|_| world.assert_usable(&mut client));
    let began_ms = world.net.now_ms();
    world.turn();
    assert!(world.net.now_ms() > began_ms + 2 * IDLE_TRIM_AFTER_MS, "it continues sleeping");
    assert_eq!(trims(), 0);
    let mut client = world.connect();
    stir(&mut world, &mut client);
    world.sleep_until(|_| trims() == 1);
}

/// No other client is needed for that.
#[test]
fn closes_a_file_shortly_after_its_last_request() {
    let (mut world, mut client) = counting_trims(count_trim);
    assert!(!is_kept());
    let began_ms = world.net.now_ms();
    world.feed(&mut client, get("/kept-file"));
    assert!(is_kept(), "for the next request");
    client.send(get("/kept-file"));
    let took_ms = world.sleep_until(|_| !is_kept()) - began_ms;
    assert!((OPEN_FILE_MS_MAX..=OPEN_FILE_MS_MAX + 1).contains(&took_ms), "{took_ms} ms");
}
