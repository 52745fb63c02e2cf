//! A worker of secured connections on the simulation that only writes down what happens.

use std::collections::HashMap;
use std::time::Duration;

use shearwater_io::secure::{Counters, Failure, Secure};
use shearwater_io::sim::{Sim, SimNet, SimOptions, SimPeer};
use shearwater_io::{Driver, Event, ReadEnd, SendError, Token};

use super::fake::{Fake, FakeClient};

/// An event of a connection, without its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Secured,
    Failed(Failure),
    Received(usize),
    Receiving,
    Fin,
    Eof,
    Broken,
    Unsent,
    Sent,
    NotSent,
    NotDetached,
    Closed,
}

/// One connection's events.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) seen: Vec<Seen>,
    pub(super) content: Vec<u8>,
}

pub(super) struct Edge {
    pub(super) driver: Secure<Sim, Fake>,
    pub(super) net: SimNet,
    pub(super) logs: HashMap<Token, Log>,
    /// The connection accepted last.
    pub(super) last: Option<Token>,
    /// True if connections are secured as they come.
    pub(super) secures: bool,
}

impl Edge {
    pub(super) fn new(options: SimOptions) -> Self {
        let sim = Sim::new(options);
        let net = sim.net();
        let driver = Secure::new(sim, Fake::default());
        Self { driver, net, logs: HashMap::new(), last: None, secures: true }
    }

    /// Takes one turn. Returns the number of its events.
    pub(super) fn turn(&mut self) -> usize {
        self.driver.wait(Some(Duration::ZERO)).expect("the simulation never fails");
        let mut events = 0;
        while let Some(event) = self.driver.next() {
            self.note(event);
            events += 1;
        }
        events
    }

    /// Takes turns until many have had no events: a round of a long send has none.
    pub(super) fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..100_000 {
            quiet = if self.turn() == 0 { quiet + 1 } else { 0 };
            if quiet == 40 {
                return;
            }
        }
        panic!("it never rests");
    }

    fn note(&mut self, event: Event) {
        let (token, seen) = match event {
            Event::Accepted { token, listener } => {
                self.logs.insert(token, Log::default());
                self.last = Some(token);
                if self.secures {
                    self.driver.secure(token, listener, &[]);
                }
                return;
            }
            Event::Secured { token, result } => (token, result.map_or_else(Seen::Failed, |()| Seen::Secured)),
            Event::Received { token } => {
                let lent = self.driver.lent().to_vec();
                self.logs.get_mut(&token).expect("A1").content.extend_from_slice(&lent);
                (token, Seen::Received(lent.len()))
            }
            Event::Receiving { token } => (token, Seen::Receiving),
            Event::FinReceived { token } => (token, Seen::Fin),
            Event::ReadClosed { token, end: ReadEnd::Eof } => (token, Seen::Eof),
            Event::ReadClosed { token, .. } => (token, Seen::Broken),
            Event::Unsent { token } => (token, Seen::Unsent),
            Event::Sent { token, result, .. } => match result {
                Ok(()) => (token, Seen::Sent),
                Err(SendError::Broken(_) | SendError::Cancelled) => (token, Seen::NotSent),
                Err(error) => panic!("{error}"),
            },
            Event::Detached { token, result } => {
                assert_eq!(result.expect_err("X9").kind(), std::io::ErrorKind::Unsupported);
                (token, Seen::NotDetached)
            }
            Event::Closed { token } => (token, Seen::Closed),
            Event::Woken => return,
            event => panic!("{event:?}"),
        };
        self.logs.get_mut(&token).expect("A1").seen.push(seen);
    }

    /// Connects a peer, without a handshake.
    pub(super) fn connect(&mut self) -> (SimPeer, Token) {
        let peer = self.net.connect();
        self.last = None;
        while self.last.is_none() {
            self.turn();
        }
        (peer, self.last.expect("from above"))
    }

    /// Connects a peer, and completes the handshake.
    pub(super) fn secured(&mut self) -> (SimPeer, FakeClient, Token) {
        let (peer, token) = self.connect();
        let mut client = FakeClient::default();
        peer.write(&client.handshake());
        self.settle();
        assert_eq!(self.logs[&token].seen, [Seen::Secured]);
        client.receive(&peer.read());
        self.forget(token);
        (peer, client, token)
    }

    /// Empties a connection's log.
    pub(super) fn forget(&mut self, token: Token) {
        *self.logs.get_mut(&token).expect("it was accepted") = Log::default();
    }

    pub(super) fn seen(&self, token: Token) -> &[Seen] {
        &self.logs[&token].seen
    }

    pub(super) fn content(&self, token: Token) -> &[u8] {
        &self.logs[&token].content
    }

    pub(super) fn counters(&self) -> &Counters {
        self.driver.secure_counters().expect("it secures connections")
    }
}
