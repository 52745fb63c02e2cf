//! Clause T6: another event loop waits for a driver, edge-triggered.

use std::os::fd::RawFd;
use std::thread;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use shearwater_io::Driver;

use super::Harness;
use super::world::{Note, World, file_of, pattern, plain, with_file};

/// A time that no successful test waits for.
const LONG: Duration = Duration::from_secs(10);

/// The other event loop. Without a descriptor it only sleeps: a simulated driver moves its own clock.
struct Outer(Option<(Poll, Events)>);

impl Outer {
    fn of<H: Harness>(world: &mut World<H>) -> Self {
        let Ok(descriptor) = world.driver().descriptor() else {
            assert_eq!(world.driver().name(), "sim", "T6: a driver of the kernel has a descriptor");
            return Self(None);
        };
        assert_eq!(world.driver().descriptor().ok(), Some(descriptor), "T6: it stays the same");
        Self(Some((watching(descriptor), Events::with_capacity(4))))
    }

    /// Returns whether the descriptor has become readable within this time; true without one.
    fn is_readable(&mut self, within: Duration) -> bool {
        let Some((poll, events)) = &mut self.0 else { return true };
        poll.poll(events, Some(within)).expect("it waits");
        !events.is_empty()
    }
}

fn watching(descriptor: RawFd) -> Poll {
    let poll = Poll::new().expect("a poll");
    poll.registry()
        .register(&mut SourceFd(&descriptor), Token(0), Interest::READABLE)
        .expect("it can be watched");
    poll
}

/// Takes turns that don't block until there is no work left, and arms the driver.
fn settle<H: Harness>(world: &mut World<H>) -> Option<Duration> {
    for _ in 0..100_000 {
        let left = world.driver().arm(Some(LONG)).expect("it is armed");
        if left != Some(Duration::ZERO) {
            return left;
        }
        world.turn(0);
    }
    panic!("T6: the work never ends");
}

/// Lets the other event loop wait for each turn until `is_done`. The driver is armed, and what is waited for may have
/// happened since.
fn until<H: Harness>(world: &mut World<H>, outer: &mut Outer, is_done: impl Fn(&World<H>) -> bool) {
    let start = Instant::now();
    while !is_done(world) {
        world.harness.pump();
        assert!(outer.is_readable(LONG) && start.elapsed() < LONG, "T6: an event that nothing shows");
        world.turn(if outer.0.is_some() { 0 } else { 100 });
        settle(world);
    }
}

pub(crate) fn t6_arrivals_show<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let mut outer = Outer::of(&mut world);
    settle(&mut world);
    for round in 1..=20 {
        world.harness.write(peer, b"request");
        until(&mut world, &mut outer, |world| world.page(token).received.len() == 7 * round);
        world.send(token, plain(b"response"));
        settle(&mut world);
        until(&mut world, &mut outer, |world| world.page(token).sent.len() == round);
    }
    let (second, before) = (world.harness.connect(0), world.accepted.len());
    until(&mut world, &mut outer, |world| world.accepted.len() > before);
    world.harness.shutdown(peer);
    until(&mut world, &mut outer, |world| world.page(token).ended.is_some());
    world.harness.reset(second);
}

/// A response must not wait for the next event.
pub(crate) fn t6_what_the_turn_has_left_is_sent<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let mut outer = Outer::of(&mut world);
    world.send(token, plain(b"response"));
    settle(&mut world);
    let mut got = Vec::new();
    let start = Instant::now();
    while got.len() < 8 {
        world.harness.read(peer, usize::MAX, &mut got);
        assert!(start.elapsed() < LONG, "T6: the response is still here");
        if outer.0.is_none() {
            world.turn(1);
        }
    }
    assert_eq!(got, b"response");
    until(&mut world, &mut outer, |world| world.page(token).sent.len() == 1);
}

pub(crate) fn t6_work_left_is_due_at_once<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let mut outer = Outer::of(&mut world);
    let contents = pattern(3_000_000, 1);
    world.send(token, with_file(b"head", &file_of(&contents), 0, contents.len() as u64));
    let mut got = Vec::new();
    while got.len() < contents.len() + 4 {
        settle(&mut world);
        world.harness.read(peer, usize::MAX, &mut got);
        if got.len() < contents.len() + 4 {
            assert!(outer.is_readable(LONG), "T6: there is room, and nothing shows it");
            world.turn(if outer.0.is_some() { 0 } else { 1 });
        }
    }
    assert_eq!(&got[4..], contents);
}

/// Timeouts that the alarm covers, and shorter ones.
pub(crate) fn t6_the_end_of_a_timeout_shows<H: Harness>() {
    let mut world = World::<H>::new();
    let mut outer = Outer::of(&mut world);
    for timeout_ms in [300, 20, 250] {
        settle(&mut world);
        let (start, end_ms) = (Instant::now(), world.driver().now_ms() + timeout_ms);
        while world.driver().now_ms() < end_ms {
            let timeout = Duration::from_millis(end_ms - world.driver().now_ms());
            let left = world.driver().arm(Some(timeout)).expect("it is armed");
            match left {
                Some(left) => assert!(left <= timeout, "T6: {left:?} of {timeout:?}"),
                None => assert!(outer.is_readable(LONG), "T6: the alarm shows"),
            }
            let wait_ms = left.map_or(0, |left| left.as_millis() as u64);
            world.turn(wait_ms);
            assert!(start.elapsed() < LONG, "T6: the timeout never ends");
        }
    }
}

/// Wakes by this thread and by another, each before an arrival.
pub(crate) fn t6_wakes_show<H: Harness>() {
    let (mut world, peer, token) = World::<H>::connected();
    let mut outer = Outer::of(&mut world);
    settle(&mut world);
    for round in 1..=10 {
        let waker = world.driver().waker();
        if round % 2 == 0 {
            waker.wake();
        } else {
            thread::spawn(move || waker.wake()).join().expect("it wakes");
        }
        until(&mut world, &mut outer, |world| world.count(|note| *note == Note::Woken) >= round);
        world.harness.write(peer, b"x");
        until(&mut world, &mut outer, |world| world.page(token).received.len() == round);
    }
}
