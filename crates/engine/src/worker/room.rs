//! Making room: while a connection waits to be accepted and there is no room, closes the longest idle ones.

use shearwater_io::limits::ACCEPTS_PER_TURN_MAX;
use shearwater_io::{CloseKind, Driver, Token};

use crate::connection::{Flag, Phase};
use crate::limits::{ACCEPT_RETRY_MS, IDLE_SCAN_MAX, SILENT_CROWDED_MS_MIN, SILENT_MS_MIN};
use crate::server::drain::Lifecycle;
use crate::service::Service;
use crate::timers::wheel::{TICK_MS, coarse_tick_at};
use crate::worker::Worker;
use crate::worker::state::Room;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Returns true if the worker or all workers together hold as many connections as they may.
    pub(crate) fn is_full(&self) -> bool {
        // The programs' ends of tunnels count for no limit.
        let connections = self.driver.connections() - self.tunnels.len() - self.state.http2.tunnels.len();
        connections >= self.state.limits.connections_max || self.state.limit.is_full()
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
        self.room.has_silent = false;
        self.room.until_ms = self.driver.now_ms().saturating_add(ACCEPT_RETRY_MS);
        self.state.responder.ends_connections = true;
    }

    /// Lets responses keep their connections again.
    #[cold]
    pub(crate) fn end_shortage(&mut self) {
        self.room =
            Room { left: self.room.left, next: self.room.next, until_ms: u64::MAX, ..Room::default() };
        self.state.responder.ends_connections = self.lifecycle != Lifecycle::Serving;
    }

    /// Examines a bounded number of slots and closes the longest idle connections among them, a sixteenth of all at most.
    #[cold]
    pub(crate) fn make_room(&mut self) {
        let slots = self.state.table.slots();
        let mut idle = [(u64::MAX, 0_u32); IDLE_SCAN_MAX];
        let mut count = 0;
        for _ in 0..self.room.left.min(IDLE_SCAN_MAX).min(slots) {
            let slot = self.room.next % slots;
            self.room.next = slot + 1;
            self.room.left -= 1;
            if let Some(since_ms) = self.idle_since(self.state.table.token(slot)) {
                idle[count] = (since_ms, slot as u32);
                count += 1;
            }
        }
        if count == 0 {
            return self.end_search();
        }
        self.room.left = 0;
        // Of several workers that were asked for room, the first one makes it.
        if self.accept_again_ms.is_none() && !self.state.limit.take_request() {
            return;
        }
        let most = (self.state.table.len() / 16).clamp(1, ACCEPTS_PER_TURN_MAX);
        idle[..count].sort_unstable();
        for (_, slot) in &idle[..count.min(most)] {
            self.shut(self.state.table.token(*slot as usize), CloseKind::Normal);
        }
    }

    /// Continues a search in the next turn, or ends it without a result: the next one takes more connections, and other
    /// workers may have some.
    fn end_search(&mut self) {
        if self.room.left > 0 && self.state.table.slots() > 0 {
            return;
        }
        self.room.left = 0;
        // Those that it found are old enough by then. If that isn't room enough, many wait.
        let wait_ms = if self.room.has_silent { self.silent_ms() } else { TICK_MS };
        self.room.is_crowded |= self.room.has_silent;
        self.room.takes_any |= !self.room.has_silent;
        if self.accept_again_ms.is_none() {
            return;
        }
        if !self.is_full() {
            // Another worker has made room since.
            self.has_room = true;
            return;
        }
        self.accept_again_ms = Some(self.driver.now_ms() + wait_ms);
        self.state.limit.ask(true);
        self.state.control.wake();
    }

    /// Returns the age from which a connection without a request is closed.
    fn silent_ms(&self) -> u64 {
        if self.room.is_crowded { SILENT_CROWDED_MS_MIN } else { SILENT_MS_MIN }
    }

    /// Returns the time in milliseconds since which a connection that may be closed has been idle.
    fn idle_since(&mut self, token: Token) -> Option<u64> {
        let now_ms = self.state.now_ms;
        let conn = self.state.table.get(token);
        if conn.has(Flag::Sending) || conn.has(Flag::Queued) || self.driver.reads_later(token) {
            return None;
        }
        let phase = conn.phase();
        if phase == Phase::Multiplexed {
            return self.http2_idle_since(token);
        }
        let (timeouts, conn) = (&self.state.timeouts, self.state.table.get(token));
        let (wait_ms, takes_any) = match phase {
            Phase::Idle | Phase::ProxyHeader if conn.has(Flag::Fresh) => {
                // Input may have been fetched up to an earlier time than that of the accept.
                let age = (self.driver.caught_up_ms() as u32).wrapping_sub(conn.number).cast_signed();
                let age_ms = u64::try_from(age).unwrap_or(0);
                let is_old = age_ms >= self.silent_ms();
                self.room.has_silent |= !is_old;
                return is_old.then(|| now_ms.saturating_sub(age_ms));
            }
            Phase::Idle | Phase::StrayCr | Phase::StrayLine => (timeouts.idle_ms, self.room.takes_any),
            // Its last response has arrived.
            Phase::Linger if self.driver.unacknowledged(token).is_none_or(|bytes| bytes == 0) => {
                (timeouts.linger_ms, false)
            }
            _ => return None,
        };
        // Of a moment ago, because coarse deadlines begin anew at any time.
        let recent = coarse_tick_at(now_ms.saturating_sub(SILENT_MS_MIN).saturating_add(wait_ms));
        let deadline = conn.timer.deadline;
        let is_old = takes_any || deadline < recent;
        is_old.then(|| (u64::from(deadline) * TICK_MS).saturating_sub(wait_ms))
    }
}
