//! Accepting: exhausted resources, and addresses with too many connections.

use std::net::SocketAddr;

use shearwater_engine::io::AcceptError;
use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::{
    ACCEPT_RETRY_MS, IDLE_SCAN_MAX, NOTICES_MAX, SILENT_CROWDED_MS_MIN, SILENT_MS_MIN,
};
use shearwater_engine::{Limits, Notice};

use crate::harness::{Setting, SimClient, SimWorld, Unit};

const PAUSED: Notice = Notice::AcceptPaused { worker: 0, error: AcceptError::ProcessDescriptors };
const RESUMED: Notice = Notice::AcceptResumed { worker: 0 };
const FULL: Notice = Notice::Full { worker: 0, connections_max: 2 };

fn with_descriptors(connections_max: usize) -> SimOptions {
    SimOptions { connections_max, ..SimOptions::default() }
}

#[track_caller]
fn assert_served(world: &mut SimWorld, client: &mut SimClient) {
    client.got.clear();
    world.feed(client, Unit::get(1).bytes);
    client.assert_got(&[Unit::get(1).response]);
}

/// A shortage is reported once, however often accepting is tried again.
#[test]
fn accepting_resumes_after_a_shortage_of_descriptors() {
    for retries in [1, 30] {
        let mut world = SimWorld::default();
        (0..retries).for_each(|_| world.net.fail_accept(AcceptError::ProcessDescriptors));
        let mut client = world.connect();
        world.settle();
        assert_eq!((world.net.waiting(), world.notices()), (1, vec![PAUSED]));
        let at_ms = world.sleep_until(|net| net.waiting() == 0);
        assert_eq!(at_ms, retries * ACCEPT_RETRY_MS);
        assert_eq!((world.notices(), world.totals().hit_connections), (vec![RESUMED], retries));
        assert_served(&mut world, &mut client);
        world.finish(&client);
    }
}

#[test]
fn each_kind_of_shortage_is_reported() {
    for error in [AcceptError::ProcessDescriptors, AcceptError::SystemFiles, AcceptError::Memory] {
        let mut world = SimWorld::default();
        world.net.fail_accept(error);
        let client = world.connect();
        world.settle();
        assert_eq!(world.notices(), [Notice::AcceptPaused { worker: 0, error }]);
        world.finish(&client);
    }
}

#[test]
fn reports_a_failed_listener_once() {
    let sim = SimOptions { listeners: 2, ..SimOptions::default() };
    let mut world = SimWorld::new(Setting { sim, ..Setting::default() });
    let mut client = world.connect();
    world.settle();
    world.net.fail_listener(1, 22);
    world.settle();
    let failed = Notice::ListenerFailed { worker: Some(0), address: "listener 1".to_owned(), errno: 22 };
    assert_eq!(world.notices(), [failed]);
    assert_served(&mut world, &mut client);
    let mut other = world.connect();
    assert_served(&mut world, &mut other);
    assert_eq!(world.notices(), []);
    client.peer.finish();
    world.finish(&other);
}

#[test]
fn a_close_makes_room_at_once() {
    let mut world = SimWorld::new(Setting { sim: with_descriptors(2), ..Setting::default() });
    let mut clients: Vec<SimClient> = (0..5).map(|_| world.connect()).collect();
    world.settle();
    assert_eq!((world.net.waiting(), world.net.connections()), (3, 2));
    assert_eq!(world.notices(), [PAUSED]);
    for client in &mut clients {
        assert_served(&mut world, client);
        client.peer.finish();
        world.settle();
    }
    assert_eq!(world.net.now_ms(), 0, "without waiting for the time to retry");
    assert_eq!(world.notices(), [], "nothing is reported while others wait");
    world.net.advance(ACCEPT_RETRY_MS);
    let client = world.connect();
    world.finish(&client);
    assert_eq!(world.notices(), [RESUMED]);
}

#[test]
fn a_configured_limit_is_reported_differently_than_a_shortage() {
    let limits = Limits { connections_max: 2, ..Limits::default() };
    for (clients, notice) in [(1, PAUSED), (3, FULL)] {
        let mut world = SimWorld::new(Setting { sim: with_descriptors(2), limits, ..Setting::default() });
        if clients == 1 {
            world.net.fail_accept(AcceptError::ProcessDescriptors);
        }
        let clients: Vec<SimClient> = (0..clients).map(|_| world.connect()).collect();
        world.settle();
        assert_eq!(world.notices(), [notice]);
        clients.iter().for_each(|client| client.peer.finish());
        world.end();
    }
    let said = FULL.to_string();
    assert!(said.contains("the server holds 2, its max_connections") && !said.contains("ulimit"), "{said}");
}

#[test]
fn a_drain_ends_during_a_shortage() {
    let mut world = SimWorld::new(Setting { sim: with_descriptors(1), ..Setting::default() });
    let (mut first, mut second) = (world.connect(), world.connect());
    assert_served(&mut world, &mut first);
    second.send(Unit::get(2).bytes);
    world.control.drain(60_000);
    let took_ms = world.run();
    second.assert_got(&[Unit::get(2).response.last()]);
    assert!(world.connect().peer.saw_reset(), "the listeners are closed");
    assert!(took_ms < 15_000, "{took_ms} ms");
}

#[test]
fn a_stop_ends_during_a_shortage() {
    let mut world = SimWorld::default();
    let _clients: Vec<SimClient> = (0..3).map(|_| world.connect()).collect();
    world.net.fail_accept(AcceptError::Memory);
    world.settle();
    world.net.fail_accept(AcceptError::Memory);
    world.control.stop();
    world.run();
}

#[test]
fn connections_of_an_address_are_limited() {
    let mut world = SimWorld::with_limits(Limits { connections_per_address_max: 2, ..Limits::default() });
    let from = |world: &mut SimWorld, host: u8, port: u16| {
        let client = SimClient::new(world.net.connect_as(0, SocketAddr::from(([127, 0, 0, host], port))));
        world.settle();
        client
    };
    let mut accepted = [from(&mut world, 1, 1), from(&mut world, 1, 2), from(&mut world, 2, 1)];
    assert!(from(&mut world, 1, 3).peer.saw_reset());
    accepted.iter_mut().for_each(|client| assert_served(&mut world, client));
    assert_eq!(world.totals().connections_refused, 1);
    // Each close makes room for another connection, however it closes.
    accepted[0].peer.finish();
    accepted[1].peer.reset();
    world.settle();
    let mut next = [from(&mut world, 1, 4), from(&mut world, 1, 5)];
    assert!(from(&mut world, 1, 6).peer.saw_reset());
    next.iter_mut().for_each(|client| assert_served(&mut world, client));
    world.end();
    assert_eq!(world.totals().connections_refused, 2);
}

#[test]
fn unread_notices_are_dropped_and_counted() {
    let mut world = SimWorld::default();
    // Each round pauses and resumes: two notices.
    for _ in 0..NOTICES_MAX {
        world.net.fail_accept(AcceptError::Memory);
        let client = world.connect();
        world.finish(&client);
    }
    assert_eq!(world.totals().hit_notices, NOTICES_MAX as u64);
    assert_eq!(world.notices().len(), NOTICES_MAX);
}

/// A world with room for so many connections.
fn bounded(connections_max: usize) -> SimWorld {
    let limits = Limits { connections_max, ..Limits::default() };
    SimWorld::new(Setting { sim: with_descriptors(connections_max), limits, ..Setting::default() })
}

/// A world whose only two connections are idle, the second for longer.
fn full_of_idle() -> (SimWorld, [SimClient; 2]) {
    let mut world = bounded(2);
    let mut clients = [world.connect(), world.connect()];
    for index in [0, 1, 0] {
        assert_served(&mut world, &mut clients[index]);
        world.pass(5000);
    }
    (world, clients)
}

#[test]
fn the_longest_idle_connection_makes_room_at_once() {
    let (mut world, [mut younger, older]) = full_of_idle();
    let at_ms = world.net.now_ms();
    let mut newcomer = world.connect();
    newcomer.send(Unit::get(2).bytes);
    world.settle();
    newcomer.assert_got(&[Unit::get(2).response.last()]);
    assert_eq!(world.net.now_ms(), at_ms);
    assert!(older.peer.saw_fin() && !younger.peer.saw_fin());
    // The pressure has ended: connections are kept again.
    world.pass(ACCEPT_RETRY_MS);
    assert_served(&mut world, &mut younger);
    world.pass(1000);
    assert!(!younger.peer.saw_fin());
}

#[test]
fn nothing_is_closed_while_nobody_waits() {
    let (mut world, [younger, older]) = full_of_idle();
    world.pass(2 * ACCEPT_RETRY_MS);
    assert!(!younger.peer.saw_fin() && !older.peer.saw_fin());
    assert_eq!(world.totals().hit_connections, 0);
}

/// Clients that ask again and again can't keep others out.
#[test]
fn busy_connections_end_while_others_wait() {
    let mut world = bounded(2);
    let mut clients = [world.connect(), world.connect()];
    clients.iter_mut().for_each(|client| assert_served(&mut world, client));
    let mut newcomer = world.connect();
    newcomer.send(Unit::get(2).bytes);
    world.settle();
    assert_eq!(world.net.waiting(), 1, "used within the last second: their next response ends them");
    clients[0].got.clear();
    world.feed(&mut clients[0], Unit::get(1).bytes);
    clients[0].assert_got(&[Unit::get(1).response.last()]);
    clients[0].peer.finish();
    world.settle();
    newcomer.assert_got(&[Unit::get(2).response.last()]);
    assert!(!clients[1].peer.saw_fin());
}

/// Without a further request, they are closed a moment later.
#[test]
fn connections_that_were_just_used_make_room_soon() {
    let mut world = bounded(2);
    let mut clients = [world.connect(), world.connect()];
    clients.iter_mut().for_each(|client| assert_served(&mut world, client));
    let mut newcomer = world.connect();
    newcomer.send(Unit::get(2).bytes);
    let at_ms = world.sleep_until(|net| net.waiting() == 0);
    assert!(at_ms <= 256, "{at_ms} ms");
    world.settle();
    newcomer.assert_got(&[Unit::get(2).response.last()]);
}

#[test]
fn silent_connections_make_room_but_not_at_once() {
    let mut world = bounded(2);
    let silent = [world.connect(), world.connect()];
    let mut newcomer = world.connect();
    newcomer.send(Unit::get(2).bytes);
    world.settle();
    assert_eq!(world.net.waiting(), 1, "their requests may be on the way");
    let at_ms = world.sleep_until(|net| net.waiting() == 0);
    assert!((256..=768).contains(&at_ms), "{at_ms} ms");
    world.settle();
    newcomer.assert_got(&[Unit::get(2).response.last()]);
    assert_eq!(silent.iter().filter(|client| client.peer.saw_fin()).count(), 1);
}

/// Clients that send nothing delay others by less than a second, however many wait before them; a request that is on
/// the way has its time.
#[test]
fn a_long_queue_of_silent_connections_is_soon_over() {
    const PLACES: usize = 64;
    let mut world = bounded(PLACES);
    let silent: Vec<_> = (0..400).map(|_| world.connect()).collect();
    let mut late = world.connect();
    let mut newcomer = world.connect();
    newcomer.send(Unit::get(2).bytes);
    let behind: Vec<_> = (0..PLACES).map(|_| world.connect()).collect();
    let taken_ms = world.sleep_until(|net| net.waiting() <= behind.len());
    world.settle();
    newcomer.assert_got(&[Unit::get(2).response.last()]);
    world.sleep_until(|net| net.now_ms() >= taken_ms + SILENT_CROWDED_MS_MIN - 1);
    late.send(Unit::get(2).bytes);
    world.settle();
    late.assert_got(&[Unit::get(2).response.last()]);
    let rounds = (silent.len() / PLACES) as u64;
    let at_once_ms = SILENT_MS_MIN + rounds * SILENT_CROWDED_MS_MIN;
    assert!((SILENT_MS_MIN..=at_once_ms).contains(&taken_ms), "{taken_ms} ms");
}

/// Requests that are being received, handled or responded to are never cut off.
#[test]
fn connections_at_work_make_no_room() {
    let mut world = bounded(2);
    let mut partial = world.connect();
    world.feed(&mut partial, "GET /plain/1 HT");
    let mut idle = world.connect();
    assert_served(&mut world, &mut idle);
    world.pass(2000);
    let waiting: Vec<SimClient> = (0..3).map(|_| world.connect()).collect();
    world.settle();
    assert!(idle.peer.saw_fin() && !partial.peer.saw_fin());
    assert_eq!(world.net.waiting(), 2);
    world.pass(3000);
    assert!(!partial.peer.saw_fin() && !partial.peer.saw_reset());
    drop(waiting);
}

/// A search examines a bounded number of slots in a turn, and continues where it ended.
#[test]
fn finds_an_idle_connection_behind_many_busy_ones() {
    let many = 2 * IDLE_SCAN_MAX;
    let mut world = bounded(many + 1);
    let mut busy: Vec<SimClient> = (0..many).map(|_| world.connect()).collect();
    busy.iter_mut().for_each(|client| client.send("GET /plain/1 HT"));
    world.settle();
    let mut idle = world.connect();
    assert_served(&mut world, &mut idle);
    world.pass(2000);
    let mut newcomer = world.connect();
    newcomer.send(Unit::get(2).bytes);
    world.settle();
    newcomer.assert_got(&[Unit::get(2).response.last()]);
    assert!(idle.peer.saw_fin());
    assert!(busy.iter().all(|client| !client.peer.saw_fin()));
}
