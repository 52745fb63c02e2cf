//! Test harness: a driver and the peers of its connections.

use std::net::SocketAddr;
use std::time::Duration;

use shearwater_io::{Driver, ListenerId};

/// Options of a harness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Number of listeners.
    pub listeners: usize,
    /// Connections that the driver may hold.
    pub connections_max: usize,
    /// Size of the receive buffer.
    pub recv_buffer_bytes: usize,
    /// Capacity of the inbox; 0 for none.
    pub inbox: usize,
    /// True if another process shares the listeners, for [`Harness::fail_listener`].
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

/// Index of a peer, assigned by the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerId(pub usize);

/// State of a peer's receiving side after a [`Harness::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerState {
    /// Nothing more at present.
    Open,
    /// The driver's side has sent FIN.
    Eof,
    /// The driver's side has sent RST.
    Reset,
}

/// A driver and its peers. Nothing here blocks. The driver sees a peer's actions in its next `wait`, or on a
/// kernel perhaps a few later: tests take turns until the expected event.
pub(crate) trait Harness: Sized {
    /// The driver under test.
    type Driver: Driver;

    /// Returns the reason if this system has no such driver.
    fn missing() -> Option<String> {
        None
    }

    /// Creates a listening driver with `setup` and no connection.
    fn new(setup: Setup) -> Self;

    /// The driver.
    fn driver(&mut self) -> &mut Self::Driver;

    /// Starts connecting a new peer to the listener with this index.
    fn connect(&mut self, listener: usize) -> PeerId;

    /// Accepts a new peer's connection and hands it over, as from this listener. `None` if the inbox is full.
    fn hand_over(&mut self, listener: ListenerId) -> Option<PeerId>;

    /// Wakes the driver after a batch.
    fn wake_inbox(&mut self);

    /// Ends the sender of the inbox.
    fn end_inbox(&mut self);

    /// Returns the peer's own address, equal to that of [`Driver::peer`]. `None` if the connection failed.
    fn address(&self, peer: PeerId) -> Option<SocketAddr>;

    /// Returns whether a listener refuses connections, by a trial connect.
    fn refused(&mut self, listener: usize) -> bool;

    /// Shuts a listener down from outside; returns the errno of accepting after that.
    fn fail_listener(&mut self, listener: usize) -> i32;

    /// Writes as much of `bytes` as possible without blocking; returns the number.
    fn write(&mut self, peer: PeerId, bytes: &[u8]) -> usize;

    /// Reads at most `max` available bytes and appends them to `into`.
    fn read(&mut self, peer: PeerId, max: usize, into: &mut Vec<u8>) -> PeerState;

    /// Ends the peer's sending side (FIN).
    fn shutdown(&mut self, peer: PeerId);

    /// Resets the connection (RST) and drops the peer.
    fn reset(&mut self, peer: PeerId);

    /// Requests a small receive window. Used right after `connect`.
    fn narrow(&mut self, peer: PeerId);

    /// Returns whether [`Driver::detach`] is supported.
    fn detaches(&self) -> bool;

    /// Returns true if the driver distinguishes writes to a file from other changes of its times (S10).
    fn tells_writes() -> bool {
        cfg!(target_os = "linux")
    }

    /// Returns the time after which a test has failed, by the driver's own clock.
    fn patience(&self) -> Duration;
}

/// Returns whether the driver is missing; logs the reason, and its tests are skipped.
pub(crate) fn is_missing<H: Harness>() -> bool {
    let missing = H::missing();
    if let Some(why) = &missing {
        println!("skipped: {why}");
    }
    missing.is_some()
}
