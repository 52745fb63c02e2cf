//! Minimum rates: clients that are too slow are disconnected in time, those just fast enough are served.

use std::ops::RangeInclusive;

use shearwater_engine::limits::WRITE_CHECK_MS;
use shearwater_engine::{Limits, Timeouts};

use crate::harness::app::BIG_BYTES;
use crate::harness::unit::{chunked, head};
use crate::harness::{ExpectedResponse, Setting, SimClient, SimWorld, Unit};

const LATE_MS: u64 = 256;
/// Two checks, each up to 1.3 s late.
const LATE_CHECKS_MS: u64 = 2600;
const WRITE_MS: u64 = 60_000;

/// Acts once a second; returns the seconds until the server has closed the connection, if it has.
fn each_second(
    world: &mut SimWorld,
    client: &mut SimClient,
    seconds: u64,
    mut act: impl FnMut(&mut SimClient),
) -> Option<u64> {
    (1..=seconds).find(|_| {
        world.pass(1000);
        act(client);
        world.settle();
        client.peer.saw_fin() || client.peer.saw_reset()
    })
}

/// A client that has begun a body by this head.
fn uploading(request: impl AsRef<[u8]>) -> (SimWorld, SimClient) {
    let mut world = SimWorld::default();
    world.net.advance(777);
    let client = world.send(request);
    (world, client)
}

fn upload(route: &str, len: usize) -> Vec<u8> {
    head("POST", &format!("/{route}/1"), &format!("Content-Length: {len}\r\n"))
}

#[test]
fn rejects_a_body_that_is_too_slow() {
    // Ten bytes earn 42 ms; chunk framing earns nothing. A little below the rate, each second costs a sixth.
    const GRACE: RangeInclusive<u64> = 10..=11;
    let chunk = format!("1;{}\r\nx\r\n", "x".repeat(250)).into_bytes();
    for (name, request, piece, seconds) in [
        ("discarded", upload("plain", 30_000), &b"x"[..], GRACE),
        ("buffered", upload("buffer", 30_000), b"x", GRACE),
        ("streamed", upload("pulled", 30_000), b"x", GRACE),
        ("chunked", chunked("/plain/1", ""), &chunk, GRACE),
        ("a little too slow", upload("plain", 100_000), &[b'x'; 200], 55..=57),
    ] {
        let (mut world, mut client) = uploading(request);
        let ended = each_second(&mut world, &mut client, 100, |client| client.send(piece));
        assert!(ended.is_some_and(|ended| seconds.contains(&ended)), "{name}: {ended:?}");
        client.assert_last(&[ExpectedResponse::timeout()]);
        world.end();
        assert_eq!((world.totals().hit_body_rate, world.totals().hit_body_ms), (1, 0), "{name}");
    }
}

#[test]
fn accepts_a_body_that_is_just_fast_enough() {
    for (route, bytes_per_second) in [("plain", 240), ("buffer", 240), ("pulled", 241)] {
        let unit = Unit::post(route, 1, 30_000);
        let (mut world, mut client) = uploading(upload(route, 30_000));
        let mut body = unit.bytes[unit.bytes.len() - 30_000..].chunks(bytes_per_second);
        let ended = each_second(&mut world, &mut client, 125, |client| {
            body.next().into_iter().for_each(|piece| client.send(piece));
        });
        assert_eq!(ended, None, "{route}");
        client.assert_got(&[unit.response]);
        world.finish(&client);
        assert_eq!(world.totals().hit_body_rate, 0);
    }
}

#[test]
fn a_fast_body_may_stall() {
    let (mut world, mut client) = uploading(upload("plain", 200_000));
    for _ in 0..3 {
        assert_eq!(each_second(&mut world, &mut client, 30, |client| client.send([b'x'; 990])), None);
        world.pass(28_500);
    }
    world.feed(&mut client, [b'x'; 9000]);
    assert!(!client.peer.saw_fin());
    // Longer than `body_ms` is too long at any rate.
    let took_ms = world.sleep_until_closed(&client);
    assert!((30_000..=30_000 + LATE_MS).contains(&took_ms), "{took_ms}");
    client.assert_got(&[ExpectedResponse::timeout()]);
    world.end();
    assert_eq!((world.totals().hit_body_rate, world.totals().hit_body_ms), (0, 1));
}

#[test]
fn a_body_has_its_grace_again_after_backpressure() {
    let mut world = SimWorld::default();
    let mut client = world.connect();
    client.stop_reading(0);
    let (first, second) = (Unit::get(1), Unit::post("buffer", 2, 100));
    let (head, body) = second.bytes.split_at(second.bytes.len() - 100);
    client.send([&first.bytes, head].concat());
    // The response to the first request is in flight meanwhile.
    world.pass(25_000);
    client.peer.set_window(100_000);
    client.peer.set_reading(true);
    world.pass(9000);
    world.feed(&mut client, body);
    client.assert_got(&[first.response, second.response]);
    world.finish(&client);
}

/// A client that has requested the large response and doesn't read by itself. The network holds so many
/// bytes, and reports room to the server when so many are free.
fn downloading(limits: Limits, window: usize, room_min: usize) -> (SimWorld, SimClient) {
    let mut world = SimWorld::with_limits(limits);
    world.net.advance(777);
    let mut client = world.connect();
    client.peer.set_room_min(room_min);
    client.stop_reading(window);
    world.feed(&mut client, Unit::big().bytes);
    (world, client)
}

/// Reads so many bytes each second, for so many seconds; returns the second in which the server closed.
fn read_slowly(
    world: &mut SimWorld,
    client: &mut SimClient,
    bytes_per_second: usize,
    seconds: u64,
) -> Option<u64> {
    each_second(world, client, seconds, |client| {
        client.got.extend(client.peer.read_at_most(bytes_per_second));
    })
}

/// The client reads everything and gets these responses.
#[track_caller]
fn assert_read_on(world: &mut SimWorld, client: &mut SimClient, responses: &[ExpectedResponse]) {
    world.read_on(client);
    client.assert_got(responses);
}

#[test]
fn resets_a_client_that_reads_a_byte_a_second() {
    for (window, room_min) in [(5000, 1), (100_000, 1), (2_000_000, 700_000)] {
        let (mut world, mut client) = downloading(Limits::default(), window, room_min);
        let took_ms = 1000 * read_slowly(&mut world, &mut client, 1, 100).expect("it is reset");
        let least_ms = WRITE_CHECK_MS + WRITE_MS;
        assert!((least_ms..=least_ms + LATE_CHECKS_MS + 1000).contains(&took_ms), "{window}: {took_ms} ms");
        assert!(client.peer.saw_reset());
        world.end();
        let totals = world.totals();
        assert_eq!((totals.hit_send_rate + totals.hit_write_ms, totals.connections_reset), (1, 1));
    }
}

#[test]
fn resets_a_slow_reader_and_serves_one_that_is_just_fast_enough() {
    let faster = Limits { send_bytes_per_second_min: 10_000, ..Limits::default() };
    for (limits, write_ms, bytes_per_second, is_reset) in [
        (Limits::default(), WRITE_MS, 230, true),
        (Limits::default(), WRITE_MS, 245, false),
        (faster, 2000, 9000, true),
        (faster, 2000, 15_000, false),
    ] {
        let timeouts = Timeouts { write_ms, ..Timeouts::default() };
        let mut world = SimWorld::new(Setting { limits, timeouts, ..Setting::default() });
        let mut client = world.connect();
        client.stop_reading(100_000);
        world.feed(&mut client, Unit::big().bytes);
        let seconds = 5 * write_ms / 1000;
        let ended = read_slowly(&mut world, &mut client, bytes_per_second, seconds.max(60));
        assert_eq!(ended.is_some(), is_reset, "{bytes_per_second} bytes a second: {ended:?}");
        assert_eq!(world.totals().hit_send_rate, u64::from(is_reset));
        if !is_reset {
            assert_read_on(&mut world, &mut client, &[ExpectedResponse::big()]);
        }
        world.finish(&client);
    }
}

#[test]
fn serves_a_slow_reader_with_a_large_buffer() {
    // Room is reported to the server after 70 s: by then the client has long shown that it reads.
    let (mut world, mut client) = downloading(Limits::default(), 2_000_000, 700_000);
    read_slowly(&mut world, &mut client, 10_000, BIG_BYTES as u64 / 10_000 + 2);
    client.assert_got(&[ExpectedResponse::big()]);
    assert!(!client.peer.saw_reset());
    world.finish(&client);
    // The end was in the buffer for longer than a connection may be idle: it arrived nevertheless.
    let reached: Vec<_> = world.totals().limits().filter(|(_, times)| *times > 0).collect();
    assert_eq!(reached, [("idle_ms", 1)]);
}

#[test]
fn earlier_responses_in_the_buffer_do_not_count_against_the_next() {
    let (mut world, mut client) = downloading(Limits::default(), 3_200_000, 1);
    // The first is in the buffer as a whole, and most of it still there when the second begins to wait.
    world.feed(&mut client, Unit::big().bytes);
    assert_eq!(read_slowly(&mut world, &mut client, 2000, 120), None);
    assert_read_on(&mut world, &mut client, &[ExpectedResponse::big(), ExpectedResponse::big()]);
    world.finish(&client);
}

#[test]
fn each_send_is_measured_by_itself() {
    let (mut world, mut client) = downloading(Limits::default(), 100_000, 1);
    for round in 0..3 {
        // At the check the total equals that of the round before, which implies nothing about this round.
        world.pass(WRITE_CHECK_MS + LATE_CHECKS_MS);
        assert!(!client.peer.saw_reset(), "round {round}");
        assert_read_on(&mut world, &mut client, &[ExpectedResponse::big()]);
        client.got.clear();
        client.peer.set_reading(false);
        world.feed(&mut client, Unit::big().bytes);
    }
    client.peer.set_reading(true);
    client.peer.finish();
    world.end();
}

#[test]
fn without_a_minimum_rate_some_progress_is_enough() {
    let limits = Limits { send_bytes_per_second_min: 0, body_bytes_per_second_min: 0, ..Limits::default() };
    let (mut world, mut client) = downloading(limits, 100_000, 1);
    assert_eq!(read_slowly(&mut world, &mut client, 5, 300), None);
    assert_read_on(&mut world, &mut client, &[ExpectedResponse::big()]);
    client.got.clear();
    let unit = Unit::post("buffer", 1, 40);
    let (head, body) = unit.bytes.split_at(unit.bytes.len() - 40);
    client.send(head);
    let mut body = body.chunks(1);
    let ended =
        each_second(&mut world, &mut client, 40, |client| client.send(body.next().expect("40 bytes")));
    assert_eq!(ended, None);
    client.assert_got(&[unit.response]);
    world.finish(&client);
}
