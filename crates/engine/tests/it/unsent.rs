//! Responses that the driver reports as sent and takes back (clause S7): the connection is sending again.

use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::WRITE_CHECK_MS;

use crate::harness::{Setting, SimClient, SimWorld, Unit};

/// Default of `write_ms`, and the tolerance of its timer.
const WRITE_MS: u64 = 60_000;
const LATE_MS: u64 = 2600;

/// Returns a world in which each response that may be is taken back, and a client that has connected.
fn begin(short_writes: f64) -> (SimWorld, SimClient) {
    let sim = SimOptions { unsent: 1.0, short_writes, ..SimOptions::default() };
    let mut world = SimWorld::new(Setting { sim, ..Setting::default() });
    let client = world.connect();
    world.settle();
    (world, client)
}

#[test]
fn arrives_whole_and_the_connection_is_used_again() {
    let (mut world, mut client) = begin(1.0);
    for number in 0..5 {
        world.feed(&mut client, Unit::get(number).bytes);
        client.assert_got(&[Unit::get(number).response]);
        client.got.clear();
    }
    world.assert_usable(&mut client);
    world.end();
}

/// The next request, whole or in part, or the client's FIN, arrives before the response is taken back.
#[test]
fn later_input_is_handled_after_it() {
    let next = Unit::get(2);
    for len in [1, next.bytes.len() - 1, next.bytes.len()] {
        for is_ended in [false, true] {
            let (mut world, mut client) = begin(1.0);
            client.stop_reading(10);
            client.send(Unit::get(1).bytes);
            world.turn();
            client.send(&next.bytes[..len]);
            world.turn();
            client.send(&next.bytes[len..]);
            if is_ended {
                client.peer.finish();
            }
            world.settle();
            world.read_on(&client);
            client.assert_got(&[Unit::get(1).response, Unit::get(2).response]);
            world.end();
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_reset_in_time() {
    let (mut world, mut client) = begin(0.0);
    client.stop_reading(0);
    client.send(Unit::get(1).bytes);
    world.settle();
    let took_ms = world.sleep_until_closed(&client);
    let after_ms = WRITE_CHECK_MS + WRITE_MS;
    assert!((after_ms..=after_ms + LATE_MS).contains(&took_ms), "{took_ms} ms");
    assert!(client.peer.saw_reset());
    assert_eq!(world.totals().hit_write_ms, 1);
    world.end();
}
