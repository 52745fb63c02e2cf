//! Time up to which the driver has caught up with the kernel (T4), by an entry that completes after
//! everything pending.

use io_uring::opcode;
use io_uring::types::Timespec;

use super::ring::{Kind, Name, Ring};
use crate::Token;

/// An expired timeout. Static, because the kernel reads it later.
static NO_TIME: Timespec = Timespec::new();

/// An expired timeout entry. The kernel runs completions in the order in which they became ready: when this
/// one arrives, so has everything that was ready when it was submitted.
#[derive(Debug, Default)]
pub(super) struct Marker {
    caught_up_ms: u64,
    /// Time of its submission, while it is pending.
    sent_ms: Option<u64>,
}

impl Marker {
    /// Returns the time by which everything that had arrived was fetched.
    pub(super) fn caught_up_ms(&self) -> u64 {
        self.caught_up_ms
    }

    /// Records that the kernel had nothing more at `now_ms`.
    #[inline]
    pub(super) fn took_all(&mut self, now_ms: u64) {
        self.caught_up_ms = now_ms;
    }

    /// Submits the marker at `now_ms`, unless one is pending.
    pub(super) fn send(&mut self, ring: &mut Ring, now_ms: u64) {
        if self.sent_ms.is_none() {
            self.sent_ms = Some(now_ms);
            ring.push(
                opcode::Timeout::new(&raw const NO_TIME).build(),
                Name::new(Kind::Marker, Token::new(0, 0)),
            );
        }
    }

    /// Records its completion.
    pub(super) fn completed(&mut self) {
        self.caught_up_ms = self.caught_up_ms.max(self.sent_ms.take().unwrap_or(0));
    }
}
