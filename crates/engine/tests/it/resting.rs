//! Idle trim: a worker without events closes cached files, frees spare memory once, and calls the hook.

use std::cell::Cell;

use shearwater_engine::Timeouts;
use shearwater_engine::limits::{CACHED_OPEN_FILE_MS_MAX, IDLE_TRIM_AFTER_MS, IDLE_TRIM_EVENTS_MIN};

use crate::harness::app::is_kept;
use crate::harness::asking::get;
use crate::harness::{Client, Setting, Unit, World};

thread_local! {
    static RESTS: Cell<u32> = const { Cell::new(0) };
}

fn rests() -> u32 {
    RESTS.get()
}

fn begin() -> (World, Client) {
    let at_rest: fn() = || RESTS.set(RESTS.get() + 1);
    RESTS.set(0);
    let timeouts = Timeouts { idle_ms: 60 * IDLE_TRIM_AFTER_MS, ..Timeouts::default() };
    let mut world = World::new(Setting { at_rest: Some(at_rest), timeouts, ..Setting::default() });
    let client = world.connect();
    world.settle();
    (world, client)
}

/// Causes as many events as a trim requires.
fn stir(world: &mut World, client: &mut Client) {
    for _ in 0..IDLE_TRIM_EVENTS_MIN {
        ask(world, client);
    }
}

fn ask(world: &mut World, client: &mut Client) {
    client.got.clear();
    client.send(Unit::get(0).bytes);
    world.settle();
    client.assert_got(&[Unit::get(0).response]);
}

#[test]
fn a_worker_rests_once_when_nothing_happens() {
    let (mut world, mut client) = begin();
    for times in 1..=3 {
        stir(&mut world, &mut client);
        let asked_ms = world.net.now_ms();
        assert_eq!(rests(), times - 1, "it has just been heard of");
        let rested_ms = world.sleep_until(|| rests() == times);
        assert!(
            (IDLE_TRIM_AFTER_MS..=IDLE_TRIM_AFTER_MS + 1).contains(&(rested_ms - asked_ms)),
            "{asked_ms}, {rested_ms}"
        );
    }
    // It continues sleeping, and wakes for the client's deadline alone, by way of its timer's levels.
    let (net, rested_ms) = (world.net.clone(), world.net.now_ms());
    world.sleep_until(|| net.now_ms() > rested_ms + 10 * IDLE_TRIM_AFTER_MS);
    assert_eq!(rests(), 3, "once");
    drop(client);
    world.end();
}

#[test]
fn a_worker_that_is_heard_of_does_not_rest() {
    let (mut world, mut client) = begin();
    for _ in 0..20 {
        let until_ms = world.net.now_ms() + IDLE_TRIM_AFTER_MS - 1;
        stir(&mut world, &mut client);
        world.net.advance(IDLE_TRIM_AFTER_MS - 1);
        assert!(world.net.now_ms() >= until_ms);
    }
    assert_eq!(rests(), 0);
}

/// State in use remains: half a head, a pipeline whose responses are unread.
#[test]
fn what_is_unfinished_outlives_a_rest() {
    let (mut world, mut client) = begin();
    stir(&mut world, &mut client);
    client.got.clear();
    let mut other = world.connect();
    let (bytes, response) = (Unit::get(0).bytes, Unit::get(0).response);
    let (first, last) = bytes.split_at(bytes.len() / 2);
    client.send(first);
    other.send(bytes.repeat(3));
    world.sleep_until(|| rests() == 1);
    client.send(last);
    world.settle();
    client.assert_got(std::slice::from_ref(&response));
    other.assert_got(&[response.clone(), response.clone(), response]);
}

#[test]
fn a_hook_that_panics_costs_nobody_anything() {
    let at_rest: fn() = || {
        RESTS.set(RESTS.get() + 1);
        panic!("at rest");
    };
    RESTS.set(0);
    let mut world = World::new(Setting { at_rest: Some(at_rest), ..Setting::default() });
    let mut client = world.connect();
    for times in 1..=2 {
        stir(&mut world, &mut client);
        world.sleep_until(|| rests() == times);
    }
    ask(&mut world, &mut client);
}

#[test]
fn few_events_are_not_worth_a_rest() {
    let (mut world, mut client) = begin();
    (0..5).for_each(|_| ask(&mut world, &mut client));
    let asked_ms = world.net.now_ms();
    world.turn();
    assert!(world.net.now_ms() > asked_ms + 2 * IDLE_TRIM_AFTER_MS, "it sleeps on");
    assert_eq!(rests(), 0);
    let mut client = world.connect();
    stir(&mut world, &mut client);
    world.sleep_until(|| rests() == 1);
}

/// No other client is needed for that.
#[test]
fn a_file_is_closed_a_moment_after_it_was_asked_for() {
    let (mut world, mut client) = begin();
    assert!(!is_kept());
    let asked_ms = world.net.now_ms();
    client.send(get("/kept-file"));
    world.settle();
    assert!(is_kept(), "for those who ask for it next");
    client.send(get("/kept-file"));
    let closed_ms = world.sleep_until(|| !is_kept());
    let lasted_ms = closed_ms - asked_ms;
    assert!((CACHED_OPEN_FILE_MS_MAX..=CACHED_OPEN_FILE_MS_MAX + 1).contains(&lasted_ms), "{lasted_ms} ms");
}
