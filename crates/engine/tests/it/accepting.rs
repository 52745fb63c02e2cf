//! Accepting: exhausted resources, and addresses with too many connections.

use std::net::SocketAddr;

use shearwater_engine::io::AcceptError;
use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::{ACCEPT_RETRY_MS, NOTICES_MAX};
use shearwater_engine::{Limits, Notice};

use crate::harness::{Client, Setting, Unit, World};

const PAUSED: Notice = Notice::AcceptPaused { worker: 0, error: AcceptError::ProcessDescriptors };
const RESUMED: Notice = Notice::AcceptResumed { worker: 0 };

#[track_caller]
fn assert_served(world: &mut World, client: &mut Client) {
    client.got.clear();
    client.send(Unit::get(1).bytes);
    world.settle();
    client.assert_got(&[Unit::get(1).response]);
}

#[test]
fn want_of_descriptors_pauses_and_time_resumes() {
    let mut world = World::default();
    world.net.fail_accept(AcceptError::ProcessDescriptors);
    let mut client = world.connect();
    world.settle();
    assert_eq!((world.net.waiting(), world.told()), (1, vec![PAUSED]));
    let net = world.net.clone();
    let at_ms = world.sleep_until(|| net.waiting() == 0);
    assert_eq!(at_ms, ACCEPT_RETRY_MS);
    assert_eq!(world.told(), [RESUMED]);
    assert_served(&mut world, &mut client);
    client.peer.finish();
    world.end();
}

#[test]
fn want_that_lasts_is_told_once() {
    let mut world = World::default();
    let mut client = world.connect();
    for _ in 0..30 {
        world.net.fail_accept(AcceptError::ProcessDescriptors);
    }
    let net = world.net.clone();
    let at_ms = world.sleep_until(|| net.waiting() == 0);
    assert_eq!(at_ms, 30 * ACCEPT_RETRY_MS);
    assert_eq!(world.told(), [PAUSED, RESUMED]);
    assert_eq!(world.totals().hit_connections, 30);
    assert_served(&mut world, &mut client);
    client.peer.finish();
    world.end();
}

#[test]
fn each_kind_of_want_is_told() {
    for error in [AcceptError::ProcessDescriptors, AcceptError::SystemFiles, AcceptError::Memory] {
        let mut world = World::default();
        world.net.fail_accept(error);
        let client = world.connect();
        world.settle();
        assert_eq!(world.told(), [Notice::AcceptPaused { worker: 0, error }]);
        client.peer.finish();
        world.end();
    }
}

#[test]
fn reports_a_failed_listener_once() {
    let options = SimOptions { listeners: 2, ..SimOptions::default() };
    let mut world = World::new(Setting { sim: options, ..Setting::default() });
    let mut client = world.connect();
    world.settle();
    world.net.fail_listener(1, 22);
    world.settle();
    let failed = Notice::ListenerFailed { worker: Some(0), address: "listener 1".to_owned(), errno: 22 };
    assert_eq!(world.told(), [failed]);
    assert_served(&mut world, &mut client);
    let mut other = world.connect();
    assert_served(&mut world, &mut other);
    assert_eq!(world.told(), []);
    client.peer.finish();
    other.peer.finish();
    world.end();
}

#[test]
fn a_close_makes_room_at_once() {
    let sim = SimOptions { connections_max: 2, ..SimOptions::default() };
    let mut world = World::new(Setting { sim, ..Setting::default() });
    let mut clients: Vec<Client> = (0..5).map(|_| world.connect()).collect();
    world.settle();
    assert_eq!((world.net.waiting(), world.net.connections()), (3, 2));
    assert_eq!(world.told(), [PAUSED]);
    for client in &mut clients {
        assert_served(&mut world, client);
        client.peer.finish();
        world.settle();
    }
    assert_eq!(world.net.now_ms(), 0, "without waiting for the time to retry");
    assert_eq!(world.told(), [], "that one has found room is no news while others wait");
    world.net.advance(ACCEPT_RETRY_MS);
    let client = world.connect();
    client.peer.finish();
    world.end();
    assert_eq!(world.told(), [RESUMED]);
}

#[test]
fn a_bound_that_was_asked_for_is_told_apart_from_want_of_descriptors() {
    let sim = SimOptions { connections_max: 2, ..SimOptions::default() };
    let limits = Limits { connections_max: 2, ..Limits::default() };
    for (clients, notice) in [(1, PAUSED), (3, Notice::Full { worker: 0, connections_max: 2 })] {
        let mut world = World::new(Setting { sim: sim.clone(), limits, ..Setting::default() });
        if clients == 1 {
            world.net.fail_accept(AcceptError::ProcessDescriptors);
        }
        let clients: Vec<Client> = (0..clients).map(|_| world.connect()).collect();
        world.settle();
        assert_eq!(world.told(), [notice]);
        clients.iter().for_each(|client| client.peer.finish());
        world.end();
    }
    let said = Notice::Full { worker: 0, connections_max: 2 }.to_string();
    assert!(said.contains("it holds 2, its share of max_connections") && !said.contains("ulimit"), "{said}");
}

#[test]
fn a_drain_ends_though_descriptors_ran_out() {
    let sim = SimOptions { connections_max: 1, ..SimOptions::default() };
    let mut world = World::new(Setting { sim, ..Setting::default() });
    let mut first = world.connect();
    let mut second = world.connect();
    assert_served(&mut world, &mut first);
    second.send(Unit::get(2).bytes);
    world.control.drain(60_000);
    let took_ms = world.run();
    second.assert_got(&[Unit::new("", Unit::get(2).response.last()).response]);
    assert!(world.connect().peer.saw_reset(), "the listeners are closed");
    assert!(took_ms < 15_000, "{took_ms} ms");
}

#[test]
fn a_stop_ends_though_descriptors_ran_out() {
    let mut world = World::default();
    let _clients: Vec<Client> = (0..3).map(|_| world.connect()).collect();
    world.net.fail_accept(AcceptError::Memory);
    world.settle();
    world.net.fail_accept(AcceptError::Memory);
    world.control.stop();
    world.run();
}

#[test]
fn an_address_may_hold_so_many() {
    let mut world = World::with_limits(Limits { connections_per_address_max: 2, ..Limits::default() });
    let from = |world: &World, host: u8, port: u16| {
        Client::new(world.net.connect_as(0, SocketAddr::from(([127, 0, 0, host], port))))
    };
    let mut first = from(&world, 1, 1);
    let mut second = from(&world, 1, 2);
    world.settle();
    let third = from(&world, 1, 3);
    let mut other = from(&world, 2, 1);
    world.settle();
    assert!(third.peer.saw_reset());
    for client in [&mut first, &mut second, &mut other] {
        assert_served(&mut world, client);
    }
    assert_eq!(world.totals().connections_refused, 1);
    // Each close makes room for another connection, however it closes.
    first.peer.finish();
    second.peer.reset();
    world.settle();
    let mut next = [from(&world, 1, 4), from(&world, 1, 5)];
    world.settle();
    let last = from(&world, 1, 6);
    world.settle();
    assert!(last.peer.saw_reset());
    next.iter_mut().for_each(|client| assert_served(&mut world, client));
    world.end();
    assert_eq!(world.totals().connections_refused, 2);
}

#[test]
fn notices_that_nobody_reads_are_dropped_and_counted() {
    let mut world = World::default();
    // Each round pauses and resumes: two notices.
    for _ in 0..NOTICES_MAX {
        world.net.fail_accept(AcceptError::Memory);
        let client = world.connect();
        client.peer.finish();
        world.end();
    }
    assert_eq!(world.totals().hit_notices, NOTICES_MAX as u64);
    assert_eq!(world.told().len(), NOTICES_MAX);
}
