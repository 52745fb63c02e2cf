//! Counts of a driver's secured connections, for metrics.

use super::{Failure, Version};

/// Counts since a driver's start, and what its secured connections hold.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Completed handshakes by version.
    handshakes: [u64; 2],
    /// Completed handshakes that continued an earlier session.
    pub resumed: u64,
    /// Failed sessions by reason, in the order of [`Failure::ALL`].
    failures: [u64; Failure::ALL.len()],
    /// Costly steps that had to wait for a later turn.
    pub costly_queued: u64,
    /// Connections whose costly step waits now.
    pub costly_waiting: usize,
    /// Connections that gave up their unopened bytes because memory for them ran out.
    pub memory_resets: u64,
    /// Memory of unopened bytes, over all connections.
    pub partial_bytes: usize,
    /// Secured connections, those within their handshake included.
    pub connections: usize,
}

impl Counters {
    /// Returns the number of completed handshakes of a version.
    #[must_use]
    pub const fn handshakes(&self, version: Version) -> u64 {
        self.handshakes[version as usize]
    }

    /// Returns the number of sessions that failed for a reason.
    #[must_use]
    pub const fn failures(&self, failure: Failure) -> u64 {
        self.failures[failure as usize]
    }

    pub(super) fn note_handshake(&mut self, version: Version, is_resumed: bool) {
        self.handshakes[version as usize] += 1;
        self.resumed += u64::from(is_resumed);
    }

    pub(super) fn note_failure(&mut self, failure: Failure) {
        self.failures[failure as usize] += 1;
    }
}
