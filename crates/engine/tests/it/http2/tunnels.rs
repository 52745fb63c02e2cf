//! Tunnels on streams, by extended CONNECT (RFC 8441): the program gets one end of a socket pair.

use std::net::Shutdown;

use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::{TUNNEL_BYTES_MAX, TUNNELS_PER_CONNECTION_MAX};
use shearwater_engine::{Limits, Timeouts};
use testkit::Error;
use testkit::http2::frame::{CANCEL, Frame, INITIAL_WINDOW_SIZE};

use super::client::{SimHttp2Client, setting};
use crate::harness::{Choices, Setting, SimWorld};
use crate::seeds;
use crate::tunnels::{Program, Upgrading, pattern};

/// Codes of resets: no error, and a broken rule.
const NO_ERROR: u32 = 0;
pub(super) const PROTOCOL_ERROR: u32 = 1;

pub(super) type World = SimWorld<Upgrading>;

pub(super) fn world_of(limits: Limits) -> (World, Upgrading) {
    let kept = Upgrading::default();
    (SimWorld::of(setting(limits, Timeouts::default()), kept.clone()), kept)
}

/// Queues an extended CONNECT.
pub(super) fn connect(client: &mut SimHttp2Client, path: &str, protocol: &str) -> u32 {
    client.session.begin(&connect_fields(path, protocol))
}

pub(super) fn connect_fields<'a>(path: &'a str, protocol: &'a str) -> [(&'a str, &'a str); 5] {
    [
        (":method", "CONNECT"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a"),
        (":protocol", protocol),
    ]
}

pub(super) fn taken(kept: &Upgrading) -> (Program, Vec<u8>) {
    let handed = kept.0.borrow_mut().take().expect("it is handed over");
    (Program { socket: handed.descriptor.into(), guard: Some(handed.guard) }, handed.unread)
}

/// Opens a tunnel.
pub(super) fn join(world: &mut World, client: &mut SimHttp2Client, kept: &Upgrading) -> (u32, Program) {
    let stream = connect(client, "/", "x");
    client.exchange(world);
    let head = client.session.head(stream).expect("no error").expect("a head");
    assert_eq!((head.status, head.fields.iter().any(|(name, _)| name == "content-length")), (200, false));
    (stream, taken(kept).0)
}

fn joined(limits: Limits) -> (World, SimHttp2Client, u32, Program) {
    joined_by(limits, &[])
}

/// Opens a tunnel of a client with these settings.
fn joined_by(limits: Limits, settings: &[(u16, u32)]) -> (World, SimHttp2Client, u32, Program) {
    let (mut world, kept) = world_of(limits);
    let mut client = SimHttp2Client::with_settings(&mut world, settings);
    let (stream, program) = join(&mut world, &mut client, &kept);
    (world, client, stream, program)
}

/// Returns the content that has arrived.
fn content(client: &mut SimHttp2Client, stream: u32) -> Vec<u8> {
    let mut all = Vec::new();
    while let Ok(Some(piece)) = client.session.data(stream) {
        if piece.is_empty() {
            break;
        }
        all.extend(piece);
    }
    all
}

pub(super) fn assert_nothing_left(world: &mut World, client: &SimHttp2Client) {
    client.finish(world);
    assert_eq!((world.worker.waiting_in_use().1, world.worker.buffered_bytes()), (0, 0));
    assert_eq!(world.control.totals().connections_open(), 0);
}

#[test]
fn passes_bytes_both_ways_and_counts_as_an_upgrade() {
    let (mut world, mut client, stream, mut program) = joined(Limits::default());
    let sent_before = world.control.totals().bytes_sent;
    let mut got = Vec::new();
    for round in 0..10 {
        client.session.send_data(stream, &[round; 70_000], false);
        while got.len() < 70_000 {
            client.exchange(&mut world);
            assert!(!program.read(&mut got));
        }
        assert!(got == [round; 70_000]);
        got.clear();
        assert_eq!(program.write(b"an answer"), 9);
        client.exchange(&mut world);
        assert_eq!(content(&mut client, stream), b"an answer");
    }
    let totals = world.control.totals();
    assert_eq!((totals.connections_upgraded, totals.connections_open()), (1, 1));
    let sent = totals.bytes_sent - sent_before;
    assert!(sent < 2000, "{sent} bytes: the client's to the program don't count");
    let held = world.worker.buffered_bytes();
    assert!(held < 10_000, "{held} bytes: an idle tunnel holds none of its content");
    client.pass(&mut world, 2 * Timeouts::default().idle_ms);
    assert!(!client.session.is_over(), "the server's timeouts don't apply");
    client.assert_usable(&mut world);
    drop(program);
    client.exchange(&mut world);
    assert_eq!(client.session.data(stream), Ok(Some(Vec::new())), "an end");
    client.assert_usable(&mut world);
    assert_nothing_left(&mut world, &client);
}

#[test]
fn passes_the_end_of_each_side_on() {
    for program_first in [false, true] {
        let (mut world, mut client, stream, mut program) = joined(Limits::default());
        let mut got = Vec::new();
        if program_first {
            program.write(b"the last word");
            program.socket.shutdown(Shutdown::Write).expect("it is open");
            client.exchange(&mut world);
            assert_eq!(content(&mut client, stream), b"the last word");
            client.session.push(&Frame::data(stream, b"heard", false));
            client.exchange(&mut world);
            assert!(!program.read(&mut got), "the client may go on");
            client.session.push(&Frame::data(stream, b"", true));
            client.exchange(&mut world);
            assert!(program.read(&mut got));
            assert_eq!(got, b"heard");
        } else {
            client.session.send_data(stream, b"asked", true);
            client.exchange(&mut world);
            assert!(program.read(&mut got));
            assert_eq!(got, b"asked");
            program.write(b"answered");
            client.exchange(&mut world);
            assert_eq!(client.session.data(stream), Ok(Some(b"answered".to_vec())));
            assert_eq!(client.session.data(stream), Ok(None), "the program may go on");
            program.socket.shutdown(Shutdown::Write).expect("it is open");
            client.exchange(&mut world);
            assert_eq!(client.session.data(stream), Ok(Some(Vec::new())));
        }
        client.assert_usable(&mut world);
        // The guard is still there: nobody needs it.
        drop(program);
        client.assert_usable(&mut world);
        assert_nothing_left(&mut world, &client);
    }
}

#[test]
fn a_reset_ends_the_programs_side() {
    let (mut world, mut client, stream, mut program) = joined(Limits::default());
    client.session.send_data(stream, &[1; 60_000], false);
    client.exchange(&mut world);
    client.session.reset(stream, CANCEL);
    client.exchange(&mut world);
    assert!(program.read(&mut Vec::new()), "a reset is an end");
    assert!(program.socket.shutdown(Shutdown::Both).is_ok());
    client.assert_usable(&mut world);
    assert_nothing_left(&mut world, &client);
}

#[test]
fn a_program_that_breaks_off_resets_its_stream() {
    let (mut world, mut client, stream, program) = joined(Limits::default());
    client.session.send_data(stream, b"never read", false);
    client.exchange(&mut world);
    drop(program);
    client.exchange(&mut world);
    assert_eq!(client.session.data(stream), Err(Error::StreamReset(CANCEL)), "as a close with unread input");
    client.assert_usable(&mut world);
    assert_nothing_left(&mut world, &client);
}

/// They wait for a window, as they wait for the end of the turn in which both come.
#[test]
fn the_last_bytes_of_a_program_that_breaks_off_come_before_the_reset() {
    let (mut world, mut client, stream, mut program) =
        joined_by(Limits::default(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.session.send_data(stream, b"never read", false);
    client.exchange(&mut world);
    program.write(b"the last word");
    client.exchange(&mut world);
    drop(program);
    client.exchange(&mut world);
    client.session.send_data(stream, b"too late", true);
    client.exchange(&mut world);
    assert_eq!(client.session.data(stream), Ok(None));
    client.session.grant(stream, 1000);
    client.exchange(&mut world);
    assert_eq!(client.session.data(stream), Ok(Some(b"the last word".to_vec())));
    assert_eq!(client.session.data(stream), Err(Error::StreamReset(CANCEL)));
    client.assert_usable(&mut world);
    assert_nothing_left(&mut world, &client);
}

#[test]
fn the_end_of_the_connection_ends_the_programs_side() {
    for is_reset in [false, true] {
        let (mut world, client, _, mut program) = joined(Limits::default());
        if is_reset {
            client.sim.peer.reset();
        } else {
            client.sim.peer.finish();
        }
        world.settle();
        assert!(program.read(&mut Vec::new()));
        world.end();
        drop(program);
        world.end();
    }
}

#[test]
fn a_program_that_reads_nothing_holds_its_client_up() {
    let (mut world, mut client, stream, mut program) = joined(Limits::default());
    let sent = pattern(3_000_000, 7);
    client.session.send_data(stream, &sent, true);
    client.exchange(&mut world);
    assert!(client.session.unsent(stream) > 1_000_000, "{} bytes unsent", client.session.unsent(stream));
    assert!(client.session.window(stream) <= 0 && client.session.window(0) > 500_000, "the others go on");
    assert!(world.worker.buffered_bytes() > 10_000, "they count for `buffered_bytes_max`");
    client.assert_usable(&mut world);
    let mut got = Vec::new();
    while !program.read(&mut got) {
        client.exchange(&mut world);
    }
    assert!(got == sent);
    drop(program);
    client.exchange(&mut world);
    assert_nothing_left(&mut world, &client);
}

/// A send in flight ends with its stream: the part that the program has taken isn't the clients'.
#[test]
fn counts_what_clients_are_sent_after_a_reset() {
    let (mut world, mut client, stream, program) = joined(Limits::default());
    client.session.send_data(stream, &[0; 3_000_000], false);
    client.exchange(&mut world);
    let before = world.control.totals().bytes_sent;
    client.session.reset(stream, CANCEL);
    client.exchange(&mut world);
    client.assert_usable(&mut world);
    drop(program);
    client.exchange(&mut world);
    let sent = world.control.totals().bytes_sent - before;
    assert!((20..1000).contains(&sent), "{sent} bytes");
}

#[test]
fn a_client_that_grants_nothing_holds_its_program_up() {
    let kept = Upgrading::default();
    let mut world = SimWorld::of(setting(Limits::default(), Timeouts::default()), kept.clone());
    let mut client = SimHttp2Client::with_settings(&mut world, &[(INITIAL_WINDOW_SIZE, 0)]);
    client.session.stop_window_updates();
    let (stream, mut program) = join(&mut world, &mut client, &kept);
    let sent = pattern(3_000_000, 7);
    let mut written = 0;
    for _ in 0..100 {
        written += program.write(&sent[written..]);
        client.exchange(&mut world);
        let held = world.worker.buffered_bytes();
        assert!(held <= 2 * TUNNEL_BYTES_MAX, "{held} bytes wait");
    }
    assert!(written < 1_000_000, "the program is held up after {written} bytes");
    client.pass(&mut world, 10 * Timeouts::default().write_ms);
    assert!(!client.session.is_over(), "as long as it has the tunnel, it decides");
    let mut got = Vec::new();
    while got.len() < sent.len() {
        written += program.write(&sent[written..]);
        client.session.grant(0, 50_000);
        client.session.grant(stream, 50_000);
        client.exchange(&mut world);
        got.extend(content(&mut client, stream));
    }
    assert!(got == sent);
    drop(program);
    client.exchange(&mut world);
    assert_nothing_left(&mut world, &client);
}

#[test]
fn bytes_of_a_program_that_has_left_have_a_deadline() {
    let (mut world, mut client, _, mut program) = joined_by(Limits::default(), &[(INITIAL_WINDOW_SIZE, 0)]);
    program.write(b"never taken");
    drop(program);
    client.exchange(&mut world);
    assert!(!client.session.is_over());
    world.pass(2 * Timeouts::default().write_ms);
    assert!(client.sim.peer.saw_reset());
    world.end();
}

#[test]
fn a_drain_and_a_stop_end_tunnels() {
    for is_stopped in [false, true] {
        let (mut world, mut client, stream, mut program) = joined(Limits::default());
        program.write(b"before");
        client.exchange(&mut world);
        if is_stopped {
            world.control.stop();
        } else {
            world.control.drain(60_000);
        }
        client.exchange(&mut world);
        assert_eq!(content(&mut client, stream), b"before");
        assert!(program.read(&mut Vec::new()), "the program sees the end");
        client.sim.peer.finish();
        world.run();
        drop(program);
        assert_eq!(world.control.totals().connections_cut_off, 0, "{is_stopped}");
    }
}

#[test]
fn a_drain_leaves_tunnels_while_others_are_served() {
    let (mut world, mut client, stream, mut program) = joined(Limits::default());
    let other = client.begin("/", &[]);
    client.exchange(&mut world);
    world.control.drain(60_000);
    client.exchange(&mut world);
    assert_eq!(client.session.go_away().map(|(_, code)| code), Some(NO_ERROR));
    assert_eq!(program.write(b"still here"), 10);
    client.exchange(&mut world);
    assert_eq!(client.session.data(stream), Ok(Some(b"still here".to_vec())));
    client.session.send_data(other, b"", true);
    client.exchange(&mut world);
    assert_eq!(client.response(other).status, 200);
    client.exchange(&mut world);
    assert_eq!(client.session.data(stream), Ok(Some(Vec::new())), "the tunnel ends last");
    client.sim.peer.finish();
    world.run();
    drop(program);
}

#[test]
fn a_drain_ends_a_tunnel_that_is_held_up() {
    let (mut world, mut client, _, mut program) = joined_by(Limits::default(), &[(INITIAL_WINDOW_SIZE, 0)]);
    program.write(&[0; 700_000]);
    client.exchange(&mut world);
    world.control.drain(10 * Timeouts::default().write_ms);
    assert!(world.run() <= 2 * Timeouts::default().write_ms);
    drop(program);
}

#[test]
fn keeps_what_comes_before_a_deferred_upgrade() {
    let (mut world, kept) = world_of(Limits::default());
    let mut client = SimHttp2Client::connect(&mut world);
    let stream = connect(&mut client, "/later", "x");
    client.session.send_data(stream, b"early", true);
    client.exchange(&mut world);
    client.assert_pending(stream);
    client.pass(&mut world, 1000);
    let (mut program, unread) = taken(&kept);
    assert_eq!(unread, b"early");
    assert!(program.read(&mut Vec::new()), "its end, too");
    program.write(b"late");
    drop(program);
    client.exchange(&mut world);
    assert_eq!(client.response(stream).body, b"late");
    assert_nothing_left(&mut world, &client);
}

#[test]
fn a_tunnel_has_no_trailers() {
    // The second ones are too many for any request.
    for trailers in [1, 33] {
        let (mut world, mut client, stream, mut program) = joined(Limits::default());
        client.session.send_trailers(stream, &vec![("x-a", "1"); trailers]);
        client.exchange(&mut world);
        assert_eq!(client.session.data(stream), Err(Error::StreamReset(PROTOCOL_ERROR)), "{trailers}");
        assert!(program.read(&mut Vec::new()));
        client.assert_usable(&mut world);
        assert_nothing_left(&mut world, &client);
    }
}

#[test]
fn a_connection_has_a_bounded_number_of_tunnels() {
    let (mut world, kept) = world_of(Limits::default());
    let mut client = SimHttp2Client::connect(&mut world);
    let mut programs: Vec<_> =
        (0..TUNNELS_PER_CONNECTION_MAX).map(|_| join(&mut world, &mut client, &kept).1).collect();
    let stream = connect(&mut client, "/", "x");
    client.exchange(&mut world);
    let response = client.response(stream);
    assert_eq!((response.status, response.text()), (503, "Too many tunnels on this connection.\n"));
    drop(programs.pop());
    client.exchange(&mut world);
    programs.push(join(&mut world, &mut client, &kept).1);
    client.assert_usable(&mut world);
    drop(programs);
    client.exchange(&mut world);
    assert_nothing_left(&mut world, &client);
}

/// As elsewhere, the memory of all connections is bounded.
#[test]
fn full_buffers_end_a_connection_whose_tunnels_are_held_up() {
    let (mut world, kept) = world_of(Limits { buffered_bytes_max: 200_000, ..Limits::default() });
    let mut client = SimHttp2Client::connect(&mut world);
    let mut programs = Vec::new();
    for _ in 0..20 {
        let (stream, program) = join(&mut world, &mut client, &kept);
        programs.push(program);
        client.session.send_data(stream, &[0; 500_000], false);
        client.sim.send(client.session.take_output());
        world.settle();
        if client.sim.peer.saw_reset() {
            break;
        }
    }
    assert!(client.sim.peer.saw_reset());
    assert_eq!(world.control.totals().hit_buffered_bytes, 1);
    world.end();
}

/// On a rough kernel bytes arrive in order, and nothing is left.
#[test]
fn random_tunnels_end_well() {
    seeds::run_or_replay(seeds::DEFERRED_SEEDS, |seed| {
        let kept = Upgrading::default();
        let mut choices = Choices::new(seed);
        let setting =
            Setting { sim: SimOptions::rough(seed), ..setting(Limits::default(), Timeouts::default()) };
        let mut world = SimWorld::of(setting, kept.clone());
        let mut client = SimHttp2Client { sim: world.connect(), session: testkit::http2::Session::new(&[]) };
        let stream = connect(&mut client, "/", "x");
        client.exchange(&mut world);
        let Some(handed) = kept.0.borrow_mut().take() else {
            assert!(client.sim.peer.saw_reset() || client.sim.peer.saw_fin(), "a fault has ended it");
            return;
        };
        let mut program = Program { socket: handed.descriptor.into(), guard: Some(handed.guard) };
        let (asked, said) = (pattern(choices.below(300_000), 3), pattern(choices.below(300_000), 5));
        let (mut sent, mut written, mut got, mut heard, mut is_over) =
            (0, 0, Vec::new(), handed.unread, false);
        for _ in 0..300 {
            let len = choices.below(20_000).min(asked.len() - sent);
            client.session.send_data(stream, &asked[sent..sent + len], false);
            sent += len;
            client.sim.send(client.session.take_output());
            if choices.below(3) > 0 {
                let until = (written + choices.below(20_000)).min(said.len());
                written += std::io::Write::write(&mut program.socket, &said[written..until]).unwrap_or(0);
            }
            is_over |= choices.below(3) > 0 && program.read(&mut heard);
            world.worker.turn().expect("the simulated driver doesn't break");
            client.session.receive(&client.sim.peer.read()).expect("valid frames");
            got.extend(content(&mut client, stream));
        }
        assert!(heard == pattern(heard.len(), 3), "the client's bytes are in order");
        drop(program.guard.take());
        drop(program);
        for _ in 0..20 {
            client.sim.send(client.session.take_output());
            world.settle();
            client.session.receive(&client.sim.peer.read()).expect("valid frames");
            got.extend(content(&mut client, stream));
        }
        assert!(got == pattern(got.len(), 5), "and so are the program's");
        let is_broken = client.sim.peer.saw_reset() || client.session.data(stream).is_err();
        assert!(is_over || got.len() == written || is_broken, "{} of {written}", got.len());
        client.sim.peer.close();
        world.end();
    });
}
