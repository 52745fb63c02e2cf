//! Making room: while a connection waits to be accepted and there is no room, closes the longest idle ones.

use shearwater_io::limits::ACCEPTS_PER_TURN_MAX;
use shearwater_io::{CloseKind, Driver, Token};

use crate::connection::{Flag, Phase};
use crate::limits::{ACCEPT_RETRY_MS, IDLE_SCAN_MAX};
use crate::server::drain::Lifecycle;
use crate::service::Service;
use crate::timers::wheel::{TICK_MS, Tick, coarse_tick_at, tick_at};
use crate::worker::Worker;
use crate::worker_state::WorkerState;

/// Ticks for which a connection without a request is kept: its request may be on the way.
const SILENT_TICKS_MIN: Tick = 2;

/// The search for connections to close.
#[derive(Debug)]
pub(crate) struct Room {
    /// Slots to examine before the search ends without a result; 0 without a search.
    left: usize,
    /// Slot to examine next.
    next: usize,
    /// Closes even those that were used within the last second.
    takes_any: bool,
    /// Time until which responses end their connections; `u64::MAX` if they don't.
    pub(crate) until_ms: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self { left: 0, next: 0, takes_any: false, until_ms: u64::MAX }
    }
}

impl Room {
    /// Returns true during a search.
    pub(crate) fn is_searched(&self) -> bool {
        self.left > 0
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Returns true if the worker or all workers together hold as many connections as they may.
    pub(crate) fn is_full(&self) -> bool {
        self.driver.connections() >= self.state.limits.connections_max || self.state.limit.is_full()
    }

    /// Acts on a wake-up: another worker waits for room, or has made some for this one.
    pub(crate) fn share_room(&mut self) {
        if self.accept_again_ms.is_some() {
            self.has_room |= !self.is_full();
        } else if self.state.limit.is_wanted() {
            self.search_room();
        }
    }

    /// Begins a search, from the next turn on: by then the sends of this one have settled. Until no connection has waited
    /// for a while, responses end their connections.
    pub(crate) fn search_room(&mut self) {
        // At least one turn: other workers are asked even without a slot.
        self.room.left = self.state.table.slots().max(1);
        self.room.until_ms = self.driver.now_ms().saturating_add(ACCEPT_RETRY_MS);
        self.state.responder.ends_connections = true;
    }

    /// Lets responses keep their connections again.
    #[cold]
    pub(crate) fn end_shortage(&mut self) {
        self.room.until_ms = u64::MAX;
        self.room.takes_any = false;
        self.state.responder.ends_connections = self.lifecycle != Lifecycle::Serving;
    }

    /// Examines a bounded number of slots and closes the longest idle connections among them. If there is none, the next search, a tick later, also takes those that were used within the last second.
    #[cold]
    pub(crate) fn make_room(&mut self) {
        let slots = self.state.table.slots();
        let mut idle = [(Tick::MAX, 0_u32); IDLE_SCAN_MAX];
        let mut count = 0;
        for _ in 0..self.room.left.min(IDLE_SCAN_MAX).min(slots) {
            let slot = self.room.next % slots;
            self.room.next = slot + 1;
            self.room.left -= 1;
            let token = self.state.table.token(slot);
            if let Some(since) = self.state.idle_since(token, self.room.takes_any) {
                idle[count] = (since, slot as u32);
                count += 1;
            }
        }
        // Of several workers that were asked for room, the first one makes it.
        let may_close = count == 0 || self.accept_again_ms.is_some() || self.state.limit.take_request();
        if may_close && !self.close_longest(&mut idle[..count]) {
            return self.end_search();
        }
        self.room.left = 0;
    }

    /// Closes the longest idle of these connections, a sixteenth of all at most. Returns false if it has closed none.
    fn close_longest(&mut self, idle: &mut [(Tick, u32)]) -> bool {
        idle.sort_unstable();
        let mut left = (self.state.table.len() / 16).clamp(1, ACCEPTS_PER_TURN_MAX);
        let all = left;
        for (_, slot) in idle {
            let token = self.state.table.token(*slot as usize);
            if left > 0 && self.is_settled(token) {
                self.shut(token, CloseKind::Normal);
                left -= 1;
            }
        }
        left < all
    }

    /// Returns false if input is pending, or a last response has not arrived.
    fn is_settled(&mut self, token: Token) -> bool {
        !self.driver.reads_later(token)
            && (self.state.table.get(token).phase() != Phase::Linger
                || self.driver.unacknowledged(token).is_none_or(|bytes| bytes == 0))
    }

    /// Continues a search in the next turn, or ends it without a result: the next one takes more connections, and other
    /// workers may have some.
    fn end_search(&mut self) {
        if self.room.left > 0 && self.state.table.slots() > 0 {
            return;
        }
        self.room.left = 0;
        self.room.takes_any = true;
        if self.accept_again_ms.is_some() && self.is_full() {
            self.accept_again_ms = Some(self.driver.now_ms() + TICK_MS);
            self.state.limit.ask(true);
            self.state.control.wake();
        }
    }
}

impl<S> WorkerState<S> {
    /// Returns the tick since which a connection that may be closed has been idle.
    fn idle_since(&mut self, token: Token, takes_any: bool) -> Option<Tick> {
        let (now_ms, timeouts) = (self.now_ms, &self.timeouts);
        let conn = self.table.get(token);
        if conn.has(Flag::Sending) || conn.has(Flag::Queued) {
            return None;
        }
        let deadline = conn.timer.deadline;
        let (wait_ms, is_old) = match conn.phase() {
            Phase::First | Phase::ProxyHeader => {
                let of_new = tick_at(now_ms.saturating_add(timeouts.first_head_ms));
                (timeouts.first_head_ms, deadline + SILENT_TICKS_MIN <= of_new)
            }
            Phase::Idle | Phase::StrayCr | Phase::StrayLine => {
                let of_new = coarse_tick_at(now_ms.saturating_add(timeouts.idle_ms));
                (timeouts.idle_ms, takes_any || deadline < of_new)
            }
            // Its last response is sent.
            Phase::Linger => {
                let of_new = coarse_tick_at(now_ms.saturating_add(timeouts.linger_ms));
                (timeouts.linger_ms, deadline < of_new)
            }
            _ => return None,
        };
        is_old.then(|| deadline.saturating_sub(tick_at(wait_ms)))
    }
}
