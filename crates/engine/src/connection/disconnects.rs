//! Pending disconnects of clients.

use std::collections::VecDeque;

use shearwater_io::Token;

use crate::limits::SPARE_DISCONNECTS_MAX;

/// A kind of disconnect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disconnect {
    /// The client has sent a FIN and all input has been received: an unfinished request is rejected.
    Eof,
    /// The client has sent a FIN, and earlier input is still to be received.
    Fin,
    /// The connection is broken: no response can be sent.
    Broken,
}

/// Pending disconnects, at most two per connection: a FIN, and the end after it.
#[derive(Debug, Default)]
pub(crate) struct Disconnects {
    waiting: VecDeque<(Token, Disconnect)>,
}

impl Disconnects {
    /// Queues a disconnect.
    pub(crate) fn push(&mut self, token: Token, end: Disconnect) {
        self.waiting.push_back((token, end));
    }

    /// Returns true if none is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<(Token, Disconnect)> {
        let next = self.waiting.pop_front();
        if self.waiting.is_empty() && self.waiting.capacity() > SPARE_DISCONNECTS_MAX {
            // Frees the memory of a burst.
            self.waiting.shrink_to(SPARE_DISCONNECTS_MAX);
        }
        next
    }
}
