//! Listeners that are added and removed while the worker serves: what becomes of their connections.

use std::fs::File;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use shearwater_engine::Timeouts;
use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::io::{Listener, ListenerId};

use crate::harness::{Setting, SimClient, SimWorld, Unit};

/// `drain_idle_ms`, a tick of the clock, and the rounding of short timeouts.
const SHORTLY: RangeInclusive<u64> = 500..=756;

fn world(sim: &SimOptions) -> SimWorld {
    SimWorld::new(Setting { sim: SimOptions { listeners: 2, ..sim.clone() }, ..Setting::default() })
}

/// Returns a listener for the simulated driver, which uses only its number.
fn listener(id: ListenerId) -> Listener {
    Listener::new(File::open("/dev/null").expect("any descriptor").into(), id)
}

fn connect(world: &SimWorld, listener: ListenerId) -> SimClient {
    SimClient::new(world.net.connect_as(listener, SocketAddr::from(([127, 0, 0, 9], 99))))
}

fn remove(world: &mut SimWorld, listener: ListenerId) {
    world.control.change_listeners(0, Vec::new(), &[listener]);
    world.settle();
}

/// Returns a connection through this listener after a response.
fn idle(world: &mut SimWorld, listener: ListenerId) -> SimClient {
    let mut client = connect(world, listener);
    world.feed(&mut client, Unit::get(0).bytes);
    client.assert_got(&[Unit::get(0).response]);
    client.got.clear();
    client
}

#[test]
fn idle_connections_of_a_removed_listener_are_closed_shortly() {
    let mut world = world(&SimOptions::default());
    let (mut other, mut of_removed) = (idle(&mut world, 0), idle(&mut world, 1));
    let mut silent = connect(&world, 1);
    world.settle();
    remove(&mut world, 1);
    assert!(connect(&world, 1).peer.saw_reset(), "it is closed");
    world.pass(*SHORTLY.start() - 100);
    assert_eq!(world.in_use().0, 3);
    world.pass(*SHORTLY.end() - *SHORTLY.start() + 100);
    of_removed.assert_last(&[]);
    silent.assert_last(&[]);
    assert_eq!((world.in_use().0, world.totals().hit_drain_idle_ms), (1, 2));
    world.assert_usable(&mut other);
    world.pass(Timeouts::default().idle_ms / 2);
    world.assert_usable(&mut other);
}

#[test]
fn the_present_request_of_a_removed_listener_gets_the_last_response() {
    let mut world = world(&SimOptions::default());
    let mut idle = idle(&mut world, 1);
    let mut partial = connect(&world, 1);
    let bytes = Unit::get(1).bytes;
    world.feed(&mut partial, &bytes[..9]);
    let mut other = connect(&world, 0);
    world.settle();
    remove(&mut world, 1);
    world.feed(&mut partial, &bytes[9..]);
    partial.assert_last(&[Unit::get(1).response.last()]);
    world.feed(&mut idle, Unit::get(2).bytes);
    idle.assert_last(&[Unit::get(2).response.last()]);
    world.feed(&mut other, Unit::get(3).bytes);
    other.assert_got(&[Unit::get(3).response]);
    [partial, idle].iter().for_each(|client| client.peer.finish());
    world.settle();
    assert_eq!(world.in_use().0, 1);
}

#[test]
fn only_the_last_of_the_received_requests_gets_a_close() {
    let mut world = world(&SimOptions::default());
    let mut client = connect(&world, 1);
    client.peer.set_reading(false);
    let units: Vec<Unit> = (0..200).map(Unit::get).collect();
    client.send(Unit::stream(&units));
    world.turn();
    remove(&mut world, 1);
    world.read_on(&client);
    let mut responses = Unit::responses(&units);
    responses[199] = responses[199].clone().last();
    client.assert_last(&responses);
}

#[test]
fn connections_in_the_queue_of_a_removed_listener_are_served() {
    let mut world = world(&SimOptions::default());
    world.settle();
    let mut clients: Vec<_> = (0..40).map(|_| connect(&world, 1)).collect();
    clients.iter_mut().for_each(|client| client.send(Unit::get(4).bytes));
    remove(&mut world, 1);
    clients.iter_mut().for_each(|client| client.assert_last(&[Unit::get(4).response.last()]));
    world.pass(2_000);
    assert_eq!(world.in_use().0, 0);
}

#[test]
fn nothing_is_left_of_a_listener_that_is_removed_from_a_rough_kernel() {
    for seed in 1..50 {
        let mut world = world(&SimOptions::rough(seed));
        for id in 2..6 {
            let mut clients: Vec<_> = (0..20).map(|_| connect(&world, id - 1)).collect();
            clients.iter_mut().for_each(|client| client.send(Unit::get(4).bytes));
            world.turn();
            world.control.change_listeners(0, vec![listener(id)], &[id - 1]);
            world.pass(200);
        }
        world.pass(20_000);
        assert_eq!((world.in_use().0, world.net.waiting()), (0, 0), "seed {seed}");
    }
}

#[test]
fn a_number_can_be_used_again() {
    let mut world = world(&SimOptions::default());
    let mut old = idle(&mut world, 1);
    for _ in 0..100 {
        remove(&mut world, 1);
        world.control.change_listeners(0, vec![listener(1)], &[]);
        world.settle();
        let mut new = idle(&mut world, 1);
        world.assert_usable(&mut new);
        new.peer.finish();
        world.settle();
    }
    world.pass(*SHORTLY.end());
    old.assert_last(&[]);
    let mut last = idle(&mut world, 1);
    world.pass(2_000);
    world.assert_usable(&mut last);
}

#[test]
fn a_drain_and_a_removal_end_in_either_order() {
    for drains_first in [false, true] {
        let mut world = world(&SimOptions::default());
        let mut clients = [idle(&mut world, 0), idle(&mut world, 1)];
        if drains_first {
            world.control.drain(60_000);
        }
        world.control.change_listeners(0, vec![listener(2)], &[1]);
        world.control.drain(60_000);
        let took_ms = world.run();
        assert!(SHORTLY.contains(&took_ms), "{took_ms} ms");
        clients.iter_mut().for_each(|client| client.assert_last(&[]));
        for id in 0..3 {
            assert!(connect(&world, id).peer.saw_reset());
        }
    }
}
