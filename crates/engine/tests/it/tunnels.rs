//! Upgraded connections with TLS: the program gets one end of a socket pair.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use shearwater_engine::io::secure::RECORD_BYTES_MAX;
use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::TUNNEL_BYTES_MAX;
use shearwater_engine::{ConnectionGuard, HandedOver, Limits, Request, Response, Service, Timeouts};

use crate::harness::letters::{CONTENT, record};
use crate::harness::{Choices, SecureSim, Setting, SimClient, SimWorld};
use crate::secured::connect;
use crate::seeds;

/// Upgrades each request that offers it, and keeps its connection for the test.
#[derive(Default, Clone)]
pub(crate) struct Upgrading(pub(crate) Rc<RefCell<Option<HandedOver>>>);

impl Service for Upgrading {
    fn protocols(&self) -> Vec<String> {
        vec!["x".to_owned()]
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        let kept = Rc::clone(&self.0);
        let take = move |handed| *kept.borrow_mut() = Some(handed);
        match request.path() {
            _ if request.head().upgrades().next().is_none() => {}
            "/ignored" => drop(response.text("no tunnel's content")),
            "/refused" => drop(response.status(403).text("Forbidden\n")),
            "/streamed" => response.defer(request, |mut call| async move {
                call.push(b"no tunnel's content");
                call.sleep(Duration::from_millis(500)).await;
                call.push(b", and more");
            }),
            "/later" => response.defer(request, |mut call| async move {
                call.sleep(Duration::from_millis(500)).await;
                call.upgrade("x", take);
            }),
            _ => drop(response.upgrade(request, "x", take)),
        }
    }
}

/// The program's side of a connection.
pub(crate) struct Program {
    pub(crate) socket: UnixStream,
    pub(crate) guard: Option<ConnectionGuard>,
}

impl Program {
    /// Writes as much as it can; returns the number of bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        match self.socket.write(bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads what is there; returns true at the end.
    pub(crate) fn read(&mut self, into: &mut Vec<u8>) -> bool {
        match self.socket.read_to_end(into) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}

type TunnelWorld = SimWorld<Upgrading, SecureSim>;

/// Upgrades a client's connection, which sends `early` with its request.
fn upgrade(world: &mut TunnelWorld, kept: &Upgrading, early: &[u8]) -> (SimClient, Program) {
    let mut client = connect(world, b'a');
    let request = b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
    world.feed(&mut client, record(CONTENT, &[request, early].concat()));
    assert!(client.text().starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{}", client.text());
    client.got.clear();
    let handed = kept.0.borrow_mut().take().expect("it is handed over");
    assert_eq!(handed.unread, early);
    (client, Program { socket: handed.descriptor.into(), guard: Some(handed.guard) })
}

fn joined(limits: Limits) -> (TunnelWorld, SimClient, Program) {
    let kept = Upgrading::default();
    let mut world = SimWorld::with_tls(Setting { limits, ..Setting::default() }, kept.clone());
    let (client, program) = upgrade(&mut world, &kept, b"early");
    (world, client, program)
}

/// Records with this content.
fn records(content: &[u8]) -> Vec<u8> {
    content.chunks(RECORD_BYTES_MAX).flat_map(|chunk| record(CONTENT, chunk)).collect()
}

fn assert_nothing_left(world: &mut TunnelWorld) {
    world.settle();
    assert_eq!((world.net.connections(), world.worker.in_use()), (0, (0, 0, 0)));
    assert_eq!((world.worker.waiting_in_use().1, world.worker.buffered_bytes()), (0, 0));
    assert_eq!(world.control.totals().connections_open(), 0);
}

#[test]
fn passes_bytes_both_ways_and_counts_as_an_upgrade() {
    let (mut world, mut client, mut program) = joined(Limits::default());
    let sent_before = world.control.totals().bytes_sent;
    let mut got = Vec::new();
    for round in 0..10 {
        world.feed(&mut client, records(&[round; 70_000]));
        while got.len() < 70_000 {
            assert!(!program.read(&mut got));
            world.settle();
        }
        assert!(got == [round; 70_000]);
        got.clear();
        assert_eq!(program.write(b"an answer"), 9);
        world.settle();
        assert_eq!(client.read(), b"an answer");
        client.got.clear();
    }
    let totals = world.control.totals();
    assert_eq!((totals.connections_upgraded, totals.connections_open()), (1, 1));
    assert_eq!(totals.bytes_sent - sent_before, 90, "the client's bytes to the program don't count");
    assert_eq!(world.worker.waiting_in_use().1, 0, "an idle tunnel holds nothing");
    world.pass(2 * Timeouts::default().idle_ms);
    assert!(!client.peer.saw_fin(), "the server's timeouts don't apply");
    drop(program);
    world.settle();
    client.assert_closed();
    client.peer.finish();
    assert_nothing_left(&mut world);
}

#[test]
fn passes_the_end_of_each_side_on() {
    for program_first in [false, true] {
        let (mut world, mut client, mut program) = joined(Limits::default());
        let mut got = Vec::new();
        if program_first {
            program.write(b"the last word");
            program.socket.shutdown(Shutdown::Write).expect("it is open");
            world.settle();
            assert_eq!(client.read(), b"the last word");
            assert!(client.peer.saw_fin());
            world.feed(&mut client, records(b"heard"));
            client.peer.finish();
            world.settle();
            assert!(program.read(&mut got));
            assert_eq!(got, b"heard");
        } else {
            world.feed(&mut client, records(b"asked"));
            client.peer.finish();
            world.settle();
            assert!(program.read(&mut got));
            assert_eq!(got, b"asked");
            program.write(b"answered");
            world.settle();
            assert_eq!(client.read(), b"answered");
            assert!(!client.peer.saw_fin());
            program.socket.shutdown(Shutdown::Write).expect("it is open");
            world.settle();
            assert!(client.peer.saw_fin());
        }
        // The guard is still there: nobody needs it.
        assert_nothing_left(&mut world);
        drop(program);
        assert_nothing_left(&mut world);
    }
}

#[test]
fn passes_a_break_of_each_side_on() {
    let (mut world, client, mut program) = joined(Limits::default());
    client.peer.reset();
    world.settle();
    assert!(program.read(&mut Vec::new()), "a reset is an end");
    assert_eq!(program.socket.write(b"x").expect_err("it is closed").kind(), ErrorKind::BrokenPipe);
    assert_eq!(world.control.totals().connections_broken, 1);
    assert_nothing_left(&mut world);

    let (mut world, mut client, program) = joined(Limits::default());
    world.feed(&mut client, records(b"never read"));
    drop(program);
    world.settle();
    assert!(client.peer.saw_reset(), "as a close with unread input");
    assert_nothing_left(&mut world);
}

#[test]
fn a_program_that_reads_nothing_holds_its_client_up() {
    let (mut world, mut client, mut program) = joined(Limits::default());
    let sent: Vec<u8> = (0..3_000_000_u32).map(|number| (number / 7) as u8).collect();
    world.feed(&mut client, records(&sent));
    assert!(client.peer.unread() > 1_000_000, "{} bytes unread", client.peer.unread());
    let held = world.worker.waiting_in_use().1;
    assert!(held > 0 && held <= TUNNEL_BYTES_MAX, "{held} bytes wait");
    assert!(world.worker.buffered_bytes() >= held, "they count for `buffered_bytes_max`");
    client.peer.finish();
    let mut got = Vec::new();
    while !program.read(&mut got) {
        world.settle();
    }
    assert!(got == sent);
    drop(program);
    assert_nothing_left(&mut world);
}

#[test]
fn a_client_that_reads_nothing_holds_its_program_up() {
    let (mut world, mut client, mut program) = joined(Limits::default());
    client.stop_reading(10_000);
    let sent: Vec<u8> = (0..3_000_000_u32).map(|number| (number / 7) as u8).collect();
    let mut written = 0;
    for _ in 0..100 {
        written += program.write(&sent[written..]);
        world.settle();
        let held = world.worker.waiting_in_use().1;
        assert!(held <= TUNNEL_BYTES_MAX, "{held} bytes wait");
    }
    assert!(written < sent.len(), "the program is held up");
    world.pass(10 * Timeouts::default().write_ms);
    assert!(!client.peer.saw_reset(), "as long as it has the connection, it decides");
    client.peer.set_reading(true);
    while written < sent.len() {
        world.settle();
        written += program.write(&sent[written..]);
    }
    drop(program);
    world.settle();
    assert!(client.read() == sent);
    client.assert_closed();
    client.peer.finish();
    assert_nothing_left(&mut world);
}

#[test]
fn a_vanished_client_leaves_nothing_behind() {
    for is_sending in [false, true] {
        let (mut world, client, mut program) = joined(Limits::default());
        if is_sending {
            client.stop_reading(1000);
            while program.write(&[b'x'; 100_000]) > 0 {
                world.settle();
            }
        }
        drop(program);
        world.settle();
        assert_eq!(world.worker.in_use().0, 1, "the client may still read");
        let Timeouts { write_ms, linger_ms, .. } = Timeouts::default();
        world.pass(if is_sending { 2 * write_ms } else { 0 } + linger_ms + 3000);
        assert_eq!(world.worker.in_use(), (0, 0, 0));
        assert_eq!(client.peer.saw_reset(), is_sending);
        assert_eq!(world.worker.waiting_in_use().1, 0);
    }
}

#[test]
fn a_drain_and_a_stop_end_tunnels() {
    for is_stopped in [false, true] {
        let (mut world, mut client, mut program) = joined(Limits::default());
        program.write(b"before");
        world.settle();
        if is_stopped {
            world.control.stop();
        } else {
            world.control.drain(60_000);
        }
        world.settle();
        assert_eq!(client.read(), b"before");
        client.assert_closed();
        client.peer.finish();
        assert!(program.read(&mut Vec::new()), "the program sees the end");
        assert_nothing_left(&mut world);
        drop(program);
        world.settle();
        assert_eq!(world.control.totals().connections_cut_off, 0);
    }
}

#[test]
fn a_drain_ends_a_tunnel_that_is_held_up() {
    let (mut world, mut client, program) = joined(Limits::default());
    world.feed(&mut client, records(&[0; 700_000]));
    assert!(client.peer.unread() > 0, "the program reads nothing");
    world.control.drain(60_000);
    world.settle();
    client.assert_closed();
    client.peer.finish();
    assert_nothing_left(&mut world);
    drop(program);
}

/// As elsewhere, the memory of all connections is bounded.
#[test]
fn full_buffers_end_a_tunnel_that_is_held_up() {
    let limits = Limits { buffered_bytes_max: 100_000, ..Limits::default() };
    let (mut world, mut client, program) = joined(limits);
    world.feed(&mut client, records(&[0; 2_000_000]));
    assert!(client.peer.saw_reset());
    assert_eq!(world.control.totals().hit_buffered_bytes, 1);
    assert_nothing_left(&mut world);
    drop(program);
}

/// On a rough kernel bytes arrive in order, and nothing is left.
#[test]
fn random_tunnels_end_well() {
    seeds::run_or_replay(seeds::DEFERRED_SEEDS, |seed| {
        let kept = Upgrading::default();
        let mut choices = Choices::new(seed);
        let mut world =
            SimWorld::with_tls(Setting { sim: SimOptions::rough(seed), ..Setting::default() }, kept.clone());
        let mut client = connect(&mut world, b'a');
        let request = b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
        world.feed(&mut client, record(CONTENT, request));
        let Some(handed) = kept.0.borrow_mut().take() else {
            assert!(client.peer.saw_reset() || client.peer.saw_fin(), "a fault has ended it");
            return;
        };
        let head = client.read().windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(0, |at| at + 4);
        let mut program = Program { socket: handed.descriptor.into(), guard: Some(handed.guard) };
        let wire = records(&pattern(choices.below(300_000), 3));
        let said = pattern(choices.below(300_000), 5);
        let (mut sent, mut written, mut heard, mut is_over) = (0, 0, Vec::new(), false);
        for _ in 0..300 {
            let len = choices.below(20_000).min(wire.len() - sent);
            client.send(&wire[sent..sent + len]);
            sent += len;
            if choices.below(3) > 0 {
                let until = (written + choices.below(20_000)).min(said.len());
                written += program.socket.write(&said[written..until]).unwrap_or(0);
            }
            if choices.below(3) > 0 {
                is_over |= !matches!(program.socket.read_to_end(&mut heard), Err(error) if error.kind() == ErrorKind::WouldBlock);
            }
            client.peer.set_reading(choices.below(3) > 0);
            world.worker.turn().expect("the simulated driver doesn't break");
        }
        assert!(heard == pattern(heard.len(), 3), "the client's bytes are in order");
        client.peer.set_reading(true);
        if choices.below(2) == 0 {
            client.peer.finish();
        }
        drop(program.guard.take());
        drop(program);
        world.settle();
        let got = &client.read()[head..];
        assert!(*got == pattern(got.len(), 5), "and so are the program's");
        let is_whole = got.len() == written;
        assert!(is_over || is_whole || client.peer.saw_reset());
        client.peer.close();
        assert_nothing_left(&mut world);
    });
}

/// Returns bytes that reveal shifts and gaps.
pub(crate) fn pattern(len: usize, step: usize) -> Vec<u8> {
    (0..len).map(|at| (at * step / 64 + at / 251) as u8).collect()
}
