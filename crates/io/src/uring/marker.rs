//! How far the driver has caught up with the kernel (T4), found out by an entry that comes back behind everything that waits.

use io_uring::opcode;
use io_uring::types::Timespec;

use super::ring::{Kind, Name, Ring};
use crate::Token;

/// Lives until the kernel has read it.
static NO_TIME: Timespec = Timespec::new();

/// A timeout that is over at once. The kernel goes on with its entries in the order in which they could: once this one is done, so is all that
/// could go on when it was sent.
#[derive(Debug, Default)]
pub(super) struct Marker {
    caught_up_ms: u64,
    /// When it was sent, if it isn't back.
    sent_ms: Option<u64>,
}

impl Marker {
    /// Everything that had arrived by then was fetched.
    pub(super) fn caught_up_ms(&self) -> u64 {
        self.caught_up_ms
    }

    /// Notes that the kernel had nothing more at `now_ms`.
    #[inline]
    pub(super) fn took_all(&mut self, now_ms: u64) {
        self.caught_up_ms = now_ms;
    }

    /// Sends the marker behind what waits at `now_ms`, unless it is under way.
    pub(super) fn send(&mut self, ring: &mut Ring, now_ms: u64) {
        if self.sent_ms.is_none() {
            self.sent_ms = Some(now_ms);
            ring.push(
                opcode::Timeout::new(&raw const NO_TIME).build(),
                Name::new(Kind::Marker, Token::new(0, 0)),
            );
        }
    }

    /// Notes that it is back.
    pub(super) fn came_back(&mut self) {
        self.caught_up_ms = self.caught_up_ms.max(self.sent_ms.take().unwrap_or(0));
    }
}
