//! A small echo worker on rough and faulty kernels: determinism, and equal results.

use std::collections::HashMap;
use std::time::Duration;

use shearwater_io::sim::{Sim, SimOptions, SimPeer};
use shearwater_io::{CloseKind, Driver, Event, Output, ReadEnd, Token};

use crate::contract::world::pattern;

/// Bytes held for a connection before its receiving is paused.
const HELD_BYTES_MAX: usize = 8 * 1024;

/// Maximum turns of a conversation.
const TURNS_MAX: usize = 100_000;

#[derive(Default)]
struct EchoClient {
    held: Vec<u8>,
    sending: bool,
    paused: bool,
    ended: bool,
}

/// Echoes input; closes when the peer has ended and all was sent, or when the connection is broken.
pub(super) struct Echo {
    pub(super) sim: Sim,
    clients: HashMap<Token, EchoClient>,
}

impl Echo {
    pub(super) fn new(options: SimOptions) -> Self {
        Self { sim: Sim::new(options), clients: HashMap::new() }
    }

    /// Runs until nothing can happen any more, at any driven time.
    pub(super) fn run(&mut self) {
        for _ in 0..TURNS_MAX {
            if !self.sim.net().is_ready() && self.sim.net().next_due_ms().is_none() {
                return;
            }
            self.turn();
        }
        panic!("the conversation doesn't end");
    }

    fn turn(&mut self) {
        self.sim.wait(Some(Duration::from_secs(1))).expect("the simulation never fails");
        while let Some(event) = self.sim.next() {
            self.on(event);
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Accepted { token, .. } => {
                assert!(self.clients.insert(token, EchoClient::default()).is_none(), "A1: reported once");
            }
            Event::Received { token } => {
                let client = self.clients.get_mut(&token).expect("A1: reported before");
                assert!(!client.ended, "R4: nothing after the end");
                client.held.extend_from_slice(self.sim.lent());
                self.go_on(token);
            }
            Event::ReadClosed { token, end: ReadEnd::Broken(_) } => self.close(token),
            Event::ReadClosed { token, end: ReadEnd::Eof } => {
                self.clients.get_mut(&token).expect("A1: reported before").ended = true;
                self.go_on(token);
            }
            Event::Sent { token, result, .. } => {
                let Some(client) = self.clients.get_mut(&token) else { return };
                client.sending = false;
                if result.is_ok() { self.go_on(token) } else { self.close(token) }
            }
            Event::AcceptFailed { .. } => self.sim.accept_resume(),
            Event::ListenerFailed { .. }
            | Event::Unsent { .. }
            | Event::Detached { .. }
            | Event::FinReceived { .. }
            | Event::Closed { .. }
            | Event::AcceptStopped
            | Event::ListenerRemoved { .. }
            | Event::Secured { .. }
            | Event::Receiving { .. }
            | Event::Woken => {}
        }
    }

    fn go_on(&mut self, token: Token) {
        let client = self.clients.get_mut(&token).expect("called for open ones");
        if !client.sending && !client.held.is_empty() {
            let mut output = Output::new();
            output.bytes_mut().append(&mut client.held);
            client.sending = true;
            self.sim.send(token, output);
        } else if !client.sending && client.ended {
            return self.close(token);
        }
        let full = client.held.len() > HELD_BYTES_MAX;
        if full != client.paused {
            client.paused = full;
            if full { self.sim.recv_pause(token) } else { self.sim.recv_resume(token) }
        }
    }

    fn close(&mut self, token: Token) {
        if self.clients.remove(&token).is_some() {
            self.sim.close(token, CloseKind::Normal);
        }
    }
}

/// The result of a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) echoed: Vec<Vec<u8>>,
    pub(super) operations: u64,
    pub(super) fingerprint: u64,
}

/// Lets three peers send three texts each, alternating with the worker, and end.
pub(super) fn converse(options: SimOptions) -> Conversation {
    let mut echo = Echo::new(options);
    let net = echo.sim.net();
    let peers: Vec<SimPeer> = net.connect_many(3);
    for round in 0..3 {
        for peer in &peers {
            peer.write(&text(round));
        }
        echo.turn();
    }
    for peer in &peers {
        peer.finish();
    }
    echo.run();
    net.assert_quiet();
    Conversation {
        echoed: peers.iter().map(SimPeer::read).collect(),
        operations: net.operations(),
        fingerprint: net.fingerprint(),
    }
}

fn text(round: usize) -> Vec<u8> {
    pattern(1000 * (round + 1), 1)
}

/// Returns the text sent by each peer of [`converse`].
pub(super) fn said() -> Vec<u8> {
    (0..3).flat_map(text).collect()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        let options = || SimOptions { resets: 0.01, accept_errors: 0.1, ..SimOptions::rough(seed) };
        assert_eq!(converse(options()), converse(options()), "seed {seed}");
    }
}

#[test]
fn another_seed_gives_another_run() {
    let mut fingerprints: Vec<u64> =
        (0..50).map(|seed| converse(SimOptions::rough(seed)).fingerprint).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 50);
}

#[test]
fn rough_kernels_change_no_conversation() {
    for seed in 0..500 {
        for echoed in converse(SimOptions::rough(seed)).echoed {
            assert_eq!(echoed, said(), "seed {seed}");
        }
    }
}

#[test]
fn certain_faults_do_not_stop_a_conversation() {
    let options = SimOptions {
        short_reads: 1.0,
        short_writes: 1.0,
        eagain: 1.0,
        delays: 1.0,
        reorder_within_turn: 1.0,
        late_completions: 1.0,
        data_after_pause: 1.0,
        fin_with_data: 0.0,
        ..SimOptions::default()
    };
    for echoed in converse(options).echoed {
        assert_eq!(echoed, said());
    }
}

#[test]
fn broken_connections_leave_nothing_behind() {
    let mut complete = 0;
    for seed in 0..300 {
        let options = SimOptions { resets: 0.02, accept_errors: 0.2, ..SimOptions::rough(seed) };
        for echoed in converse(options).echoed {
            assert!(said().starts_with(&echoed), "seed {seed}: echoed bytes that were not sent");
            complete += usize::from(echoed == said());
        }
    }
    assert!((1..900).contains(&complete), "some conversations break, some don't: {complete} of 900 complete");
}
