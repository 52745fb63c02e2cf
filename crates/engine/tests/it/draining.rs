//! Draining and stopping: received requests get their responses, and the worker ends in time.

use shearwater_engine::Notice;
use shearwater_engine::io::sim::SimOptions;

use crate::harness::unit::head;
use crate::harness::{Client, ExpectedResponse, Setting, Unit, World};

fn idle_client(world: &mut World) -> Client {
    let mut client = world.connect();
    client.send(Unit::get(0).bytes);
    world.settle();
    client.assert_got(&[Unit::get(0).response]);
    client.got.clear();
    client
}

#[test]
fn a_worker_without_clients_ends_at_once() {
    let mut world = World::default();
    world.settle();
    world.control.drain(60_000);
    assert_eq!(world.run(), 0);
    assert!(world.connect().peer.saw_reset(), "the listener is closed");
}

#[test]
fn an_order_given_before_the_start_holds() {
    let mut world = World::default();
    world.control.stop();
    world.worker.run().expect("the simulated driver doesn't break");
    world.end();
    assert!(world.connect().peer.saw_reset());
}

#[test]
fn idle_connections_get_a_moment_and_are_closed_in_silence() {
    let mut world = World::default();
    let mut idle = idle_client(&mut world);
    let mut silent = world.connect();
    world.settle();
    world.control.drain(60_000);
    let took_ms = world.run();
    assert!((500..=756).contains(&took_ms), "{took_ms} ms");
    for client in [&mut idle, &mut silent] {
        client.assert_got(&[]);
        client.assert_closed();
    }
    assert_eq!(world.totals().hit_drain_idle_ms, 2);
}

#[test]
fn a_request_within_the_moment_is_responded_as_the_last() {
    let mut world = World::default();
    let mut client = idle_client(&mut world);
    world.control.drain(60_000);
    world.settle();
    client.send(Unit::get(1).bytes);
    world.settle();
    client.assert_got(&[Unit::get(1).response.last()]);
    client.assert_closed();
    client.peer.finish();
    world.run();
}

/// A tick of the clock, and the rounding of short timeouts.
const SHORTLY: std::ops::RangeInclusive<u64> = 500..=756;

#[test]
fn a_client_that_has_its_last_response_and_stays_is_left_soon() {
    let mut world = World::default();
    let mut client = idle_client(&mut world);
    let mut lingering = world.connect();
    lingering.send(Unit::closed_by_handler(1).bytes);
    world.settle();
    world.control.drain(60_000);
    world.settle();
    client.send(Unit::get(2).bytes);
    world.settle();
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
fn a_client_that_has_not_got_its_last_response_or_still_sends_is_waited_for_as_ever() {
    for (is_reading, sent_behind, is_long) in [(true, "", false), (false, "", true), (true, "more", true)] {
        let mut world = World::default();
        let mut client = world.connect();
        world.settle();
        world.control.drain(60_000);
        client.peer.set_reading(is_reading);
        client.send(Unit::get(2).bytes);
        world.settle();
        client.send(sent_behind);
        world.pass(9_000);
        assert_eq!(world.in_use().0, usize::from(is_long), "connections after 9 s");
        client.peer.set_reading(true);
        let took_ms = world.run();
        assert!(took_ms < 3_000, "{took_ms} ms");
        client.assert_got(&[Unit::get(2).response.last()]);
        client.assert_closed();
    }
}

#[test]
fn all_that_was_received_is_responded_and_only_the_last_says_so() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_reading(false);
    let units: Vec<Unit> = (0..200).map(Unit::get).collect();
    client.send(Unit::stream(&units));
    world.turn();
    world.control.drain(60_000);
    world.settle();
    client.peer.set_reading(true);
    world.settle();
    let mut responses = Unit::responses(&units);
    responses[199] = responses[199].clone().last();
    client.assert_got(&responses);
    client.assert_closed();
    client.peer.finish();
    world.run();
}

#[test]
fn a_half_received_request_is_completed() {
    let mut world = World::default();
    let unit = Unit::post("buffer", 1, 1000);
    let mut head = world.connect();
    let mut body = world.connect();
    head.send(&unit.bytes[..10]);
    body.send(&unit.bytes[..900]);
    world.settle();
    world.control.drain(60_000);
    world.pass(5000);
    head.send(&unit.bytes[10..]);
    body.send(&unit.bytes[900..]);
    world.settle();
    for client in [&mut head, &mut body] {
        client.assert_got(&[unit.response.clone().last()]);
        client.assert_closed();
        client.peer.finish();
    }
    assert_eq!(world.run(), 0);
}

#[test]
fn a_large_response_under_way_has_its_time() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_window(0);
    client.peer.set_reading(false);
    client.send(Unit::big().bytes);
    world.settle();
    world.control.drain(60_000);
    world.pass(20_000);
    assert!(!client.peer.saw_reset(), "no shorter write timeout than otherwise");
    client.peer.set_window(1 << 18);
    client.peer.set_reading(true);
    world.settle();
    client.assert_got(&[ExpectedResponse::big()]);
    world.run();
    client.assert_closed();
}

#[test]
fn the_deadline_ends_everything() {
    let mut world = World::default();
    let unit = Unit::post("buffer", 1, 1000);
    let mut slow = world.connect();
    slow.peer.set_reading(false);
    slow.send(Unit::big().bytes);
    let mut head = world.connect();
    let mut body = world.connect();
    head.send(&unit.bytes[..10]);
    body.send(&unit.bytes[..900]);
    world.settle();
    world.control.drain(3000);
    let took_ms = world.run();
    assert_eq!(took_ms, 3000);
    assert_eq!(world.totals().connections_cut_off, 3);
    assert_eq!(world.told().last(), Some(&Notice::CutOff { worker: 0, connections: 3 }));
    for client in [&mut head, &mut body] {
        client.assert_got(&[]);
        client.assert_closed();
    }
}

#[test]
fn who_is_idle_or_only_lingers_is_not_cut_off() {
    let mut world = World::default();
    let mut idle = idle_client(&mut world);
    let mut lingering = world.connect();
    lingering.send(Unit::closing(1).bytes);
    lingering.send(b"x");
    world.settle();
    world.control.drain(100);
    let took_ms = world.run();
    assert_eq!(took_ms, 100, "both are there until the end");
    idle.assert_closed();
    assert_eq!(
        (world.totals().connections_cut_off, world.told()),
        (0, vec![Notice::Draining { drain_ms: 100 }])
    );
}

#[test]
fn connections_that_were_queued_are_served() {
    let mut world = World::default();
    world.settle();
    let mut clients: Vec<Client> = (0..100).map(|_| world.connect()).collect();
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
    let mut world = World::default();
    let mut idle = idle_client(&mut world);
    let mut slow = world.connect();
    slow.peer.set_reading(false);
    slow.send(Unit::big().bytes);
    world.settle();
    world.control.stop();
    assert_eq!(world.run(), 0);
    idle.assert_closed();
    assert!(world.connect().peer.saw_reset());
}

#[test]
fn a_stop_overrides_a_drain_and_not_the_other_way() {
    let mut world = World::default();
    let _idle = idle_client(&mut world);
    world.control.drain(60_000);
    world.settle();
    world.control.stop();
    world.control.drain(60_000);
    assert_eq!(world.run(), 0);
}

#[test]
fn a_second_drain_changes_nothing() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(&Unit::get(1).bytes[..5]);
    world.settle();
    world.control.drain(1000);
    world.pass(600);
    world.control.drain(60_000);
    assert_eq!(world.run(), 400);
    client.assert_closed();
    let cut_off = Notice::CutOff { worker: 0, connections: 1 };
    assert_eq!(world.told(), [Notice::Draining { drain_ms: 1000 }, cut_off]);
}

#[test]
fn who_connects_while_the_worker_ends_is_turned_away() {
    let sim = SimOptions { delays: 1.0, delay_ms_max: 10, ..SimOptions::default() };
    let mut world = World::new(Setting { sim, ..Setting::default() });
    let mut clients: Vec<Client> = (0..100).map(|_| world.connect()).collect();
    world.control.stop();
    world.run();
    assert_eq!(world.totals().connections_accepted, 100);
    clients.iter_mut().for_each(|client| client.assert_got(&[]));
}

/// A body of no bytes that its handler doesn't read ends with its head: a request follows.
#[test]
fn what_follows_an_empty_body_is_responded() {
    for empty in ["Content-Length: 0\r\n", ""] {
        let mut world = World::default();
        let mut client = world.connect();
        world.settle();
        world.control.drain(60_000);
        client.send([head("POST", "/at-once/0", empty), Unit::get(1).bytes].concat());
        world.settle();
        let text = String::from_utf8_lossy(client.read()).into_owned();
        assert_eq!(text.matches("HTTP/1.1 200 ").count(), 2, "{empty:?}: {text:?}");
        client.peer.finish();
        world.run();
    }
}
