//! The simulated driver itself: determinism, faults, time, faithful TCP, and the worker's duties.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use shearwater_io::sim::{Fault, Sim, SimOptions, SimPeer};
use shearwater_io::{CloseKind, Driver, Event, Token};

use crate::contract::world::plain;

mod echo;
mod faults;
mod tcp;

/// Returns a kernel without faults and one accepted connection.
fn accepted(options: SimOptions) -> (Sim, SimPeer, Token) {
    let mut sim = Sim::new(options);
    let peer = sim.net().connect();
    let events = turn(&mut sim);
    let [Event::Accepted { token, listener: 0 }] = events[..] else { panic!("one Accepted, not {events:?}") };
    (sim, peer, token)
}

/// Returns the events of one turn that doesn't sleep.
fn turn(sim: &mut Sim) -> Vec<Event> {
    sim.wait(Some(Duration::ZERO)).expect("the simulation never fails");
    std::iter::from_fn(|| sim.next()).collect()
}

/// Takes turns without sleep until nothing is ready; returns all their events.
fn turns(sim: &mut Sim) -> Vec<Event> {
    let mut events = Vec::new();
    while sim.net().is_ready() {
        events.extend(turn(sim));
    }
    events
}

/// Returns the message of `act`'s panic.
fn complaint(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("a breach of the contract");
    panic.downcast_ref::<String>().cloned().expect("formatted")
}

#[test]
fn names_the_broken_clause() {
    let (mut sim, _peer, token) = accepted(SimOptions::default());
    sim.send(token, plain(b"one"));
    assert!(complaint(|| sim.send(token, plain(b"two"))).contains("clause S2"));
    assert!(complaint(|| sim.shutdown_write(token)).contains("clause C1"));
    if cfg!(debug_assertions) {
        assert!(complaint(|| sim.recv_pause(Token::new(7, 0))).contains("clause K2"));
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

#[test]
fn the_test_drives_the_clock() {
    let mut sim = Sim::new(SimOptions::default());
    let net = sim.net();
    net.advance(1500);
    assert_eq!((net.now_ms(), sim.now_ms()), (1500, 0), "T3: one reading a turn");
    sim.wait(Some(Duration::ZERO)).expect("never fails");
    assert_eq!((sim.now_ms(), sim.unix_seconds()), (1500, 784_111_778));
}

#[test]
fn waiting_for_nothing_takes_the_whole_timeout() {
    let mut sim = Sim::new(SimOptions::default());
    sim.wait(Some(Duration::from_micros(2500))).expect("never fails");
    assert_eq!(sim.now_ms(), 3, "rounded up, so that a timer that is due in it has expired");
    sim.wait(Some(Duration::from_nanos(1))).expect("never fails");
    assert_eq!(sim.now_ms(), 4);
    sim.wait(None).expect("never fails");
    assert_eq!(sim.now_ms(), 4);
    assert!(sim.next().is_none());
}

#[test]
fn waiting_for_something_takes_no_time() {
    let (mut sim, peer, _) = accepted(SimOptions::default());
    peer.write(b"now");
    sim.wait(Some(Duration::from_secs(9))).expect("never fails");
    assert_eq!(sim.now_ms(), 0);
    assert!(matches!(sim.next(), Some(Event::Received { .. })));
}

#[test]
fn a_delay_ends_at_its_time() {
    let (mut sim, peer, _) =
        accepted(SimOptions { fault_at: Some((1, Fault::Delay)), ..SimOptions::default() });
    peer.write(b"later");
    assert_eq!(turn(&mut sim).len(), 0);
    let net = sim.net();
    let due_ms = net.next_due_ms().expect("held up");
    assert!((1..=50).contains(&due_ms) && !net.is_ready());
    sim.wait(Some(Duration::from_secs(9))).expect("never fails");
    assert_eq!(sim.now_ms(), due_ms);
    assert!(matches!(sim.next(), Some(Event::Received { .. })));
}

/// T4: everything that had arrived by `caught_up_ms` is delivered, and that time follows the clock.
#[test]
fn catches_up_under_constant_load() {
    const PEERS: usize = 50;
    let mut sim = Sim::new(SimOptions { events_per_wait_max: 7, ..SimOptions::default() });
    let net = sim.net();
    let peers = net.connect_many(PEERS);
    let tokens: Vec<_> = turns(&mut sim)
        .iter()
        .filter_map(|event| if let Event::Accepted { token, .. } = event { Some(*token) } else { None })
        .collect();
    assert_eq!(tokens.len(), PEERS);
    // Time of each peer's first undelivered byte.
    let mut sent_ms = [None; PEERS];
    let mut behind = 0;
    for round in 0..500 {
        net.advance(1);
        for (number, peer) in peers.iter().enumerate().filter(|(number, _)| (round + number) % 3 == 0) {
            peer.write(b"x");
            sent_ms[number].get_or_insert(net.now_ms());
        }
        for event in turn(&mut sim) {
            let Event::Received { token } = event else { continue };
            let number = tokens.iter().position(|other| *other == token).expect("it was accepted");
            sent_ms[number] = None;
        }
        let caught_up_ms = sim.caught_up_ms();
        let oldest_ms = sent_ms.iter().flatten().min();
        assert!(oldest_ms.is_none_or(|oldest_ms| *oldest_ms > caught_up_ms), "{caught_up_ms}: {oldest_ms:?}");
        assert!(sim.now_ms() - caught_up_ms <= 3 * PEERS as u64, "{caught_up_ms} at {}", sim.now_ms());
        behind += usize::from(caught_up_ms < sim.now_ms());
    }
    assert!(behind > 400, "late in {behind} of 500 turns");
}
