//! Effects of FIN, RST and slow readers.

use std::time::Duration;

use shearwater_io::sim::SimOptions;
use shearwater_io::{CloseKind, Driver, Event, ReadEnd, SendError};

use super::{accepted, turn, turns};
use crate::contract::world::{pattern, plain};

#[test]
fn fin_follows_the_last_byte() {
    let (mut sim, peer, token) = accepted(SimOptions::default());
    peer.set_reading(false);
    sim.send(token, plain(b"answer"));
    turns(&mut sim);
    sim.close(token, CloseKind::Normal);
    turns(&mut sim);
    assert_eq!(peer.read_at_most(3), b"ans");
    assert!(!peer.saw_fin());
    assert_eq!(peer.read(), b"wer");
    assert!(peer.saw_fin());
}

#[test]
fn closing_with_unread_input_destroys_the_response() {
    for (reset_losses, arrives) in [(1.0, &b""[..]), (0.0, &b"413"[..])] {
        let (mut sim, peer, token) = accepted(SimOptions { reset_losses, ..SimOptions::default() });
        peer.set_reading(false);
        sim.recv_pause(token);
        peer.write(&pattern(100_000, 1));
        sim.send(token, plain(b"413"));
        turns(&mut sim);
        sim.close(token, CloseKind::Normal);
        turns(&mut sim);
        assert!(peer.saw_reset());
        assert_eq!(peer.read(), arrives);
    }
}

#[test]
fn input_after_the_close_destroys_the_response() {
    let (mut sim, peer, token) = accepted(SimOptions::default());
    peer.set_reading(false);
    sim.send(token, plain(b"413"));
    turns(&mut sim);
    sim.close(token, CloseKind::Normal);
    turns(&mut sim);
    assert!(!peer.saw_reset());
    assert!(peer.write(b"more"), "the peer can't know yet");
    assert!(peer.saw_reset());
    assert_eq!(peer.read(), b"");
    assert!(!peer.write(b"more"));
}

#[test]
fn keeps_bytes_that_the_peer_read_before_the_reset() {
    let (mut sim, peer, token) = accepted(SimOptions::default());
    sim.wait(Some(Duration::ZERO)).expect("never fails");
    sim.send(token, plain(b"413"));
    sim.close(token, CloseKind::Normal);
    assert!(matches!(sim.next(), Some(Event::Sent { result: Ok(()), .. })));
    assert!(matches!(sim.next(), Some(Event::Closed { .. })));
    turn(&mut sim);
    assert!(peer.write(b"more") && peer.saw_reset());
    assert_eq!(peer.read(), b"413");
}

#[test]
fn sending_after_the_fin_fails() {
    let (mut sim, peer, token) = accepted(SimOptions::default());
    sim.shutdown_write(token);
    sim.send(token, plain(b"late"));
    assert!(matches!(turns(&mut sim)[..], [Event::Sent { result: Err(SendError::Broken(_)), .. }]));
    assert_eq!(peer.read(), b"");
    assert!(peer.saw_fin());
}

#[test]
fn a_lingering_close_saves_the_response() {
    let (mut sim, peer, token) = accepted(SimOptions::default());
    peer.set_reading(false);
    peer.write(&pattern(100_000, 1));
    turns(&mut sim);
    sim.send(token, plain(b"413"));
    turns(&mut sim);
    sim.shutdown_write(token);
    peer.write(&pattern(100_000, 1));
    turns(&mut sim);
    peer.finish();
    assert!(matches!(turns(&mut sim)[..], [Event::ReadClosed { end: ReadEnd::Eof, .. }]));
    sim.close(token, CloseKind::Normal);
    turns(&mut sim);
    assert_eq!(peer.read(), b"413");
    assert!(peer.saw_fin() && !peer.saw_reset());
}

#[test]
fn a_reset_close_discards_what_was_not_read() {
    let (mut sim, peer, token) = accepted(SimOptions::default());
    peer.set_reading(false);
    sim.send(token, plain(b"answer"));
    turns(&mut sim);
    sim.close(token, CloseKind::Reset);
    turns(&mut sim);
    sim.net().assert_quiet();
    assert!(peer.saw_reset() && !peer.saw_fin());
    assert_eq!(peer.read(), b"");
}

#[test]
fn a_reset_by_the_peer_breaks_both_directions() {
    for (reset_losses, receives) in [(1.0, 0), (0.0, 1)] {
        let (mut sim, peer, token) = accepted(SimOptions { reset_losses, ..SimOptions::default() });
        peer.write(b"last words");
        peer.reset();
        assert!(peer.saw_reset());
        sim.send(token, plain(b"answer"));
        let events = turns(&mut sim);
        let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        assert_eq!(count(|event| matches!(event, Event::Received { .. })), receives);
        assert_eq!(count(|event| matches!(event, Event::ReadClosed { end: ReadEnd::Broken(_), .. })), 1);
        assert_eq!(count(|event| matches!(event, Event::Sent { result: Err(SendError::Broken(_)), .. })), 1);
        assert_eq!(events.len(), receives + 2);
        assert_eq!(sim.connections(), 1, "C4: it stays until it is closed");
        sim.close(token, CloseKind::Normal);
        turns(&mut sim);
        sim.net().assert_quiet();
    }
}

#[test]
fn a_closed_peer_responds_with_a_reset() {
    let (mut sim, peer, token) = accepted(SimOptions::default());
    peer.close();
    assert!(matches!(turns(&mut sim)[..], [Event::ReadClosed { end: ReadEnd::Eof, .. }]));
    sim.send(token, plain(b"first"));
    assert!(matches!(turns(&mut sim)[..], [Event::Sent { result: Ok(()), .. }]));
    sim.send(token, plain(b"second"));
    assert!(matches!(turns(&mut sim)[..], [Event::Sent { result: Err(SendError::Broken(_)), .. }]));
    assert_eq!(peer.read(), b"");
}

#[test]
fn a_slow_reader_holds_the_sender_back() {
    let (mut sim, peer, token) = accepted(SimOptions::default());
    peer.set_reading(false);
    peer.set_window(1000);
    sim.send(token, plain(&pattern(10_000, 1)));
    assert_eq!(sim.send_progress(token), 1000);
    assert!(!sim.net().is_ready(), "nothing to do until the peer reads");
    assert_eq!(turn(&mut sim).len(), 0);
    let mut got = peer.read_at_most(600);
    assert!(sim.net().is_ready());
    assert_eq!(turn(&mut sim).len(), 0);
    assert_eq!(sim.send_progress(token), 1600);
    peer.set_reading(true);
    assert!(matches!(turns(&mut sim)[..], [Event::Sent { result: Ok(()), .. }]));
    got.extend(peer.read());
    assert_eq!(got, pattern(10_000, 1));
}
