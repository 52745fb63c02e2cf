//! Connections whose client is gone: each turn lets go of a bounded number of them, behind what the others have asked. When thousands leave
//! at once, those who stay hardly notice.

use std::collections::VecDeque;

use shearwater_io::{CloseKind, Driver, Token};

use crate::app::App;
use crate::conn::Phase;
use crate::limits::{ENDS_KEPT_MAX, ENDS_PER_TURN_MAX};
use crate::worker::Worker;

/// What is to be done about an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The client sends no more: what is unfinished is refused.
    Eof,
    /// The client has ended its side, and input from before is still to be received.
    Fin,
    /// The connection is broken: nobody is there to be told.
    Broken,
}

/// Ends that wait, at most two per connection: a FIN, and what comes after it.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    waiting: VecDeque<(Token, End)>,
}

impl Ends {
    /// Puts one behind the others.
    pub(crate) fn push(&mut self, token: Token, end: End) {
        self.waiting.push_back((token, end));
    }

    /// Whether one waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn pop(&mut self) -> Option<(Token, End)> {
        let next = self.waiting.pop_front();
        if self.waiting.is_empty() && self.waiting.capacity() > ENDS_KEPT_MAX {
            // The memory of a busier moment.
            self.waiting.shrink_to(ENDS_KEPT_MAX);
        }
        next
    }
}

impl<D: Driver, A: App> Worker<D, A> {
    /// Acts on a turn's share of the ends.
    #[inline]
    pub(crate) fn end_some(&mut self) {
        if !self.ends.is_empty() {
            self.end_share(ENDS_PER_TURN_MAX + self.arrived);
        }
    }

    /// As many go as have come, beyond the share: who connects and leaves at once doesn't pile up.
    fn end_share(&mut self, share: usize) {
        for _ in 0..share {
            let Some((token, end)) = self.ends.pop() else { return };
            let Some(conn) = self.service.table.find(token) else { continue };
            if conn.phase == Phase::HandedOver {
                continue;
            }
            match end {
                End::Broken => self.broken(token),
                End::Eof if conn.phase == Phase::Linger => self.shut(token, CloseKind::Normal),
                End::Eof | End::Fin if self.service.ends_with_client(token) => self.broken(token),
                End::Eof if self.service.is_heard(token) => self.ended(token),
                // What is on its way, or waits for its turn, comes first.
                End::Eof | End::Fin => self.service.bound_half_closed(token),
            }
        }
    }
}
