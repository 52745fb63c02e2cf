//! Each timeout with the driven clock: not early, no later than `Timeouts` promises, and with the right
//! response.

use shearwater_engine::limits::{EXPIRIES_PER_TURN_MIN, WRITE_CHECK_MS};
use shearwater_engine::{Limits, Timeouts};

use crate::harness::unit::head;
use crate::harness::{ExpectedResponse, Setting, SimClient, SimWorld, Unit};

/// Tolerance of timers, and of those of idle, writing and lingering connections.
const LATE_MS: u64 = 256;
const LATE_IDLE_MS: u64 = 1300;
/// A start time that is no multiple of a timer's tick.
const BEGIN_MS: u64 = 777;
/// Default of `write_ms`.
const WRITE_MS: u64 = 60_000;
/// Incomplete line ends, and complete ones.
const STRAY: [&[u8]; 2] = [b"\r", b"\r\n"];

/// Sleeps until the server has closed the connection, by FIN or reset; asserts that it is `after_ms` from
/// now.
#[track_caller]
fn ends_after(world: &mut SimWorld, client: &SimClient, after_ms: u64, late_ms: u64) {
    let took_ms = world.sleep_until_closed(client);
    assert!((after_ms..=after_ms + late_ms).contains(&took_ms), "{took_ms} ms, not {after_ms}");
}

fn begin(timeouts: Timeouts) -> (SimWorld, SimClient) {
    let mut world = SimWorld::with_timeouts(timeouts);
    world.net.advance(BEGIN_MS);
    let client = world.connect();
    world.settle();
    (world, client)
}

/// Returns a connection that has had a response already.
fn begin_later(timeouts: Timeouts) -> (SimWorld, SimClient) {
    let (mut world, mut client) = begin(timeouts);
    world.feed(&mut client, Unit::get(0).bytes);
    client.assert_got(&[Unit::get(0).response]);
    client.got.clear();
    (world, client)
}

#[test]
fn closes_a_connection_without_a_byte() {
    for first_head_ms in [1, 500, 10_000, 100_000] {
        let (mut world, mut client) = begin(Timeouts { first_head_ms, ..Timeouts::default() });
        ends_after(&mut world, &client, first_head_ms, LATE_MS);
        client.assert_last(&[]);
        assert_eq!(world.totals().hit_first_head_ms, 1);
        world.end();
    }
}

#[test]
fn the_time_of_the_first_head_begins_at_accept() {
    let (mut world, mut client) = begin(Timeouts::default());
    world.pass(5000);
    for byte in &Unit::get(1).bytes[..4] {
        client.send([*byte]);
        world.pass(1000);
    }
    ends_after(&mut world, &client, 1000, LATE_MS);
    client.assert_last(&[ExpectedResponse::timeout()]);
    assert_eq!(world.totals().hit_first_head_ms, 1);
    world.end();
}

#[test]
fn an_empty_line_begins_a_first_head_and_no_other() {
    let (mut world, mut client) = begin(Timeouts::default());
    world.feed(&mut client, b"\r\n");
    ends_after(&mut world, &client, 10_000, LATE_MS);
    client.assert_got(&[ExpectedResponse::timeout()]);
    world.end();
    for stray in STRAY {
        let (mut world, mut client) = begin_later(Timeouts::default());
        world.feed(&mut client, stray);
        assert_eq!(world.in_use(), (1, 0, 1), "(connections, blocks, timers)");
        assert_eq!(world.worker.buffered_bytes(), 0, "it holds no memory");
        ends_after(&mut world, &client, 75_000, LATE_IDLE_MS);
        client.assert_last(&[]);
        world.end();
    }
}

/// The result is the same as if everything had arrived at once.
#[test]
fn a_stray_line_end_is_part_of_the_next_head() {
    let request = Unit::get(1).bytes;
    for (first, status) in [
        ("", 200),
        ("\r\n", 200),
        ("\r\n\r\n", 400),
        ("\r\n\n", 400),
        ("\r\r\n", 400),
        ("\r", 400),
        ("\n", 400),
    ] {
        let bytes = [first.as_bytes(), &request].concat();
        for piece in 1..=bytes.len() {
            let (mut world, mut client) = begin_later(Timeouts::default());
            for piece in bytes.chunks(piece) {
                world.feed(&mut client, piece);
            }
            let start = format!("HTTP/1.1 {status} ");
            assert!(client.read().starts_with(start.as_bytes()), "{first:?} in pieces of {piece}");
            client.peer.reset();
            world.end();
        }
    }
}

#[test]
fn stray_line_ends_between_requests_do_no_harm() {
    let (mut world, mut client) = begin_later(Timeouts::default());
    let units = [Unit::get(1), Unit::get(2)];
    let (start, rest) = units[1].bytes.split_at(9);
    for piece in [b"\r", b"\n", &units[0].bytes[..], b"\r\n", start, rest, b"\r\n"] {
        world.feed(&mut client, piece);
    }
    world.finish(&client);
    client.assert_last(&Unit::responses(&units));
}

#[test]
fn the_time_of_a_later_head_begins_with_its_first_byte() {
    let (mut world, mut client) = begin_later(Timeouts { head_ms: 3000, ..Timeouts::default() });
    world.pass(20_000);
    world.feed(&mut client, b"G");
    for byte in &Unit::get(1).bytes[1..3] {
        world.pass(1000);
        client.send([*byte]);
    }
    world.settle();
    ends_after(&mut world, &client, 1000, LATE_MS);
    client.assert_last(&[ExpectedResponse::timeout()]);
    world.end();
}

#[test]
fn a_head_after_pipelined_requests_has_its_time() {
    let (mut world, mut client) = begin(Timeouts { head_ms: 3000, idle_ms: 100_000, ..Timeouts::default() });
    world.feed(&mut client, [&Unit::stream(&[Unit::get(1), Unit::get(2)])[..], b"GET / HT"].concat());
    ends_after(&mut world, &client, 3000, LATE_MS);
    client.assert_got(&[Unit::get(1).response, Unit::get(2).response, ExpectedResponse::timeout()]);
    world.end();
}

#[test]
fn each_piece_restarts_the_time_of_a_body() {
    for route in ["plain", "buffer", "pulled"] {
        let mut world = SimWorld::new(Setting {
            limits: Limits { body_bytes_per_second_min: 0, ..Limits::default() },
            timeouts: Timeouts { body_ms: 5000, ..Timeouts::default() },
            ..Setting::default()
        });
        world.net.advance(BEGIN_MS);
        let mut client = world.connect();
        client.send(head("POST", &format!("/{route}/1"), "Content-Length: 100\r\n"));
        for _ in 0..10 {
            world.pass(4900);
            world.feed(&mut client, b"x");
        }
        client.assert_got(&[]);
        ends_after(&mut world, &client, 5000, LATE_MS);
        client.assert_last(&[ExpectedResponse::timeout()]);
        assert_eq!(world.totals().hit_body_ms, 1);
        world.end();
    }
}

#[test]
fn a_body_after_100_continue_has_its_time() {
    let (mut world, mut client) = begin(Timeouts { body_ms: 5000, ..Timeouts::default() });
    let unit = Unit::post_expecting("buffer", 1, 40);
    world.feed(&mut client, &unit.bytes[..unit.bytes.len() - 40]);
    ends_after(&mut world, &client, 5000, LATE_MS);
    assert!(client.text().contains("100 Continue\r\n\r\nHTTP/1.1 408 "));
    world.end();
}

#[test]
fn closes_an_idle_connection_without_a_response() {
    for idle_ms in [1000, 60_000, 600_000] {
        let (mut world, mut client) = begin_later(Timeouts { idle_ms, ..Timeouts::default() });
        ends_after(&mut world, &client, idle_ms, LATE_IDLE_MS);
        client.assert_last(&[]);
        assert_eq!(world.totals().hit_idle_ms, 1);
        world.end();
    }
}

#[test]
fn each_request_restarts_the_idle_time() {
    let (mut world, mut client) = begin_later(Timeouts { idle_ms: 5000, ..Timeouts::default() });
    let units: Vec<Unit> = (0..20).map(Unit::get).collect();
    for unit in &units {
        world.pass(4900);
        client.send(&unit.bytes);
    }
    world.settle();
    client.assert_got(&Unit::responses(&units));
    ends_after(&mut world, &client, 5000, LATE_IDLE_MS);
    world.end();
}

/// Requests the large response and doesn't read it; the network holds so many bytes.
fn begin_unread(window: usize) -> (SimWorld, SimClient) {
    let (world, mut client) = begin_later(Timeouts::default());
    client.stop_reading(window);
    client.send(Unit::big().bytes);
    (world, client)
}

#[test]
fn resets_a_client_that_reads_nothing() {
    // With the network accepting some of it at once, or nothing.
    for window in [0, 100_000] {
        let (mut world, client) = begin_unread(window);
        world.settle();
        ends_after(&mut world, &client, WRITE_CHECK_MS + WRITE_MS, 2 * LATE_IDLE_MS);
        assert!(client.peer.saw_reset());
        assert_eq!(world.totals().hit_write_ms, 1);
        world.end();
    }
}

#[test]
fn does_not_reset_a_client_that_waits_for_a_disk() {
    let (mut world, mut client) = begin_later(Timeouts::default());
    client.peer.set_on_disk(true);
    world.feed(&mut client, Unit::big().bytes);
    world.pass(10 * WRITE_MS);
    assert!(!client.peer.saw_reset());
    client.peer.set_on_disk(false);
    world.settle();
    client.assert_got(&[Unit::big().response]);
    assert_eq!(world.totals().hit_write_ms, 0);
    world.end();
}

#[test]
fn resets_a_client_that_stops_reading_within_twice_the_time() {
    let (mut world, mut client) = begin_unread(100_000);
    world.pass(10_000);
    client.got.extend(client.peer.read_at_most(50_000));
    world.settle();
    ends_after(&mut world, &client, WRITE_MS, WRITE_MS + 2 * LATE_IDLE_MS);
    assert!(client.peer.saw_reset());
    world.end();
}

#[test]
fn serves_a_client_that_reads_a_little_at_a_time() {
    let (mut world, mut client) = begin_unread(100_000);
    for _ in 0..20 {
        world.pass(29_000);
        client.got.extend(client.peer.read_at_most(8000));
    }
    assert!(!client.peer.saw_reset());
    world.read_on(&client);
    client.assert_got(&[ExpectedResponse::big()]);
    world.end();
}

#[test]
fn ends_a_linger_without_a_fin() {
    let (mut world, mut client) = begin_later(Timeouts { linger_ms: 4000, ..Timeouts::default() });
    world.feed(&mut client, Unit::malformed(1).bytes);
    client.assert_last(&[Unit::malformed(1).response]);
    let began_ms = world.net.now_ms();
    let took_ms = world.sleep_until(|net| net.connections() == 0) - began_ms;
    assert!((4000..=4000 + LATE_IDLE_MS).contains(&took_ms), "{took_ms} ms");
    assert_eq!(world.totals().hit_linger_ms, 1);
    client.assert_closed();
    world.end();
}

#[test]
fn timeouts_hold_for_many_at_once() {
    let mut world = SimWorld::with_timeouts(Timeouts { first_head_ms: 2000, ..Timeouts::default() });
    let mut clients = Vec::new();
    for number in 0..300 {
        world.pass(number % 29);
        clients.push((world.net.now_ms(), world.connect()));
        world.settle();
    }
    while !clients.is_empty() {
        world.turn();
        let now_ms = world.net.now_ms();
        clients.retain(|(began_ms, client)| {
            let age_ms = now_ms - began_ms;
            let has_ended = client.peer.saw_fin();
            assert!(if has_ended { age_ms >= 2000 } else { age_ms <= 2000 + LATE_MS }, "{age_ms} ms");
            !has_ended
        });
    }
    world.end();
}

#[test]
fn a_delayed_worker_handles_a_bounded_number_of_deadlines_per_turn() {
    let mut world = SimWorld::default();
    let mut clients: Vec<SimClient> = (0..EXPIRIES_PER_TURN_MIN + 100).map(|_| world.connect()).collect();
    world.settle();
    world.net.advance(3_600_000);
    // A request that has arrived meanwhile gets its response before its connection's deadline is checked.
    clients[0].send(Unit::get(1).bytes);
    world.turn();
    clients[0].assert_got(&[Unit::get(1).response]);
    let left = clients.iter().filter(|client| !client.peer.saw_fin()).count();
    assert_eq!((left, world.totals().hit_expiries_per_turn), (100, 1));
    let now_ms = world.net.now_ms();
    world.turn();
    world.settle();
    assert_eq!(world.net.now_ms(), now_ms, "the rest is due at once");
    assert_eq!(world.in_use().0, 1);
    clients[1..].iter_mut().for_each(SimClient::assert_closed);
    world.end();
}

/// A turn that acts on its maximum of deadlines has reached no limit if none is left.
#[test]
fn counts_a_turn_that_leaves_due_deadlines_and_no_other() {
    for (more, counted) in [(0, 0), (1, 1)] {
        let mut world = SimWorld::default();
        let mut clients: Vec<SimClient> =
            (0..EXPIRIES_PER_TURN_MIN + more).map(|_| world.connect()).collect();
        world.settle();
        world.pass(Timeouts::default().first_head_ms + 1000);
        clients.iter_mut().for_each(SimClient::assert_closed);
        assert_eq!(world.totals().hit_expiries_per_turn, counted, "{more} more");
        world.end();
    }
}

#[test]
fn the_longest_timeouts_do_not_overflow() {
    let longest = u64::MAX;
    let timeouts = Timeouts {
        first_head_ms: longest,
        head_ms: longest,
        body_ms: longest,
        body_grace_ms: longest,
        idle_ms: longest,
        write_ms: longest,
        linger_ms: longest,
        half_closed_ms: longest,
        drain_idle_ms: longest,
    };
    let (mut world, mut client) = begin(timeouts);
    let units = [Unit::get(1), Unit::post("buffer", 2, 50), Unit::get(3), Unit::malformed(4)];
    for byte in Unit::stream(&units) {
        world.feed(&mut client, [byte]);
    }
    client.assert_got(&Unit::responses(&units));
    world.pass(100_000);
    world.finish(&client);
    let client = world.send(Unit::get(1).bytes);
    world.control.drain(longest);
    world.pass(100_000);
    assert_eq!(world.net.connections(), 1, "the drain waits for it");
    world.finish(&client);
}
