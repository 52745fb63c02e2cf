//! Clause W: a waker reaches its driver from any thread.

use std::thread;

use shearwater_io::Driver;

use super::harness::Harness;
use super::world::{Note, World};

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
