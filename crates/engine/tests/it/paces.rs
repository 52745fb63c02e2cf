//! Minimum rates: clients that are too slow are disconnected in time, those just fast enough are served.

use shearwater_engine::io::sim::SimPeer;
use shearwater_engine::limits::WRITE_CHECK_MS;
use shearwater_engine::{Limits, Timeouts};

use crate::harness::app::BIG_BYTES;
use crate::harness::unit::head;
use crate::harness::{Client, ExpectedResponse, Unit, World};

const LATE_MS: u64 = 256;
/// Two checks, each up to 1.3 s late.
const LATE_CHECKS_MS: u64 = 2600;
const WRITE_MS: u64 = 60_000;

/// Acts once a second; returns the seconds until the server has closed the connection, if it has.
fn each_second(
    world: &mut World,
    client: &mut Client,
    seconds: u64,
    mut act: impl FnMut(&mut Client),
) -> Option<u64> {
    (1..=seconds).find(|_| {
        world.pass(1000);
        act(client);
        world.settle();
        client.peer.saw_fin() || client.peer.saw_reset()
    })
}

/// A client that has begun a body of so many bytes.
fn uploading(route: &str, len: usize) -> (World, Client) {
    let mut world = World::default();
    world.net.advance(777);
    let mut client = world.connect();
    client.send(head("POST", &format!("/{route}/1"), &format!("Content-Length: {len}\r\n")));
    world.settle();
    (world, client)
}

#[test]
fn a_body_that_trickles_is_refused_when_its_grace_is_over() {
    for route in ["plain", "buffer", "pulled"] {
        let (mut world, mut client) = uploading(route, 30_000);
        let ended = each_second(&mut world, &mut client, 60, |client| client.send(b"x"));
        // Ten bytes have earned 42 ms.
        assert!(ended.is_some_and(|seconds| (10..=11).contains(&seconds)), "{route}: {ended:?}");
        client.assert_got(&[ExpectedResponse::timeout()]);
        client.assert_closed();
        world.end();
        assert_eq!((world.totals().hit_body_rate, world.totals().hit_body_ms), (1, 0));
    }
}

#[test]
fn chunks_earn_nothing_but_their_content() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(head("POST", "/plain/1", "Transfer-Encoding: chunked\r\n"));
    let chunk = format!("1;{}\r\nx\r\n", "x".repeat(250));
    let ended = each_second(&mut world, &mut client, 60, |client| client.send(&chunk));
    assert!(ended.is_some_and(|seconds| (10..=11).contains(&seconds)), "{ended:?}");
    client.assert_got(&[ExpectedResponse::timeout()]);
    world.end();
    assert_eq!(world.totals().hit_body_rate, 1);
}

#[test]
fn a_body_a_little_too_slow_is_refused_when_its_time_is_used_up() {
    let (mut world, mut client) = uploading("plain", 100_000);
    // Each second costs a sixth of one.
    let ended = each_second(&mut world, &mut client, 100, |client| client.send([b'x'; 200]));
    assert!(ended.is_some_and(|seconds| (55..=57).contains(&seconds)), "{ended:?}");
    client.assert_got(&[ExpectedResponse::timeout()]);
    world.end();
    assert_eq!(world.totals().hit_body_rate, 1);
}

#[test]
fn a_body_just_fast_enough_is_taken() {
    for (route, bytes_per_second) in [("plain", 240), ("buffer", 240), ("pulled", 241)] {
        let unit = Unit::post(route, 1, 30_000);
        let (mut world, mut client) = uploading(route, 30_000);
        let mut body = unit.bytes[unit.bytes.len() - 30_000..].chunks(bytes_per_second);
        let ended = each_second(&mut world, &mut client, 125, |client| {
            if let Some(piece) = body.next() {
                client.send(piece);
            }
        });
        assert_eq!(ended, None, "{route}");
        client.assert_got(&[unit.response]);
        client.peer.finish();
        world.end();
        assert_eq!(world.totals().hit_body_rate, 0);
    }
}

#[test]
fn a_stall_is_forgiven_who_was_fast_before_it() {
    let (mut world, mut client) = uploading("plain", 200_000);
    for _ in 0..3 {
        assert_eq!(each_second(&mut world, &mut client, 30, |client| client.send([b'x'; 990])), None);
        world.pass(28_500);
    }
    client.send([b'x'; 9000]);
    world.settle();
    assert!(!client.peer.saw_fin());
    // Longer than `body_ms` is too long at any rate.
    let began_ms = world.net.now_ms();
    let peer = client.peer.clone();
    let took_ms = world.sleep_until(|| peer.saw_fin()) - began_ms;
    assert!((30_000..=30_000 + LATE_MS).contains(&took_ms), "{took_ms}");
    client.assert_got(&[ExpectedResponse::timeout()]);
    world.end();
    assert_eq!((world.totals().hit_body_rate, world.totals().hit_body_ms), (0, 1));
}

#[test]
fn a_body_that_is_not_read_has_its_grace_when_it_is_read_again() {
    let mut world = World::default();
    let mut client = world.connect();
    client.peer.set_window(0);
    client.peer.set_reading(false);
    let (first, second) = (Unit::get(1), Unit::post("buffer", 2, 100));
    client.send([&first.bytes, &second.bytes[..second.bytes.len() - 100]].concat());
    // The response to the first request is in flight meanwhile.
    world.pass(25_000);
    client.peer.set_window(100_000);
    client.peer.set_reading(true);
    world.pass(9000);
    client.send(&second.bytes[second.bytes.len() - 100..]);
    world.settle();
    client.assert_got(&[first.response, second.response]);
    client.peer.finish();
    world.end();
}

/// A client that has requested the large response and doesn't read by itself. The network holds so many
/// bytes, and reports room to the server when so many are free.
fn downloading(limits: Limits, window: usize, room_min: usize) -> (World, Client) {
    let mut world = World::with_limits(limits);
    world.net.advance(777);
    let mut client = world.connect();
    client.peer.set_window(window);
    client.peer.set_room_min(room_min);
    client.peer.set_reading(false);
    client.send(Unit::big().bytes);
    world.settle();
    (world, client)
}

/// Reads so many bytes each second, for so many seconds; returns the second in which the server closed.
fn read_slowly(world: &mut World, client: &mut Client, bytes_per_second: usize, seconds: u64) -> Option<u64> {
    let peer: SimPeer = client.peer.clone();
    each_second(world, client, seconds, |client| client.got.extend(peer.read_at_most(bytes_per_second)))
}

#[test]
fn who_reads_a_byte_a_second_is_reset_in_time() {
    for (window, room_min) in [(5000, 1), (100_000, 1), (2_000_000, 700_000)] {
        let (mut world, mut client) = downloading(Limits::default(), window, room_min);
        let ended = read_slowly(&mut world, &mut client, 1, 100).expect("it is put out");
        let took_ms = ended * 1000;
        let least_ms = WRITE_CHECK_MS + WRITE_MS;
        assert!((least_ms..=least_ms + LATE_CHECKS_MS + 1000).contains(&took_ms), "{window}: {took_ms} ms");
        assert!(client.peer.saw_reset());
        world.end();
        let totals = world.totals();
        assert_eq!((totals.hit_send_rate + totals.hit_write_ms, totals.connections_reset), (1, 1));
    }
}

#[test]
fn who_reads_a_little_too_slowly_is_reset_and_who_is_just_fast_enough_is_not() {
    for (bytes_per_second, is_reset) in [(230, true), (245, false)] {
        let (mut world, mut client) = downloading(Limits::default(), 100_000, 1);
        let ended = read_slowly(&mut world, &mut client, bytes_per_second, 300);
        assert_eq!(ended.is_some(), is_reset, "{bytes_per_second} bytes a second: {ended:?}");
        assert_eq!(world.totals().hit_send_rate, u64::from(is_reset));
        client.peer.set_reading(true);
        world.settle();
        if !is_reset {
            client.assert_got(&[ExpectedResponse::big()]);
        }
        world.end();
    }
}

#[test]
fn an_honest_slow_reader_behind_a_large_buffer_is_served() {
    // Room is reported to the server after 70 s: by then the client has long shown that it reads.
    let (mut world, mut client) = downloading(Limits::default(), 2_000_000, 700_000);
    read_slowly(&mut world, &mut client, 10_000, BIG_BYTES as u64 / 10_000 + 2);
    client.assert_got(&[ExpectedResponse::big()]);
    assert!(!client.peer.saw_reset());
    client.peer.finish();
    world.end();
    // The end was in the buffer for longer than a connection may be idle: it arrived nevertheless.
    let reached: Vec<_> = world.totals().limits().filter(|(_, times)| *times > 0).collect();
    assert_eq!(reached, [("idle_ms", 1)]);
}

#[test]
fn what_earlier_responses_left_in_the_buffer_is_no_slowness_of_the_next() {
    let (mut world, mut client) = downloading(Limits::default(), 3_200_000, 1);
    // The first is in the buffer as a whole, and most of it still there when the second begins to wait.
    client.send(Unit::big().bytes);
    world.settle();
    assert_eq!(read_slowly(&mut world, &mut client, 2000, 120), None);
    client.peer.set_reading(true);
    world.settle();
    client.assert_got(&[ExpectedResponse::big(), ExpectedResponse::big()]);
    client.peer.finish();
    world.end();
}

#[test]
fn each_send_is_measured_by_itself() {
    let (mut world, mut client) = downloading(Limits::default(), 100_000, 1);
    for round in 0..3 {
        // At the check the total equals that of the round before, which implies nothing about this round.
        world.pass(WRITE_CHECK_MS + LATE_CHECKS_MS);
        assert!(!client.peer.saw_reset(), "round {round}");
        client.peer.set_reading(true);
        world.settle();
        client.assert_got(&[ExpectedResponse::big()]);
        client.got.clear();
        client.peer.set_reading(false);
        client.send(Unit::big().bytes);
        world.settle();
    }
    client.peer.set_reading(true);
    client.peer.finish();
    world.end();
}

#[test]
fn without_a_pace_some_progress_is_enough() {
    let limits = Limits { send_bytes_per_second_min: 0, body_bytes_per_second_min: 0, ..Limits::default() };
    let (mut world, mut client) = downloading(limits, 100_000, 1);
    assert_eq!(read_slowly(&mut world, &mut client, 5, 300), None);
    client.peer.set_reading(true);
    world.settle();
    client.assert_got(&[ExpectedResponse::big()]);
    client.got.clear();
    let unit = Unit::post("buffer", 1, 40);
    client.send(&unit.bytes[..unit.bytes.len() - 40]);
    let mut rest = unit.bytes[unit.bytes.len() - 40..].chunks(1);
    let ended =
        each_second(&mut world, &mut client, 40, |client| client.send(rest.next().expect("40 bytes")));
    assert_eq!(ended, None);
    client.assert_got(&[unit.response]);
    client.peer.finish();
    world.end();
}

#[test]
fn other_times_and_paces_hold_as_they_are_set() {
    let limits = Limits { send_bytes_per_second_min: 10_000, ..Limits::default() };
    let mut world = World::new(crate::harness::Setting {
        limits,
        timeouts: Timeouts { write_ms: 2000, ..Timeouts::default() },
        ..crate::harness::Setting::default()
    });
    for (bytes_per_second, is_reset) in [(9000, true), (15_000, false)] {
        let mut client = world.connect();
        client.peer.set_window(100_000);
        client.peer.set_reading(false);
        client.send(Unit::big().bytes);
        world.settle();
        let ended = read_slowly(&mut world, &mut client, bytes_per_second, 60);
        assert_eq!(ended.is_some(), is_reset, "{bytes_per_second} bytes a second: {ended:?}");
        client.peer.set_reading(true);
        world.settle();
        client.peer.finish();
    }
    world.end();
}
