//! Clauses T and W: turns, the clock, wakers, and many connections.

use std::collections::HashMap;
use std::thread;

use shearwater_io::limits::RECVS_PER_TURN_MAX;
use shearwater_io::{CloseKind, Driver};

use super::world::{Note, World, file_of, pattern, plain, with_file};
use super::{Harness, PeerState, Setup};

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
    let output = with_file(b"head", &file_of(&contents), 0, contents.len() as u64);
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
    let read_us = world.driver().read_clock_us();
    assert!((ms * 1000..(ms + 60_000) * 1000).contains(&read_us), "{read_us} µs after {ms} ms");
    while world.step().is_some() {
        assert_eq!(world.driver().now_ms(), ms);
        assert_eq!(world.driver().unix_seconds(), seconds);
    }
    assert_eq!(world.driver().now_ms(), ms);
    world.wait(20);
    assert!(world.driver().now_ms() >= ms);
}

/// Nothing is lost on a trimmed driver: unreported, unread or arriving input, and a send in flight.
pub(crate) fn t5_a_trimmed_driver_loses_nothing<H: Harness>() {
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

fn woken<H: Harness>(world: &World<H>) -> usize {
    world.count(|note| *note == Note::Woken)
}

pub(crate) fn w1_a_wake_ends_the_next_wait<H: Harness>() {
    let mut world = World::<H>::new();
    for round in 1..=3 {
        let waker = world.driver().waker();
        thread::spawn(move || waker.wake()).join().expect("the thread has woken us");
        let start = world.driver().now_ms();
        while woken(&world) < round {
            world.turn(10_000);
        }
        assert!(world.driver().now_ms() < start + 5_000, "the wake ends the wait");
        assert_eq!(woken(&world), round);
        world.idle();
        assert_eq!(woken(&world), round, "the wake is consumed");
    }
}

pub(crate) fn w1_wakes_may_merge<H: Harness>() {
    let mut world = World::<H>::new();
    let wakers: Vec<_> = (0..4).map(|_| world.driver().waker()).collect();
    let threads: Vec<_> =
        wakers.into_iter().map(|waker| thread::spawn(move || (0..100).for_each(|_| waker.wake()))).collect();
    for thread in threads {
        thread.join().expect("the thread has woken us");
    }
    world.idle();
    assert!((1..=400).contains(&woken(&world)), "{}", woken(&world));
}

pub(crate) fn w1_a_wake_between_events<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let waker = world.driver().waker();
    world.harness.write(peer, b"both");
    waker.wake();
    world.until("both are told", |world| woken(world) >= 1 && world.page(token).received == b"both");
    waker.wake();
    world.until("and the next", |world| woken(world) >= 2);
    assert_eq!(woken(&world), 2);
}

const CROWD: usize = 1000;

pub(crate) fn serves_a_thousand_connections<H: Harness>() {
    let mut world = World::<H>::new();
    let mut peers = Vec::new();
    while peers.len() < CROWD {
        peers.extend((0..100).map(|_| world.harness.connect(0)));
        world.until("they are accepted", |world| world.accepted.len() == peers.len());
    }
    let by_address: HashMap<_, _> = (0..CROWD)
        .map(|index| {
            let token = world.accepted[index];
            (world.driver().peer(token).expect("the peer is there"), token)
        })
        .collect();
    for round in 0..3 {
        for (number, peer) in peers.iter().enumerate() {
            world.harness.write(*peer, format!("question {number} of {round}\n").as_bytes());
        }
        response_each_line(&mut world);
        for (number, peer) in peers.iter().enumerate() {
            let wanted = format!("QUESTION {number} OF {round}\n");
            assert_eq!(world.peer_gets(*peer, wanted.len()), wanted.as_bytes());
            let token = by_address[&world.harness.address(*peer).expect("it is connected")];
            assert!(world.page(token).received.ends_with(wanted.to_ascii_lowercase().as_bytes()));
        }
        world.until("all is sent", |world| world.accepted.iter().all(|token| !world.is_sending(*token)));
    }
}

/// Takes turns until each peer has its complete line back, in capitals.
fn response_each_line<H: Harness>(world: &mut World<H>) {
    let mut responded = 0;
    for _ in 0..100_000 {
        world.wait(100);
        while let Some(note) = world.step() {
            let Note::Received(token, _) = note else { continue };
            if let Some(lines) = world.page(token).received.strip_suffix(b"\n") {
                let line = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or(lines);
                let response = [&line.to_ascii_uppercase()[..], b"\n"].concat();
                world.send(token, plain(&response));
                responded += 1;
            }
        }
        if responded == CROWD {
            return;
        }
    }
    panic!("{responded} of {CROWD} are answered");
}

pub(crate) fn churn_leaves_nothing_behind<H: Harness>() {
    let mut world = World::<H>::new();
    for round in 0..200_usize {
        let (peer, token) = world.connect();
        world.harness.write(peer, b"question");
        match round % 4 {
            0 => {
                world.until("it is heard", |world| !world.page(token).received.is_empty());
                world.send(token, plain(&pattern(round * 50, 1)));
                world.peer_gets(peer, round * 50);
                world.until("it is sent", |world| !world.is_sending(token));
            }
            1 => world.harness.reset(peer),
            2 => world.harness.shutdown(peer),
            _ => {}
        }
        let kind = if round % 3 == 0 { CloseKind::Reset } else { CloseKind::Normal };
        world.close(token, kind);
        world.until("it is closed", |world| world.page(token).closed);
        if round % 4 != 1 {
            assert_ne!(world.peer_ends(peer).0, PeerState::Open);
        }
        assert_eq!(token.slot(), 0);
    }
    assert_eq!(world.driver().connections(), 0);
}
