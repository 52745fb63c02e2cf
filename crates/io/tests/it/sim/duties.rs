//! A worker that violates its side of the contract panics with the clause.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shearwater_io::sim::{Sim, SimOptions};
use shearwater_io::{CloseKind, Driver, Event, Token};

use super::{accepted, output, turn, turns};

/// Returns the message of `act`'s panic.
fn complaint(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("a breach of the contract");
    panic.downcast_ref::<String>().cloned().expect("formatted")
}

#[test]
fn two_sends_in_flight_break_s2() {
    let (mut sim, _peer, token) = accepted(SimOptions::default());
    sim.send(token, output(b"one"));
    assert!(complaint(|| sim.send(token, output(b"two"))).contains("clause S2"));
}

#[test]
fn shutdown_with_a_send_in_flight_breaks_c1() {
    let (mut sim, _peer, token) = accepted(SimOptions::default());
    sim.send(token, output(b"one"));
    assert!(complaint(|| sim.shutdown_write(token)).contains("clause C1"));
}

#[test]
fn verbs_on_dead_tokens_break_k2() {
    type Verb = fn(&mut Sim, Token);
    const VERBS: [Verb; 5] = [
        |sim, token| sim.recv_pause(token),
        |sim, token| sim.recv_resume(token),
        |sim, token| sim.send(token, output(b"late")),
        |sim, token| sim.shutdown_write(token),
        |sim, token| sim.close(token, CloseKind::Normal),
    ];
    for verb in VERBS {
        let (mut sim, _peer, token) = accepted(SimOptions::default());
        sim.close(token, CloseKind::Normal);
        for dead in [token, Token::new(7, 0)] {
            if cfg!(debug_assertions) {
                assert!(complaint(|| verb(&mut sim, dead)).contains("clause K2"));
            } else {
                verb(&mut sim, dead);
            }
        }
        assert!(matches!(turns(&mut sim)[..], [Event::Closed { .. }]), "it has no effect");
    }
}

#[test]
fn a_connection_left_open_is_not_quiet() {
    let (mut sim, _peer, token) = accepted(SimOptions::default());
    assert!(complaint(|| sim.net().assert_quiet()).contains("#0.0"));
    sim.close(token, CloseKind::Normal);
    assert!(complaint(|| sim.net().assert_quiet()).contains("clause C2"), "Closed is still outstanding");
    turns(&mut sim);
    sim.net().assert_quiet();
}

#[test]
fn lent_bytes_are_gone_after_the_next_call() {
    let (mut sim, peer, _) = accepted(SimOptions::default());
    peer.write(b"lent");
    sim.wait(None).expect("never fails");
    assert!(matches!(sim.next(), Some(Event::Received { .. })));
    assert_eq!(sim.lent(), b"lent");
    assert!(sim.next().is_none());
    assert_eq!(sim.lent(), b"");
    peer.write(b"again");
    assert!(matches!(turn(&mut sim)[..], [Event::Received { .. }]));
    assert_eq!(sim.lent(), b"", "R2: until the next call, even if that returns None");
}
