//! A turn: its budgets, and the order of its events.

use std::time::Duration;
use std::{io, mem};

use super::connection::Phase;
use super::receive::Lent;
use super::{Provider, Secure};
use crate::limits::{SEAL_BYTES_PER_TURN_MAX, SECURE_COSTLY_PER_TURN_MAX};
use crate::{Driver, Event, Token};

/// Budgets of the present turn, over all connections.
#[derive(Debug)]
pub(super) struct Budget {
    /// Costly steps of handshakes.
    pub(super) costly: usize,
    /// Content of long outputs, and of those sealed at once.
    pub(super) sealed: u64,
    pub(super) sealed_at_once: u64,
    /// Connections in `ready` that belong to this turn.
    pub(super) ready: usize,
    /// Unsent sends of the turn before are to be reported first (S7).
    pub(super) is_unsettled: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            costly: SECURE_COSTLY_PER_TURN_MAX,
            sealed: SEAL_BYTES_PER_TURN_MAX,
            sealed_at_once: SEAL_BYTES_PER_TURN_MAX,
            ready: 0,
            is_unsettled: false,
        }
    }
}

impl<D: Driver, P: Provider> Secure<D, P> {
    /// Returns whether there is work that needs no event of the driver below: the next wait doesn't sleep then.
    pub fn has_work(&self) -> bool {
        !self.events.is_empty()
            || !self.later.is_empty()
            || !self.ready.is_empty()
            || !self.costly.is_empty()
            || !self.sends.is_empty()
    }

    /// Frees memory of a busier moment.
    pub(super) fn trim(&mut self) -> bool {
        if !matches!(self.lent, Lent::Scratch(1..)) {
            self.scratch = Vec::new();
        }
        self.copy_buffer = super::CopyBuffer::default();
        self.spare = super::Spare::default();
        self.conns.trim(Option::is_none);
        for queue in [&mut self.ready, &mut self.costly, &mut self.sends] {
            queue.shrink_to_fit();
        }
        true
    }

    /// Sends what this turn has left.
    fn send_left(&mut self) {
        self.send_replies();
        self.guard_files();
    }

    /// Sends what this turn has left, and returns the timeout of a wait.
    pub(super) fn arm_inner(&mut self, timeout: Option<Duration>) -> io::Result<Option<Duration>> {
        self.send_left();
        if self.has_work() {
            return Ok(Some(Duration::ZERO));
        }
        self.inner.arm(timeout)
    }

    /// Sends what this turn has left, and waits.
    pub(super) fn begin_turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.send_left();
        if let Lent::Start(len) = self.delivery {
            // The worker hasn't taken this turn's last event.
            self.scratch.clear();
            self.scratch.extend_from_slice(&self.inner.lent()[..len]);
            self.delivery = Lent::Scratch(len);
        }
        let is_unsettled = self.silent.end_turn(&mut self.spare);
        let timeout = if self.has_work() { Some(Duration::ZERO) } else { timeout };
        self.inner.wait(timeout)?;
        self.turn = self.turn.wrapping_add(1).max(1);
        if !self.later.is_empty() {
            self.events.extend(self.later.drain(..));
        }
        self.budget = Budget { ready: self.ready.len(), is_unsettled, ..Budget::default() };
        self.provider.begin_turn(self.inner.unix_seconds());
        self.ahead.now_ms = self.inner.now_ms();
        self.note_fetched();
        Ok(())
    }

    /// Returns the turn's next event: its own, then those of the driver below, then those of long sends.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        if self.counters.connections == 0 && !self.has_work() {
            self.lent = Lent::Below;
            return self.inner.next();
        }
        if mem::take(&mut self.budget.is_unsettled) {
            while let Some(token) = self.next_unsent() {
                self.events.push_front(Event::Unsent { token });
            }
        }
        loop {
            if let Some(event) = self.next_own() {
                return Some(event);
            }
            self.bound_partial();
            if self.open_next() || !self.events.is_empty() {
                continue;
            }
            match self.inner.next() {
                Some(event) => {
                    self.lent = Lent::Below;
                    if let Some(event) = self.translate(event) {
                        return Some(event);
                    }
                }
                None if self.seal_next() => {}
                None => return None,
            }
        }
    }

    /// Returns the next own event of a connection that the worker hasn't closed.
    fn next_own(&mut self) -> Option<Event> {
        while let Some(event) = self.events.pop_front() {
            self.lent = Lent::Scratch(0);
            let token = match &event {
                Event::Received { token } => {
                    self.lent = mem::replace(&mut self.delivery, Lent::Below);
                    *token
                }
                Event::Sent { .. } | Event::Unsent { .. } => return Some(event),
                Event::Secured { token, .. }
                | Event::Receiving { token }
                | Event::FinReceived { token }
                | Event::ReadClosed { token, .. }
                | Event::Detached { token, .. } => *token,
                _ => continue,
            };
            let conn = self.conns.get_mut(token.slot()).and_then(Option::as_deref_mut);
            let Some(conn) = conn.filter(|conn| conn.token == token && !conn.is_closing) else { continue };
            match event {
                // A send of this turn may still come back: the end follows that (S7).
                Event::ReadClosed { .. } if conn.silent_turn == self.turn => self.later.push(event),
                Event::FinReceived { .. } if !conn.is_paused || conn.is_fin_reported || conn.has_ended => {}
                Event::FinReceived { .. } => {
                    conn.is_fin_reported = true;
                    return Some(event);
                }
                _ => return Some(event),
            }
        }
        None
    }

    /// Handles an event of the driver below. Returns the worker's event for it, unless it is an own one.
    fn translate(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::Received { token } => self.received(token).then_some(event),
            Event::FinReceived { token } => self.fin_received(token).then_some(event),
            Event::ReadClosed { token, end } => self.read_closed(token, end),
            Event::Unsent { token } => self.note_unsent(token).then_some(event),
            Event::Sent { token, output, result } => self.sent(token, output, result),
            Event::Closed { token } => {
                self.forget(token);
                Some(event)
            }
            _ => Some(event),
        }
    }

    /// Drops the state of a closed connection.
    fn forget(&mut self, token: Token) {
        let Some(slot) = self.conns.get_mut(token.slot()) else { return };
        if let Some(conn) = slot.take_if(|conn| conn.token == token) {
            debug_assert!(conn.phase == Phase::Plain || conn.is_closing, "only the worker closes");
            self.counters.connections -= 1;
            self.counters.partial_bytes -= conn.held;
        }
    }
}
