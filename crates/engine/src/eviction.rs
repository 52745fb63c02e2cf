//! Eviction: when the buffers are full, the largest connection makes room for a smaller one.

use shearwater_io::{CloseKind, Driver, Token};

use crate::connection::{Flag, Phase};
use crate::holders::Class;
use crate::refuse::Refusal;
use crate::respond::Disposition;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker_state::WorkerState;

/// The way in which an evicted connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// `503`, then a lingering close.
    Refused,
    /// A close in the middle of its response.
    CutOff,
    /// A reset: an earlier response is still being sent, so none can follow.
    Reset,
}

impl<S: Service> WorkerState<S> {
    /// Evicts the largest connection if the buffers are full. Returns false if none is larger than `token`,
    /// which must then be rejected.
    #[inline]
    pub(crate) fn make_room(&mut self, token: Token) -> bool {
        !self.blocks.is_full() || self.make_room_for(token, 0)
    }

    /// Does the same for a connection that holds `more` bytes beside its block. One eviction frees at least
    /// as much.
    #[cold]
    pub(crate) fn make_room_for(&mut self, token: Token, more: usize) -> bool {
        if self.blocks.reclaim() {
            return true;
        }
        let own = Class::of(self.blocks.held_by(self.table.get(token).block) + more);
        match self.blocks.largest() {
            Some((largest, class)) if class > own && largest != token => self.evict(largest),
            _ => return false,
        }
        self.blocks.reclaim()
    }

    /// Frees a connection's memory at once. Its response waits for the end of the turn, because the output
    /// buffer is in use for another connection.
    fn evict(&mut self, token: Token) {
        let has_begun = self.drop_call(token);
        let conn = self.table.get(token);
        let eviction = match conn.has(Flag::Sending) {
            _ if has_begun => Eviction::CutOff,
            true => Eviction::Reset,
            false => Eviction::Refused,
        };
        conn.evict();
        self.reconcile_block(token);
        if eviction != Eviction::Refused {
            self.counters.hit_buffered_bytes.add(1);
        }
        if eviction == Eviction::CutOff {
            self.set_disposition(token, Disposition::Close);
        }
        self.evicted.push((token, eviction));
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Closes the connections that were evicted in this turn.
    #[inline]
    pub(crate) fn end_evicted(&mut self) {
        if !self.state.evicted.is_empty() {
            self.close_evicted();
        }
    }

    fn close_evicted(&mut self) {
        // At most one for each event of the turn.
        for (token, eviction) in std::mem::take(&mut self.state.evicted) {
            let is_open = self.state.table.find(token).is_some_and(|conn| conn.phase() == Phase::Truncated);
            match eviction {
                _ if !is_open => {}
                Eviction::Reset => self.shut(token, CloseKind::Reset),
                Eviction::CutOff => self.flush(token),
                Eviction::Refused => {
                    self.state.refuse(token, Refusal::BuffersFull);
                    self.flush(token);
                }
            }
        }
    }
}
