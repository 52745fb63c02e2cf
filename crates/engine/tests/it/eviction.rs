//! Full buffers: the largest connection is evicted.

use shearwater_engine::Limits;

use crate::harness::unit::head;
use crate::harness::{Client, Unit, World};

/// Connects a client that sends a partial head of so many bytes.
fn half_head(world: &mut World, len: usize) -> Client {
    let mut client = world.connect();
    client.send([&b"GET / HTTP/1.1\r\nX: "[..], &vec![b'x'; len]].concat());
    world.settle();
    client
}

/// The end of a connection as its client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Refused,
    CutOff,
    Reset,
}

impl Told {
    fn of(client: &mut Client) -> Option<Self> {
        let text = String::from_utf8_lossy(client.read()).into_owned();
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
fn the_connection_that_holds_most_makes_room() {
    const MAX: usize = 400_000;
    let filler = |len| vec![b'x'; len];
    let pipeline = Unit::post("plain", 1, 2900).bytes.repeat(20);
    let upload =
        |route, len: u32| head("POST", &format!("/{route}/0"), &format!("Content-Length: {len}\r\n"));
    let cases = [
        ("a head", b"GET / HTTP/1.1\r\nX: ".to_vec(), filler(60_000), Told::Refused),
        ("a body that is kept", upload("buffer", 32_000), filler(31_000), Told::Refused),
        ("a body that its handler takes", upload("hungry", 100_000), filler(60_000), Told::Refused),
        ("a body whose response has begun", upload("mirror", 100_000), filler(60_000), Told::CutOff),
        ("requests behind a response", Unit::big().bytes, pipeline, Told::Reset),
    ];
    for (what, first, then, told) in cases {
        let mut world = World::with_limits(Limits { buffered_bytes_max: MAX, ..Limits::default() });
        let mut large: Vec<Client> = (0..2).map(|_| world.connect()).collect();
        for client in &mut large {
            client.peer.set_window(100);
            client.peer.set_reading(told == Told::Refused);
            client.send(&first);
            world.settle();
            client.send(&then);
            world.settle();
        }
        let held = world.worker.buffered_bytes();
        assert!(held > 60_000 && held < MAX, "{what}: {held} held by two");
        let mut small = Vec::new();
        while world.totals().hit_buffered_bytes == 0 && small.len() < 100 {
            small.push(half_head(&mut world, 3000));
        }
        small.extend([half_head(&mut world, 3000), half_head(&mut world, 3000)]);
        assert_eq!(world.totals().hit_buffered_bytes, 1, "{what}: one was enough");
        assert!(world.worker.buffered_bytes() <= MAX);
        for client in &mut large {
            client.peer.set_window(1 << 20);
            client.peer.set_reading(true);
        }
        world.settle();
        let ends: Vec<_> = large.iter_mut().filter_map(Told::of).collect();
        assert_eq!(ends, [told], "{what}");
        for client in &mut small {
            client.send(b"\r\nHost: a\r\n\r\n");
        }
        world.settle();
        assert!(small.iter_mut().all(|client| client.read().starts_with(b"HTTP/1.1 200 ")), "{what}");
        large.iter().for_each(|client| client.peer.reset());
        small.iter().for_each(|client| client.peer.finish());
        world.end();
        assert_eq!(world.worker.buffered_bytes(), 0);
    }
}

/// A request in progress isn't evicted: new ones are rejected instead.
#[test]
fn a_request_at_work_does_not_make_room() {
    const MAX: usize = 150_000;
    let mut world = World::with_limits(Limits { buffered_bytes_max: MAX, ..Limits::default() });
    let mut at_work: Vec<Client> = (0..2).map(|_| world.connect()).collect();
    for client in &mut at_work {
        client.send(head("GET", "/never/0", &format!("X: {}\r\n", "x".repeat(60_000))));
        world.settle();
    }
    let small: Vec<Client> = (0..20).map(|_| half_head(&mut world, 3000)).collect();
    let refused = world.totals().hit_buffered_bytes;
    assert!((10..20).contains(&refused), "{refused} of 20 refused");
    assert!(at_work.iter().all(|client| !client.peer.saw_fin()));
    at_work.iter().chain(&small).for_each(|client| client.peer.reset());
    world.end();
}

/// A handler's copy of a request adds to the block that keeps the request: the smaller connection isn't
/// evicted for it.
#[test]
fn a_kept_request_and_the_copy_of_it_are_compared_together() {
    let mut world = World::with_limits(Limits { buffered_bytes_max: 60_000, ..Limits::default() });
    let large = half_head(&mut world, 40_000);
    let mut larger = world.connect();
    larger.send(head("POST", "/buffer-never/0", "Content-Length: 31000\r\n"));
    world.settle();
    larger.send([b'x'; 31_000]);
    world.settle();
    assert_eq!((Told::of(&mut larger), large.peer.saw_fin()), (Some(Told::Refused), false));
    large.peer.reset();
    larger.peer.finish();
    world.end();
}

/// Pages are freed over several turns and count until then. No request is rejected for them.
#[test]
fn memory_on_its_way_to_the_system_makes_room() {
    const MAX: usize = 4_000_000;
    const CLIENTS: usize = MAX / 70_000;
    let mut world = World::with_limits(Limits { buffered_bytes_max: MAX, ..Limits::default() });
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| half_head(&mut world, 60_000)).collect();
    assert_eq!(world.totals().hit_buffered_bytes, 0);
    let mut next: Vec<Client> = (0..CLIENTS).map(|_| world.connect()).collect();
    world.settle();
    let full = world.worker.buffered_bytes();
    for client in &mut clients {
        client.send(b"\r\nHost: a\r\n\r\n");
    }
    world.turn();
    assert!(world.worker.buffered_bytes() > full / 2, "it takes many turns");
    for client in &mut next {
        client.send([&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 60_000]].concat());
    }
    world.turn();
    assert_eq!(world.totals().hit_buffered_bytes, 0);
    clients.iter().chain(&next).for_each(|client| client.peer.finish());
    world.end();
}

#[test]
fn small_holders_are_not_evicted() {
    const MAX: usize = 100_000;
    let mut world = World::with_limits(Limits { buffered_bytes_max: MAX, ..Limits::default() });
    let mut halves = Vec::new();
    while world.worker.buffered_bytes() + 2700 < MAX {
        halves.push(half_head(&mut world, 1));
    }
    // A handler's copy is smaller than each of them, but larger than the remaining room.
    for waiting in 0..2 {
        let mut client = world.connect();
        client.send(head("GET", "/never/0", ""));
        world.settle();
        let told = Told::of(&mut client);
        assert!(told == Some(Told::Refused) || waiting == 0, "{told:?}");
    }
    assert!(halves.iter().all(|client| !client.peer.saw_fin()));
}
