//! Draining and stopping: received requests get their responses, and the worker ends in time.

use shearwater_engine::Notice;
use shearwater_engine::io::sim::SimOptions;

use crate::harness::unit::head;
use crate::harness::{ExpectedResponse, Setting, SimClient, SimWorld, Unit};

/// `drain_idle_ms`, a tick of the clock, and the rounding of short timeouts.
const SHORTLY: std::ops::RangeInclusive<u64> = 500..=756;

fn idle_client(world: &mut SimWorld) -> SimClient {
    let mut client = world.send(Unit::get(0).bytes);
    client.assert_got(&[Unit::get(0).response]);
    client.got.clear();
    client
}

#[test]
fn a_worker_without_clients_ends_at_once() {
    let mut world = SimWorld::default();
    world.settle();
    world.control.drain(60_000);
    assert_eq!(world.run(), 0);
    assert!(world.connect().peer.saw_reset(), "the listener is closed");
}

#[test]
fn a_stop_before_the_start_holds() {
    let mut world = SimWorld::default();
    world.control.stop();
    world.worker.run().expect("the simulated driver doesn't break");
    world.end();
    assert!(world.connect().peer.saw_reset());
}

#[test]
fn idle_connections_are_closed_shortly_without_a_response() {
    let mut world = SimWorld::default();
    let mut idle = idle_client(&mut world);
    let mut silent = world.connect();
    world.settle();
    world.control.drain(60_000);
    let took_ms = world.run();
    assert!(SHORTLY.contains(&took_ms), "{took_ms} ms");
    for client in [&mut idle, &mut silent] {
        client.assert_last(&[]);
    }
    assert_eq!(world.totals().hit_drain_idle_ms, 2);
}

#[test]
fn a_request_on_an_idle_connection_gets_the_last_response() {
    let mut world = SimWorld::default();
    let mut client = idle_client(&mut world);
    world.control.drain(60_000);
    world.settle();
    world.feed(&mut client, Unit::get(1).bytes);
    client.assert_last(&[Unit::get(1).response.last()]);
    client.peer.finish();
    world.run();
}

#[test]
fn a_client_that_stays_after_its_last_response_is_closed_shortly() {
    let mut world = SimWorld::default();
    let mut client = idle_client(&mut world);
    let mut lingering = world.send(Unit::closed_by_handler(1).bytes);
    world.control.drain(60_000);
    world.settle();
    world.feed(&mut client, Unit::get(2).bytes);
    client.assert_got(&[Unit::get(2).response.last()]);
    lingering.assert_got(&[Unit::closed_by_handler(1).response]);
    let took_ms = world.run();
    assert!(SHORTLY.contains(&took_ms), "{took_ms} ms");
    for client in [&mut client, &mut lingering] {
        client.assert_closed();
    }
    assert_eq!((world.totals().hit_linger_ms, world.totals().connections_cut_off), (2, 0));
}

/// A close with bytes unread is a reset, which could destroy the response.
#[test]
fn lingers_as_usual_for_a_client_that_has_not_read_its_last_response_or_still_sends() {
    for (is_reading, sent_after, is_long) in [(true, "", false), (false, "", true), (true, "more", true)] {
        let mut world = SimWorld::default();
        let mut client = world.connect();
        world.settle();
        world.control.drain(60_000);
        client.peer.set_reading(is_reading);
        world.feed(&mut client, Unit::get(2).bytes);
        client.send(sent_after);
        world.pass(9_000);
        assert_eq!(world.in_use().0, usize::from(is_long), "connections after 9 s");
        client.peer.set_reading(true);
        let took_ms = world.run();
        assert!(took_ms < 3_000, "{took_ms} ms");
        client.assert_last(&[Unit::get(2).response.last()]);
    }
}

#[test]
fn only_the_last_of_the_received_requests_gets_a_close() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.peer.set_reading(false);
    let units: Vec<Unit> = (0..200).map(Unit::get).collect();
    client.send(Unit::stream(&units));
    world.turn();
    world.control.drain(60_000);
    world.settle();
    world.read_on(&client);
    let mut responses = Unit::responses(&units);
    responses[199] = responses[199].clone().last();
    client.assert_last(&responses);
    client.peer.finish();
    world.run();
}

#[test]
fn a_partial_request_is_completed() {
    let mut world = SimWorld::default();
    let unit = Unit::post("buffer", 1, 1000);
    let mut clients = [10, 900].map(|cut| (cut, world.send(&unit.bytes[..cut])));
    world.control.drain(60_000);
    world.pass(5000);
    for (cut, client) in &mut clients {
        world.feed(client, &unit.bytes[*cut..]);
        client.assert_last(&[unit.response.clone().last()]);
        client.peer.finish();
    }
    assert_eq!(world.run(), 0);
}

#[test]
fn a_large_response_in_flight_has_its_time() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.stop_reading(0);
    world.feed(&mut client, Unit::big().bytes);
    world.control.drain(60_000);
    world.pass(20_000);
    assert!(!client.peer.saw_reset(), "no shorter write timeout than otherwise");
    client.peer.set_window(1 << 18);
    world.read_on(&client);
    client.assert_got(&[ExpectedResponse::big()]);
    world.run();
    client.assert_closed();
}

#[test]
fn the_deadline_ends_everything() {
    let mut world = SimWorld::default();
    let unit = Unit::post("buffer", 1, 1000);
    let mut slow = world.connect();
    slow.peer.set_reading(false);
    slow.send(Unit::big().bytes);
    let partial = [10, 900].map(|cut| world.send(&unit.bytes[..cut]));
    world.control.drain(3000);
    assert_eq!(world.run(), 3000);
    assert_eq!(world.totals().connections_cut_off, 3);
    assert_eq!(world.notices().last(), Some(&Notice::CutOff { worker: 0, connections: 3 }));
    partial.into_iter().for_each(|mut client| client.assert_last(&[]));
}

#[test]
fn idle_and_lingering_connections_do_not_count_as_cut_off() {
    let mut world = SimWorld::default();
    let mut idle = idle_client(&mut world);
    let _lingering = world.send_pieces([&Unit::closing(1).bytes[..], b"x"]);
    world.control.drain(100);
    assert_eq!(world.run(), 100, "both are there until the end");
    idle.assert_closed();
    let notices = (world.totals().connections_cut_off, world.notices());
    assert_eq!(notices, (0, vec![Notice::Draining { drain_ms: 100 }]));
}

#[test]
fn queued_connections_are_served() {
    let mut world = SimWorld::default();
    world.settle();
    let mut clients: Vec<SimClient> = (0..100).map(|_| world.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(Unit::get(1).bytes));
    world.control.drain(60_000);
    world.settle();
    for client in &mut clients {
        client.assert_got(&[Unit::get(1).response.last()]);
        client.peer.finish();
    }
    world.run();
}

#[test]
fn a_stop_closes_everything_now() {
    let mut world = SimWorld::default();
    let mut idle = idle_client(&mut world);
    let mut slow = world.connect();
    slow.peer.set_reading(false);
    world.feed(&mut slow, Unit::big().bytes);
    world.control.stop();
    assert_eq!(world.run(), 0);
    idle.assert_closed();
    assert!(world.connect().peer.saw_reset());
}

#[test]
fn a_stop_overrides_a_drain_and_not_the_other_way() {
    let mut world = SimWorld::default();
    let _idle = idle_client(&mut world);
    world.control.drain(60_000);
    world.settle();
    world.control.stop();
    world.control.drain(60_000);
    assert_eq!(world.run(), 0);
}

#[test]
fn a_second_drain_changes_nothing() {
    let mut world = SimWorld::default();
    let mut client = world.send(&Unit::get(1).bytes[..5]);
    world.control.drain(1000);
    world.pass(600);
    world.control.drain(60_000);
    assert_eq!(world.run(), 400);
    client.assert_closed();
    let cut_off = Notice::CutOff { worker: 0, connections: 1 };
    assert_eq!(world.notices(), [Notice::Draining { drain_ms: 1000 }, cut_off]);
}

#[test]
fn connections_that_arrive_during_a_stop_are_closed() {
    let sim = SimOptions { delays: 1.0, delay_ms_max: 10, ..SimOptions::default() };
    let mut world = SimWorld::new(Setting { sim, ..Setting::default() });
    let mut clients: Vec<SimClient> = (0..100).map(|_| world.connect()).collect();
    world.control.stop();
    world.run();
    assert_eq!(world.totals().connections_accepted, 100);
    clients.iter_mut().for_each(|client| client.assert_got(&[]));
}

/// A body of no bytes that its handler doesn't read ends with its head: a request follows.
#[test]
fn a_request_after_an_empty_body_gets_its_response() {
    for empty in ["Content-Length: 0\r\n", ""] {
        let mut world = SimWorld::default();
        world.settle();
        world.control.drain(60_000);
        let mut client = world.send([head("POST", "/at-once/0", empty), Unit::get(1).bytes].concat());
        let text = client.text();
        assert_eq!(text.matches("HTTP/1.1 200 ").count(), 2, "{empty:?}: {text:?}");
        client.peer.finish();
        world.run();
    }
}
