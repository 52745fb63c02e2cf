//! What the suite needs beside a driver: the other end of the connections.

use std::net::SocketAddr;
use std::time::Duration;

use shearwater_io::{Driver, ListenerId};

/// What a test wants to be built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Number of listeners.
    pub listeners: usize,
    /// Connections that the driver may hold.
    pub connections_max: usize,
    /// Size of the receive buffer.
    pub recv_buffer_bytes: usize,
    /// Connections that the inbox holds; 0: the driver has none.
    pub inbox: usize,
    /// Somebody else has the listeners too, for [`Harness::fail_listener`].
    pub shares_listeners: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            listeners: 1,
            connections_max: 4096,
            recv_buffer_bytes: shearwater_io::limits::RECV_BUFFER_BYTES,
            inbox: 0,
            shares_listeners: false,
        }
    }
}

/// Names the other end of a connection; an index that the harness gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerId(pub usize);

/// How things stand with a peer's receiving side after a [`Harness::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerState {
    /// Nothing more at the moment.
    Open,
    /// The driver's side has sent FIN.
    Eof,
    /// The driver's side has sent RST.
    Reset,
}

/// A driver together with the other ends. Nothing here blocks; what a peer does is seen by the driver in its next
/// `wait` at the latest, on a kernel perhaps a few later: tests take turns until what they wait for has happened.
pub(crate) trait Harness: Sized {
    /// The driver under test.
    type Driver: Driver;

    /// Why there is no such driver on this system; `None` where there is.
    fn missing() -> Option<String> {
        None
    }

    /// A driver with `setup`, listening, with no connection.
    fn new(setup: Setup) -> Self;

    /// The driver.
    fn driver(&mut self) -> &mut Self::Driver;

    /// A new peer that has begun to connect to the listener with this index.
    fn connect(&mut self, listener: usize) -> PeerId;

    /// A new peer whose connection is accepted here and handed over, as from this listener. `None` where the inbox is full.
    fn hand_over(&mut self, listener: ListenerId) -> Option<PeerId>;

    /// Wakes the driver: a batch has been handed over.
    fn wake_inbox(&mut self);

    /// Ends the sender of the inbox.
    fn end_inbox(&mut self);

    /// The peer's own address, as [`Driver::peer`] must give it. `None` where the connection never came about.
    fn address(&self, peer: PeerId) -> Option<SocketAddr>;

    /// Whether a listener of this index still takes connections: a connect is tried and dropped again.
    fn refused(&mut self, listener: usize) -> bool;

    /// Shuts a listener down, as whoever has it too may do; what accepting says from then on.
    fn fail_listener(&mut self, listener: usize) -> i32;

    /// The peer writes as much of `bytes` as goes without blocking; how much that was.
    fn write(&mut self, peer: PeerId, bytes: &[u8]) -> usize;

    /// The peer reads at most `max` bytes of what there is into the end of `into`.
    fn read(&mut self, peer: PeerId, max: usize, into: &mut Vec<u8>) -> PeerState;

    /// The peer ends its sending side (FIN).
    fn shutdown(&mut self, peer: PeerId);

    /// The peer resets the connection (RST) and is gone.
    fn reset(&mut self, peer: PeerId);

    /// The peer asks for a small window: it takes in little that it has not read. Used right after `connect`.
    fn narrow(&mut self, peer: PeerId);

    /// Whether [`Driver::detach`] is supported.
    fn detaches(&self) -> bool;

    /// Returns true if the driver tells writes to a file from other changes of its times (S10).
    fn tells_writes() -> bool {
        cfg!(target_os = "linux")
    }

    /// How long a test may go on taking turns before it has failed, by the driver's own clock.
    fn patience(&self) -> Duration;
}

/// Whether the driver is missing here: its tests are skipped then, and say why.
pub(crate) fn is_missing<H: Harness>() -> bool {
    let missing = H::missing();
    if let Some(why) = &missing {
        println!("skipped: {why}");
    }
    missing.is_some()
}
