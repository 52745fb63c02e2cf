//! Ends of streams and connections: resets, drains and timeouts.

use std::ops::RangeInclusive;

use shearwater_engine::limits::DRAIN_LINGER_MS;
use shearwater_engine::{Limits, Timeouts};
use testkit::http2::frame::{CANCEL, CONTINUATION, Frame, HEADERS};
use testkit::http2::hpack::encode;
use testkit::http2::request_fields;

use super::client::{SimHttp2Client, world, world_with};
use crate::harness::SimWorld;
use crate::harness::handlers::at_work;

/// Tolerance of timers.
const LATE_MS: u64 = 300;
/// Tolerance of timers of idle and writing connections.
const LATE_IDLE_MS: u64 = 2600;
/// Code of a GOAWAY without an error.
const NO_ERROR: u32 = 0;

#[track_caller]
fn assert_within(ms: u64, range: RangeInclusive<u64>) {
    assert!(range.contains(&ms), "{ms} ms, not {range:?}");
}

#[test]
fn a_reset_drops_its_handler_alone() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let streams = [client.get("/never"), client.begin("/taken/0", &[]), client.get("/never")];
    client.exchange(&mut world);
    assert_eq!(at_work(), 3);
    for (left, stream) in streams.into_iter().enumerate().rev() {
        client.session.reset(stream, CANCEL);
        client.exchange(&mut world);
        assert_eq!(at_work(), left);
        client.assert_usable(&mut world);
    }
    client.finish(&mut world);
}

#[test]
fn a_reset_ends_a_response_that_is_being_sent() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    client.session.stop_window_updates();
    for target in ["/big", "/file", "/flood"] {
        let stream = client.get(target);
        client.exchange(&mut world);
        client.assert_pending(stream);
        client.session.reset(stream, CANCEL);
        client.session.grant(0, 65_535);
        client.exchange(&mut world);
        assert_eq!(at_work(), 0, "{target}");
        client.assert_usable(&mut world);
    }
    client.finish(&mut world);
}

#[test]
fn the_end_of_a_connection_drops_all_handlers() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    for _ in 0..3 {
        client.get("/never");
    }
    client.exchange(&mut world);
    assert_eq!(at_work(), 3);
    client.sim.peer.reset();
    world.pass(LATE_MS);
    assert_eq!(at_work(), 0);
    world.end();
}

#[test]
fn a_drain_finishes_open_streams() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let streams = [client.get("/ticks?1"), client.get("/ticks?2")];
    client.exchange(&mut world);
    world.control.drain(60_000);
    client.exchange(&mut world);
    assert_eq!(client.session.go_away().map(|(_, code)| code), Some(NO_ERROR));
    assert!(!client.session.is_over(), "streams are open");
    client.pass(&mut world, 45_000);
    assert_eq!(client.response(streams[0]).text(), "tick 0\n");
    assert_eq!(client.response(streams[1]).text(), "tick 0\ntick 1\n");
    let last = client.session.go_away().map(|(last, _)| last);
    assert!(last.is_some_and(|last| last >= streams[1]), "{last:?}");
    client.sim.peer.finish();
    world.run();
    client.exchange(&mut world);
    assert!(client.session.is_over() && !client.sim.peer.saw_reset());
}

#[test]
fn a_drain_ends_an_idle_connection() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    client.assert_usable(&mut world);
    world.control.drain(60_000);
    assert_within(world.run(), 0..=Timeouts::default().drain_idle_ms + DRAIN_LINGER_MS + LATE_MS);
    client.exchange(&mut world);
    assert_eq!(client.session.go_away().map(|(_, code)| code), Some(NO_ERROR));
    assert!(client.session.is_over() && !client.sim.peer.saw_reset());
}

/// Returns how long the server takes to close the connection.
fn time_until_closed(world: &mut SimWorld, client: &SimHttp2Client) -> u64 {
    world.settle();
    world.sleep_until_closed(&client.sim)
}

#[test]
fn closes_an_idle_connection_in_order() {
    let mut world = world_with(Limits::default(), Timeouts { idle_ms: 20_000, ..Timeouts::default() });
    let mut client = SimHttp2Client::connect(&mut world);
    client.assert_usable(&mut world);
    assert_within(time_until_closed(&mut world, &client), 20_000..=20_000 + LATE_IDLE_MS);
    client.exchange(&mut world);
    assert_eq!(client.session.go_away().map(|(_, code)| code), Some(NO_ERROR));
    assert!(client.session.is_over() && !client.sim.peer.saw_reset());
    world.end();
}

#[test]
fn an_open_stream_is_not_idle() {
    let mut world = world_with(Limits::default(), Timeouts { idle_ms: 5_000, ..Timeouts::default() });
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.get("/ticks?1");
    client.pass(&mut world, 21_000);
    assert_eq!(client.response(stream).text(), "tick 0\n");
    client.finish(&mut world);
}

/// Frames that leave a head half received: part of a frame, and a block that continues.
#[test]
fn a_half_received_head_ends_its_connection() {
    let block = encode(&request_fields("http", "GET", "/plain/1", &[]));
    let part = |client: &SimHttp2Client, kind| {
        Frame::new(kind, 1, client.session.next_stream(), &block[..block.len() / 2])
    };
    for frames in [1, 2, 3] {
        let mut world = world();
        let mut client = SimHttp2Client::connect(&mut world);
        client.assert_usable(&mut world);
        let first = part(&client, HEADERS);
        match frames {
            1 => client.session.push_bytes(&first.encode()[..15]),
            2 => client.session.push(&first),
            _ => {
                client.session.push(&first);
                client.session.push_bytes(&part(&client, CONTINUATION).encode()[..10]);
            }
        }
        client.exchange(&mut world);
        let head_ms = Timeouts::default().head_ms;
        assert_within(time_until_closed(&mut world, &client), head_ms..=head_ms + LATE_MS);
        client.exchange(&mut world);
        assert!(client.session.go_away().is_some(), "{frames}");
        world.end();
    }
}

#[test]
fn a_body_that_stalls_ends_in_time() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = client.begin("/buffer/1", &[]);
    client.session.send_data(stream, b"begun", false);
    client.exchange(&mut world);
    let grace_ms = Timeouts::default().body_grace_ms;
    client.pass(&mut world, grace_ms - LATE_MS);
    client.assert_pending(stream);
    client.pass(&mut world, 3 * LATE_MS);
    assert_eq!(client.response(stream).status, 408);
    client.assert_usable(&mut world);
    client.finish(&mut world);
}

/// The window stays at zero, as that of a socket that nobody reads.
#[test]
fn a_window_that_stays_at_zero_ends_the_connection() {
    for target in ["/big", "/file", "/flood"] {
        let mut world = world();
        let mut client = SimHttp2Client::connect(&mut world);
        client.session.stop_window_updates();
        client.get(target);
        client.exchange(&mut world);
        let after_ms = Timeouts::default().write_ms;
        assert_within(time_until_closed(&mut world, &client), after_ms..=after_ms + LATE_IDLE_MS);
        assert!(client.sim.peer.saw_reset(), "{target}");
        // A part may have been sent since the check before.
        let hits = world.totals().hit_write_ms + world.totals().hit_send_rate;
        assert_eq!((hits, at_work()), (1, 0), "{target}");
        world.end();
    }
}

/// The end of the client's side doesn't cut off a response that is being sent.
#[test]
fn a_fin_during_a_send_waits_for_it() {
    let mut world = world();
    let mut client = SimHttp2Client::connect(&mut world);
    client.sim.stop_reading(100);
    let stream = client.get("/plain/1");
    client.sim.send(client.session.take_output());
    world.settle();
    client.sim.peer.finish();
    world.settle();
    client.sim.peer.set_reading(true);
    client.sim.peer.set_window(usize::MAX / 2);
    client.exchange(&mut world);
    assert_eq!(client.response(stream).status, 200);
    assert!(!client.sim.peer.saw_reset());
    world.end();
}
