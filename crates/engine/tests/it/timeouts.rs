//! Each timeout with the driven clock: not early, no later than `Timeouts` promises, and with the right
//! response.

use shearwater_engine::limits::{EXPIRIES_PER_TURN_MIN, WRITE_CHECK_MS};
use shearwater_engine::{Limits, Timeouts};

use crate::harness::unit::head;
use crate::harness::{Client, ExpectedResponse, Setting, Unit, World};

/// Tolerance of timers, and of those of idle, writing and lingering connections.
const LATE_MS: u64 = 256;
const LATE_IDLE_MS: u64 = 1300;
/// A start time that is no multiple of a timer's tick.
const BEGIN_MS: u64 = 777;
/// Default of `write_ms`.
const WRITE_MS: u64 = 60_000;

/// Sleeps until the server has closed the connection, by FIN or reset; asserts that it is `after_ms` from
/// now.
#[track_caller]
fn ends_after(world: &mut World, client: &Client, after_ms: u64, late_ms: u64) {
    let began_ms = world.net.now_ms();
    let peer = client.peer.clone();
    let ended_ms = world.sleep_until(|| peer.saw_fin() || peer.saw_reset());
    let took_ms = ended_ms - began_ms;
    assert!((after_ms..=after_ms + late_ms).contains(&took_ms), "{took_ms} ms, not {after_ms}");
}

fn begin(timeouts: Timeouts) -> (World, Client) {
    let mut world = World::with_timeouts(timeouts);
    world.net.advance(BEGIN_MS);
    let client = world.connect();
    world.settle();
    (world, client)
}

/// Returns a connection that has had a response already.
fn begin_later(timeouts: Timeouts) -> (World, Client) {
    let (mut world, mut client) = begin(timeouts);
    client.send(Unit::get(0).bytes);
    world.settle();
    client.assert_got(&[Unit::get(0).response]);
    client.got.clear();
    (world, client)
}

#[test]
fn silence_from_the_beginning_is_closed_in_silence() {
    for first_head_ms in [1, 500, 10_000, 100_000] {
        let (mut world, mut client) = begin(Timeouts { first_head_ms, ..Timeouts::default() });
        ends_after(&mut world, &client, first_head_ms, LATE_MS);
        client.assert_got(&[]);
        client.assert_closed();
        assert_eq!(world.totals().hit_first_head_ms, 1);
        world.end();
    }
}

#[test]
fn the_first_head_has_its_time_from_accept_however_it_trickles() {
    let (mut world, mut client) = begin(Timeouts::default());
    world.pass(5000);
    for byte in &Unit::get(1).bytes[..4] {
        client.send([*byte]);
        world.pass(1000);
    }
    ends_after(&mut world, &client, 1000, LATE_MS);
    client.assert_got(&[ExpectedResponse::timeout()]);
    client.assert_closed();
    assert_eq!(world.totals().hit_first_head_ms, 1);
    world.end();
}

#[test]
fn an_empty_line_begins_a_first_head_and_no_other() {
    let (mut world, mut client) = begin(Timeouts::default());
    client.send(b"\r\n");
    world.settle();
    ends_after(&mut world, &client, 10_000, LATE_MS);
    client.assert_got(&[ExpectedResponse::timeout()]);
    world.end();
    for stray in [&b"\r"[..], b"\r\n"] {
        let (mut world, mut client) = begin_later(Timeouts::default());
        client.send(stray);
        world.settle();
        ends_after(&mut world, &client, 60_000, LATE_IDLE_MS);
        client.assert_got(&[]);
        client.assert_closed();
        world.end();
    }
}

#[test]
fn a_stray_line_end_between_requests_holds_no_memory() {
    for stray in [&b"\r"[..], b"\r\n"] {
        let (mut world, mut client) = begin_later(Timeouts::default());
        client.send(stray);
        world.settle();
        assert_eq!(world.in_use(), (1, 0, 1), "(connections, blocks, timers)");
        assert_eq!(world.worker.buffered_bytes(), 0);
        client.peer.finish();
        world.end();
        client.assert_got(&[]);
    }
}

/// The result is the same as if everything had arrived at once.
#[test]
fn a_stray_line_end_is_remembered() {
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
                client.send(piece);
                world.settle();
            }
            let response = format!("HTTP/1.1 {status} ");
            assert!(client.read().starts_with(response.as_bytes()), "{first:?} in pieces of {piece}");
            client.peer.reset();
            world.end();
        }
    }
}

#[test]
fn a_stray_line_end_between_requests_does_no_harm() {
    let (mut world, mut client) = begin_later(Timeouts::default());
    for piece in [
        &b"\r"[..],
        b"\n",
        &Unit::get(1).bytes,
        b"\r\n",
        &Unit::get(2).bytes[..9],
        &Unit::get(2).bytes[9..],
        b"\r\n",
    ] {
        client.send(piece);
        world.settle();
    }
    client.peer.finish();
    world.end();
    client.assert_got(&[Unit::get(1).response, Unit::get(2).response]);
    client.assert_closed();
}

#[test]
fn a_later_head_has_its_time_from_its_first_byte() {
    let (mut world, mut client) = begin_later(Timeouts { head_ms: 3000, ..Timeouts::default() });
    world.pass(20_000);
    client.send(b"G");
    world.settle();
    let part = &Unit::get(1).bytes[1..3];
    for byte in part {
        world.pass(1000);
        client.send([*byte]);
    }
    world.settle();
    ends_after(&mut world, &client, 1000, LATE_MS);
    client.assert_got(&[ExpectedResponse::timeout()]);
    client.assert_closed();
    world.end();
}

#[test]
fn a_head_behind_pipelined_requests_has_its_time() {
    let (mut world, mut client) = begin(Timeouts { head_ms: 3000, idle_ms: 100_000, ..Timeouts::default() });
    client.send([&Unit::stream(&[Unit::get(1), Unit::get(2)])[..], b"GET / HT"].concat());
    world.settle();
    ends_after(&mut world, &client, 3000, LATE_MS);
    client.assert_got(&[Unit::get(1).response, Unit::get(2).response, ExpectedResponse::timeout()]);
    world.end();
}

#[test]
fn a_body_has_its_time_between_two_pieces() {
    for route in ["plain", "buffer", "pulled"] {
        let mut world = World::new(Setting {
            limits: Limits { body_bytes_per_second_min: 0, ..Limits::default() },
            timeouts: Timeouts { body_ms: 5000, ..Timeouts::default() },
            ..Setting::default()
        });
        world.net.advance(BEGIN_MS);
        let mut client = world.connect();
        client.send(head("POST", &format!("/{route}/1"), "Content-Length: 100\r\n"));
        for _ in 0..10 {
            world.pass(4900);
            client.send(b"x");
            world.settle();
        }
        client.assert_got(&[]);
        ends_after(&mut world, &client, 5000, LATE_MS);
        client.assert_got(&[ExpectedResponse::timeout()]);
        client.assert_closed();
        assert_eq!(world.totals().hit_body_ms, 1);
        world.end();
    }
}

#[test]
fn a_body_that_was_told_to_go_on_has_its_time() {
    let (mut world, mut client) = begin(Timeouts { body_ms: 5000, ..Timeouts::default() });
    let unit = Unit::post_expecting("buffer", 1, 40);
    client.send(&unit.bytes[..unit.bytes.len() - 40]);
    world.settle();
    ends_after(&mut world, &client, 5000, LATE_MS);
    assert!(String::from_utf8_lossy(client.read()).contains("100 Continue\r\n\r\nHTTP/1.1 408 "));
    world.end();
}

#[test]
fn an_idle_connection_is_closed_in_silence() {
    for idle_ms in [1000, 60_000, 600_000] {
        let (mut world, mut client) = begin_later(Timeouts { idle_ms, ..Timeouts::default() });
        ends_after(&mut world, &client, idle_ms, LATE_IDLE_MS);
        client.assert_got(&[]);
        client.assert_closed();
        assert_eq!(world.totals().hit_idle_ms, 1);
        world.end();
    }
}

#[test]
fn each_request_begins_the_idle_time_anew() {
    let (mut world, mut client) = begin_later(Timeouts { idle_ms: 5000, ..Timeouts::default() });
    for number in 0..20 {
        world.pass(4900);
        client.send(Unit::get(number).bytes);
    }
    world.settle();
    client.assert_got(&(0..20).map(|number| Unit::get(number).response).collect::<Vec<_>>());
    ends_after(&mut world, &client, 5000, LATE_IDLE_MS);
    world.end();
}

#[test]
fn who_takes_nothing_is_reset() {
    // With the network accepting some of it at once, or nothing.
    for window in [0, 100_000] {
        let (mut world, mut client) = begin_later(Timeouts::default());
        client.peer.set_window(window);
        client.peer.set_reading(false);
        client.send(Unit::big().bytes);
        world.settle();
        ends_after(&mut world, &client, WRITE_CHECK_MS + WRITE_MS, 2 * LATE_IDLE_MS);
        assert!(client.peer.saw_reset());
        assert_eq!(world.totals().hit_write_ms, 1);
        world.end();
    }
}

#[test]
fn who_waits_for_a_disk_is_not_reset() {
    let (mut world, mut client) = begin_later(Timeouts::default());
    client.peer.set_on_disk(true);
    client.send(Unit::big().bytes);
    world.settle();
    world.pass(10 * WRITE_MS);
    assert!(!client.peer.saw_reset());
    client.peer.set_on_disk(false);
    world.settle();
    client.assert_got(&[Unit::big().response]);
    assert_eq!(world.totals().hit_write_ms, 0);
    world.end();
}

#[test]
fn who_stops_taking_is_reset_within_twice_the_time() {
    let (mut world, mut client) = begin_later(Timeouts::default());
    client.peer.set_window(100_000);
    client.peer.set_reading(false);
    client.send(Unit::big().bytes);
    world.pass(10_000);
    client.got.extend(client.peer.read_at_most(50_000));
    world.settle();
    ends_after(&mut world, &client, WRITE_MS, WRITE_MS + 2 * LATE_IDLE_MS);
    assert!(client.peer.saw_reset());
    world.end();
}

#[test]
fn who_takes_little_by_little_is_served() {
    let (mut world, mut client) = begin_later(Timeouts::default());
    client.peer.set_window(100_000);
    client.peer.set_reading(false);
    client.send(Unit::big().bytes);
    for _ in 0..20 {
        world.pass(29_000);
        client.got.extend(client.peer.read_at_most(8000));
    }
    assert!(!client.peer.saw_reset());
    client.peer.set_reading(true);
    world.settle();
    client.assert_got(&[ExpectedResponse::big()]);
    world.end();
}

#[test]
fn a_client_that_never_ends_its_side_is_left_after_a_while() {
    let (mut world, mut client) = begin_later(Timeouts { linger_ms: 4000, ..Timeouts::default() });
    client.send(Unit::malformed(1).bytes);
    world.settle();
    client.assert_got(&[Unit::malformed(1).response]);
    client.assert_closed();
    let began_ms = world.net.now_ms();
    let net = world.net.clone();
    let ended_ms = world.sleep_until(|| net.connections() == 0);
    assert!((4000..=4000 + LATE_IDLE_MS).contains(&(ended_ms - began_ms)), "{} ms", ended_ms - began_ms);
    assert_eq!(world.totals().hit_linger_ms, 1);
    client.assert_closed();
    world.end();
}

#[test]
fn timeouts_hold_for_many_at_once() {
    let timeouts = Timeouts { first_head_ms: 2000, ..Timeouts::default() };
    let mut world = World::with_timeouts(timeouts);
    let mut clients = Vec::new();
    for number in 0..300 {
        world.pass(number % 29);
        clients.push((world.net.now_ms(), world.connect()));
        world.settle();
    }
    let mut waiting: Vec<usize> = (0..clients.len()).collect();
    while !waiting.is_empty() {
        world.turn();
        let now_ms = world.net.now_ms();
        waiting.retain(|number| {
            let (began_ms, client) = &clients[*number];
            let age_ms = now_ms - began_ms;
            if client.peer.saw_fin() {
                assert!(age_ms >= 2000, "client {number} ended after {age_ms} ms");
            } else {
                assert!(age_ms <= 2000 + LATE_MS, "client {number} lives after {age_ms} ms");
            }
            !client.peer.saw_fin()
        });
    }
    world.end();
}

#[test]
fn a_worker_that_was_held_up_acts_on_what_has_passed_a_bounded_part_in_each_turn() {
    let mut world = World::default();
    let mut clients: Vec<Client> = (0..EXPIRIES_PER_TURN_MIN + 100).map(|_| world.connect()).collect();
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
    clients[1..].iter_mut().for_each(Client::assert_closed);
    world.end();
}

/// A turn that acts on its maximum of deadlines has reached no limit if none is left.
#[test]
fn counts_a_turn_that_leaves_due_deadlines_and_no_other() {
    for (more, counted) in [(0, 0), (1, 1)] {
        let mut world = World::default();
        let mut clients: Vec<Client> = (0..EXPIRIES_PER_TURN_MIN + more).map(|_| world.connect()).collect();
        world.settle();
        world.pass(Timeouts::default().first_head_ms + 1000);
        clients.iter_mut().for_each(Client::assert_closed);
        assert_eq!(world.totals().hit_expiries_per_turn, counted, "{more} more");
        world.end();
    }
}

#[test]
fn the_longest_timeouts_are_no_danger() {
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
        client.send([byte]);
        world.settle();
    }
    client.assert_got(&Unit::responses(&units));
    world.pass(100_000);
    client.peer.finish();
    world.end();
    let mut client = world.connect();
    client.send(Unit::get(1).bytes);
    world.settle();
    world.control.drain(longest);
    world.pass(100_000);
    assert_eq!(world.net.connections(), 1, "the drain waits for it");
    client.peer.finish();
    world.end();
}
