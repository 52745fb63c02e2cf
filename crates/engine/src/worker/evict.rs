//! Connections that are closed because unfinished requests hold too much memory.

use crate::connection::{Flag, Phase};
use crate::memory::eviction::{Class, Eviction};
use crate::observe::record::ExchangeEnd;
use crate::request::refusal::Refusal;
use crate::response::facts::Disposition;
use crate::response::fault::Fault;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker::ledger_events::Source;
use crate::worker::state::WorkerState;
use shearwater_io::{CloseKind, Driver, Token};

impl<S: Service> WorkerState<S> {
    /// Evicts the largest connection if the buffers are full. Returns false if none is larger than `token`,
    /// which must then be rejected.
    #[inline]
    pub(crate) fn make_memory_room(&mut self, token: Token) -> bool {
        !self.busy.is_full() || self.make_memory_room_for(token, 0)
    }

    /// Does the same for a connection that holds `more` bytes beside those that are stored. One eviction frees at least
    /// as much.
    #[cold]
    pub(crate) fn make_memory_room_for(&mut self, token: Token, more: usize) -> bool {
        if self.busy.reclaim() {
            return true;
        }
        let own = Class::of(self.busy.held_by(self.table.get(token).busy) + more);
        match self.busy.largest() {
            Some((largest, class)) if class > own && largest != token => self.evict(largest),
            _ => return false,
        }
        self.busy.reclaim()
    }

    /// Counts and reports a connection that was evicted or rejected because the buffers are full.
    #[cold]
    pub(crate) fn count_full_buffers(&mut self) {
        self.counters.hit_buffered_bytes.add(1);
        self.report(Fault::BuffersFull { bytes_max: self.limits.buffered_bytes_max });
    }

    /// Frees a connection's memory at once. Its response waits for the end of the turn, because the output
    /// buffer is in use for another connection.
    fn evict(&mut self, token: Token) {
        self.note_eviction(token);
        let is_head = self.is_head_request(token, Source::Connection);
        let has_begun = self.cancel(token);
        if self.table.get(token).phase() == Phase::Multiplexed {
            self.evict_streams(token);
        }
        let conn = self.table.get(token);
        let eviction = match conn.has(Flag::Sending) {
            _ if conn.phase() == Phase::Multiplexed => Eviction::Reset,
            _ if has_begun => Eviction::CutOff,
            // No request has begun that could be rejected.
            _ if conn.phase() == Phase::ProxyHeader => Eviction::Reset,
            true => Eviction::Reset,
            false => Eviction::Refused { is_head },
        };
        conn.evict();
        self.reconcile_busy(token);
        if !matches!(eviction, Eviction::Refused { .. }) {
            self.count_full_buffers();
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
            let is_open = self.state.table.find(token).is_some_and(|conn| conn.phase() == Phase::Evicted);
            match eviction {
                _ if !is_open => {}
                Eviction::Reset => self.shut_as(token, CloseKind::Reset, ExchangeEnd::Evicted),
                Eviction::CutOff => {
                    self.state.note_output(token, Some(Disposition::Truncated));
                    self.state.end_request(token, Disposition::Truncated);
                    self.flush(token);
                }
                Eviction::Refused { is_head } => {
                    self.state.refuse_as(token, Refusal::BuffersFull, Source::Aside { is_head });
                    self.flush(token);
                }
            }
        }
    }
}
