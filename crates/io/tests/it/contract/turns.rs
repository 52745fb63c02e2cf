//! T: turns and the clock.

use shearwater_io::Driver;
use shearwater_io::limits::RECVS_PER_TURN_MAX;

use super::harness::{Harness, Setup};
use super::world::{Note, World, file_item, file_of, pattern, plain};

/// A timeout that no successful test reaches.
const LONG_MS: u64 = 10_000;
/// Less than that, and more than any real work takes.
const SOON_MS: u64 = 5_000;

fn small_buffer(recv_buffer_bytes: usize) -> Setup {
    Setup { recv_buffer_bytes, ..Setup::default() }
}

pub(crate) fn t1_wait_lets_the_timeout_pass<H: Harness>() {
    let mut world = World::<H>::new();
    let start = world.driver().now_ms();
    world.until("50 ms have passed", |world| {
        assert_eq!(world.rest_of_turn(), 0, "nothing happens here");
        world.wait(50);
        world.driver().now_ms() >= start + 49
    });
}

/// An earlier timeout between two long ones without events.
pub(crate) fn t1_an_earlier_timeout_counts<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    for (heard, timeout_ms) in [(1, 300), (2, 30)] {
        world.harness.write(peer, b"x");
        while world.page(token).received.len() < heard {
            world.turn(LONG_MS);
        }
        let start = world.driver().now_ms();
        world.until("the timeout has passed", |world| {
            assert_eq!(world.rest_of_turn(), 0, "nothing happens here");
            world.wait(timeout_ms);
            world.driver().now_ms() >= start + timeout_ms - 1
        });
        assert!(world.driver().now_ms() < start + SOON_MS, "it ends the wait");
    }
}

pub(crate) fn t1_wait_returns_for_an_event<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let start = world.driver().now_ms();
    world.harness.write(peer, b"hello");
    while world.page(token).received.is_empty() {
        world.turn(LONG_MS);
    }
    assert!(world.driver().now_ms() < start + SOON_MS, "the event ends the wait");
    assert_eq!(world.page(token).received, b"hello");
}

pub(crate) fn t1_wait_returns_at_once_for_input_left<H: Harness>() {
    let mut world = World::<H>::with(small_buffer(16));
    let (peer, token) = world.connect();
    let start = world.driver().now_ms();
    world.harness.write(peer, &[7; 1600]);
    while world.page(token).received.len() < 1600 {
        world.turn(LONG_MS);
    }
    assert!(world.driver().now_ms() < start + SOON_MS, "unread input is work");
}

pub(crate) fn t1_wait_returns_at_once_for_a_file_left<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let contents = pattern(3_000_000, 1);
    let mut output = plain(b"head");
    output.push(file_item(&file_of(&contents), 0, contents.len() as u64));
    let start = world.driver().now_ms();
    world.send(token, output);
    let mut got = Vec::new();
    while got.len() < contents.len() + 4 {
        world.harness.read(peer, usize::MAX, &mut got);
        world.turn(if world.is_sending(token) { LONG_MS } else { 1 });
    }
    assert!(world.driver().now_ms() < start + SOON_MS, "an unsent file is work");
    assert_eq!(&got[4..], contents);
}

pub(crate) fn t2_one_connection_is_read_a_bounded_number_of_times<H: Harness>() {
    let mut world = World::<H>::with(small_buffer(64));
    let (peer, token) = world.connect();
    world.peer_writes(peer, &pattern(64 * 100, 2));
    let mut turns = 0;
    while world.page(token).received.len() < 64 * 100 {
        let before = world.count(|note| matches!(note, Note::Received(..)));
        world.turn(100);
        let received = world.count(|note| matches!(note, Note::Received(..))) - before;
        assert!(received <= RECVS_PER_TURN_MAX, "{received} in one turn");
        turns += 1;
        assert!(turns < 10_000, "the input never ends");
    }
    assert_eq!(world.page(token).received, pattern(64 * 100, 2));
}

pub(crate) fn t2_a_sender_cannot_hold_a_turn<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    world.send(token, plain(b"tick"));
    let mut sends = 1;
    let mut got = Vec::new();
    for _ in 0..20 {
        world.wait(1);
        let mut events = 0;
        while let Some(note) = world.step() {
            events += 1;
            assert!(events < 1000, "the turn never ends while the worker sends");
            if matches!(note, Note::Sent(..)) {
                world.send(token, plain(b"tick"));
                sends += 1;
            }
        }
        world.harness.read(peer, usize::MAX, &mut got);
    }
    assert!(sends > 1, "sends continue over the turns");
    world.until("the last is sent", |world| !world.is_sending(token));
    let left = sends * 4 - got.len();
    got.extend(world.peer_gets(peer, left));
    assert_eq!(got, b"tick".repeat(sends));
}

pub(crate) fn t2_a_flood_does_not_hide_a_neighbour<H: Harness>() {
    let mut world = World::<H>::with(small_buffer(16));
    let (flooder, flooded) = world.connect();
    let (neighbour, quiet) = world.connect();
    world.peer_writes(flooder, &[1; 64_000]);
    world.harness.write(neighbour, b"here");
    world.until("the neighbour is heard", |world| !world.page(quiet).received.is_empty());
    let flood = world.page(flooded).received.len();
    assert!(flood < 64_000, "all of the flood came first");
    world.until("the flood is over", |world| world.page(flooded).received.len() == 64_000);
}

pub(crate) fn t2_an_unfinished_turn_loses_nothing<H: Harness>() {
    let mut world = World::<H>::with(small_buffer(64));
    let peers: Vec<_> = (0..3).map(|_| world.connect()).collect();
    for (peer, token) in &peers {
        world.harness.write(*peer, &[5; 1000]);
        world.send(*token, plain(b"answer"));
    }
    let all = |world: &World<H>| peers.iter().all(|(_, token)| world.page(*token).received.len() == 1000);
    for _ in 0..10_000 {
        world.wait(5);
        world.step();
        if all(&world) {
            break;
        }
    }
    assert!(all(&world), "single events deliver everything");
    world.until("all is sent", |world| peers.iter().all(|(_, token)| !world.is_sending(*token)));
}

pub(crate) fn t3_the_clock_stands_still_within_a_turn<H: Harness>() {
    let (mut world, peer, _) = World::<H>::connected();
    world.harness.write(peer, b"x");
    world.wait(100);
    let (ms, seconds) = (world.driver().now_ms(), world.driver().unix_seconds());
    // Reading a clock in between would show it.
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_millis(5) {
        std::hint::spin_loop();
    }
    while world.step().is_some() {
        assert_eq!(world.driver().now_ms(), ms);
        assert_eq!(world.driver().unix_seconds(), seconds);
    }
    assert_eq!(world.driver().now_ms(), ms);
    world.wait(20);
    assert!(world.driver().now_ms() >= ms);
}

/// Nothing is lost on a trimmed driver: unreported, unread or arriving input, and a send in flight.
pub(crate) fn t5_who_rests_loses_nothing<H: Harness>() {
    const BYTES: usize = 5000;
    let mut world = World::<H>::new();
    let peers: Vec<_> = (0..20).map(|_| world.connect()).collect();
    let input = |round: usize, number: usize| pattern(BYTES, (100 * round + number) as u64);
    for round in 0..3 {
        for (number, (peer, token)) in peers.iter().enumerate() {
            world.peer_writes(*peer, &input(round, number));
            world.driver().rest();
            world.send(*token, plain(b"an answer"));
        }
        world.wait(10);
        world.driver().rest();
        let has_all = |world: &World<H>, token| world.page(token).received.len() == (round + 1) * BYTES;
        world.until("all has arrived", |world| {
            peers.iter().all(|(_, token)| has_all(world, *token) && !world.is_sending(*token))
        });
        world.until("the driver rests", |world| world.driver().rest());
        for (number, (peer, token)) in peers.iter().enumerate() {
            assert_eq!(world.page(*token).received[round * BYTES..], input(round, number));
            assert_eq!(world.peer_gets(*peer, 9), b"an answer");
        }
    }
}
