//! The simulated driver itself: determinism, faults, and faithful TCP.

mod duties;
mod echo;
mod faults;
mod seeds;
mod tcp;
mod time;

use std::time::Duration;

use shearwater_io::sim::{Sim, SimOptions, SimPeer};
use shearwater_io::{Driver, Event, Output, Token};

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

fn output(bytes: &[u8]) -> Output {
    let mut output = Output::new();
    output.bytes_mut().extend_from_slice(bytes);
    output
}

/// Returns bytes that identify their position.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 256) as u8).collect()
}
