//! Options of the simulated kernel, and the seeded generator of all its choices.

use std::net::{Ipv4Addr, SocketAddr};

use crate::limits::RECV_BUFFER_BYTES;

/// Options of a [`Sim`](super::Sim).
///
/// The fields with plural names are probabilities from 0.0 (never) to 1.0, drawn for each operation. `Eagain`
/// and `Delay` never hit one connection twice in a row, so that a conversation continues under any
/// probabilities.
///
/// The default is a kernel without faults, except that every reset destroys unread bytes.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Seed of all choices.
    pub seed: u64,
    /// Number of listeners.
    pub listeners: u16,
    /// Maximum number of connections; further ones wait in the queue, after an `AcceptFailed` (clause A2).
    pub connections_max: usize,
    /// Maximum bytes that one `Received` lends.
    pub recv_buffer_bytes: usize,
    /// Maximum number of connections and listeners that one `wait` takes; later ones take the others in turn
    /// (T4).
    pub events_per_wait_max: usize,
    /// Bytes that the connection to a peer holds before sends must wait: both sides' buffers together.
    /// [`SimPeer::set_window`](super::SimPeer::set_window) changes it for one connection.
    pub send_buffer_bytes: usize,
    /// Start of the driven wall clock, in seconds since 1970.
    pub unix_start_seconds: u64,

    /// A receive lends fewer bytes than available.
    pub short_reads: f64,
    /// A send attempt takes fewer bytes than there is room for.
    pub short_writes: f64,
    /// An operation isn't ready, and is retried in a later turn.
    pub eagain: f64,
    /// An operation's connection makes no progress for 1 to `delay_ms_max` milliseconds.
    pub delays: f64,
    /// Longest delay in milliseconds.
    pub delay_ms_max: u64,
    /// A turn takes another event than the oldest. The order within a connection is kept.
    pub reorder_within_turn: f64,
    /// `Sent` and `Closed` come in a later turn than their verb.
    pub late_completions: f64,
    /// `send_at_once` returns that all is sent, if so; otherwise a `Sent` reports it.
    pub sends_at_once: f64,
    /// `send_at_once`, if nobody awaits the end, returns that all is sent although it isn't: an `Unsent` follows.
    pub unsent: f64,
    /// Bytes, or the end, come although receiving is paused (within the bound of clause R3).
    pub data_after_pause: f64,
    /// Connections come although accepting is paused (within the bound of clause A3).
    pub accepts_after_pause: f64,
    /// A FIN is reported in the turn of the last bytes instead of a later one.
    pub fin_with_data: f64,
    /// Accepting fails for lack of a descriptor or memory. At 1.0 it always does.
    pub accept_errors: f64,
    /// The peer resets the connection during an operation.
    pub resets: f64,
    /// A reset destroys what its receiver had not yet read.
    pub reset_losses: f64,

    /// A fault at the operation with this index, besides the probabilities.
    pub fault_at: Option<(u64, Fault)>,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            listeners: 1,
            connections_max: usize::MAX,
            recv_buffer_bytes: RECV_BUFFER_BYTES,
            events_per_wait_max: usize::MAX,
            send_buffer_bytes: 256 * 1024,
            // The example date of RFC 9110, section 5.6.7: Sun, 06 Nov 1994 08:49:37 GMT.
            unix_start_seconds: 784_111_777,
            short_reads: 0.0,
            short_writes: 0.0,
            eagain: 0.0,
            delays: 0.0,
            delay_ms_max: 50,
            reorder_within_turn: 0.0,
            late_completions: 0.0,
            sends_at_once: 0.5,
            unsent: 0.0,
            data_after_pause: 0.0,
            accepts_after_pause: 0.0,
            fin_with_data: 1.0,
            accept_errors: 0.0,
            resets: 0.0,
            reset_losses: 1.0,
            fault_at: None,
        }
    }
}

impl SimOptions {
    /// Returns a rough kernel: everything that clauses T1 to W1 permit happens often. No connection breaks
    /// and no accept fails, so every conversation must end as without faults.
    #[must_use]
    pub fn rough(seed: u64) -> Self {
        Self {
            seed,
            short_reads: 0.4,
            short_writes: 0.4,
            eagain: 0.2,
            delays: 0.05,
            reorder_within_turn: 0.5,
            late_completions: 0.3,
            unsent: 0.5,
            data_after_pause: 0.5,
            accepts_after_pause: 0.5,
            fin_with_data: 0.5,
            reset_losses: 0.5,
            ..Self::default()
        }
    }
}

/// Returns the address of peer `number`: distinct for the first 2^24 × 60,000, and never a real network's.
pub(super) fn peer_address(number: u64) -> SocketAddr {
    let host = ((number / 60_000) % (1 << 24)) as u32 + 1;
    SocketAddr::from((Ipv4Addr::from(0x7F00_0000 | (host & 0x00FF_FFFF)), 1024 + (number % 60_000) as u16))
}

/// A fault of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The peer resets the connection just before the operation.
    Rst,
    /// The peer ends its sending side just before the operation.
    Fin,
    /// Moves fewer bytes than possible. No effect on operations that move none.
    Short,
    /// Not ready: retried in a later turn. No effect on a verb that can't wait.
    Eagain,
    /// The connection makes no progress for some driven time. No effect where `Eagain` has none.
    Delay,
}

impl Fault {
    /// All faults, for tests that try each.
    pub const ALL: [Self; 5] = [Self::Rst, Self::Fin, Self::Short, Self::Eagain, Self::Delay];
}

/// A deterministic sequence of numbers.
#[derive(Debug)]
pub(super) struct Rng {
    state: u64,
}

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `end - 1`; 0 if `end` is 0. (The bias of `%` is far below what a test could
    /// see.)
    pub(super) fn below(&mut self, end: usize) -> usize {
        let number = self.next();
        if end == 0 { 0 } else { (number % end as u64) as usize }
    }

    /// Returns true with the given probability. Certainties draw no number.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        probability >= 1.0 || ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Returns a shorter length, 1 to `len - 1`, or `len` if it can't be shortened.
    pub(super) fn shorten(&mut self, len: usize) -> usize {
        if len < 2 { len } else { 1 + self.below(len - 1) }
    }
}
