//! Deadlines of connections: set, and handled when they are over.

use crate::connection::{Flag, Phase};
use crate::exchange::State;
use crate::limits::{DRAIN_LINGER_MS, WRITE_CHECK_MS};
use crate::limits::{EVENTS_PER_EXPIRY, EXPIRIES_PER_ARRIVAL, EXPIRIES_PER_TURN_MAX, EXPIRIES_PER_TURN_MIN};
use crate::observe::record::ExchangeEnd;
use crate::request::refusal::Refusal;
use crate::server::counters::Counter;
use crate::service::Service;
use crate::timers::wheel::{coarse_tick_at, tick_at};
use crate::worker::Worker;
use crate::worker::state::WorkerState;
use shearwater_io::{CloseKind, Driver, Token};

/// Unit in which send progress is kept: a `u32` of them exceeds any network's throughput within `write_ms`.
const RATE_UNIT_BYTES: i64 = 64;

/// Returns the number of deadlines that a turn with so many events and accepted connections may act on.
fn expiries_max(events: usize, arrived: usize) -> usize {
    let of_events = (events / EVENTS_PER_EXPIRY).clamp(EXPIRIES_PER_TURN_MIN, EXPIRIES_PER_TURN_MAX);
    of_events + EXPIRIES_PER_ARRIVAL * arrived
}

/// Deriving. A send in flight has its own deadline, and the phase's applies again when it ends.
impl<S> WorkerState<S> {
    /// Sets the deadline of the phase, unless a send is in flight. An earlier one that no longer matters may remain: it
    /// is ignored when it expires.
    #[inline]
    pub(crate) fn reconcile_deadline(&mut self, token: Token) {
        let ends_soon = self.leaving.ends_soon(token);
        let conn = self.table.get(token);
        if conn.has(Flag::Sending) {
            return;
        }
        let (now_ms, timeouts) = (self.now_ms, &self.timeouts);
        let restarts = conn.has(Flag::Restart);
        conn.unset(Flag::Restart);
        let soon = |wait_ms: u64| tick_at(now_ms.saturating_add(wait_ms));
        let deadline = match conn.phase() {
            Phase::Closing | Phase::HandedOver | Phase::Tunnel => return self.clear_deadline(token),
            Phase::Body => return self.reconcile_body_deadline(token, restarts),
            Phase::Multiplexed => return self.reconcile_http2_deadline(token),
            _ if !restarts => return,
            Phase::Idle | Phase::ProxyHeader if conn.has(Flag::Fresh) => match ends_soon {
                true => soon(timeouts.first_head_ms.min(timeouts.drain_idle_ms)),
                false => soon(timeouts.first_head_ms),
            },
            Phase::Idle | Phase::StrayCr | Phase::StrayLine => return self.set_idle_deadline(token),
            // The first head's deadline runs from accept, unless a drain has shortened it.
            Phase::Head if conn.has(Flag::Fresh) && !ends_soon => return,
            Phase::Head => soon(timeouts.head_ms),
            Phase::Waiting => return self.bound_half_closed(token),
            Phase::Linger if ends_soon && !conn.has(Flag::LingerExtended) => {
                soon(timeouts.linger_ms.min(DRAIN_LINGER_MS))
            }
            Phase::Linger => coarse_tick_at(now_ms.saturating_add(timeouts.linger_ms)),
            Phase::ProxyHeader | Phase::Evicted | Phase::Truncated | Phase::LastResponse | Phase::Free => {
                return;
            }
        };
        self.wheel.set(self.table.conns_mut(), token.slot(), deadline);
    }

    /// Sets the deadline of a send, or its next check.
    pub(crate) fn set_send_deadline(&mut self, token: Token) {
        // Most sends complete before the first check.
        let wait_ms = match self.table.get(token).has(Flag::Measured) {
            true => self.timeouts.write_ms,
            false => self.timeouts.write_ms.min(WRITE_CHECK_MS),
        };
        let deadline = coarse_tick_at(self.now_ms.saturating_add(wait_ms));
        self.wheel.set(self.table.conns_mut(), token.slot(), deadline);
    }

    /// Sets the deadline of a connection between requests.
    #[inline(always)]
    pub(crate) fn set_idle_deadline(&mut self, token: Token) {
        let deadline = match self.leaving.ends_soon(token) {
            true => tick_at(self.now_ms.saturating_add(self.timeouts.drain_idle_ms)),
            false => coarse_tick_at(self.now_ms.saturating_add(self.timeouts.idle_ms)),
        };
        self.wheel.set(self.table.conns_mut(), token.slot(), deadline);
    }

    /// Sets the deadline for more of a body. A client that waits for a `100` has none: it sends nothing before that.
    fn reconcile_body_deadline(&mut self, token: Token, restarts: bool) {
        if self.waits_for_handler(token) {
            if restarts {
                self.bound_half_closed(token);
            }
            return;
        }
        let (rule, now_ms) = (self.body_rate_rule, self.now_ms);
        let Some(exchange) = self.exchange(token) else { return };
        let is_sending = exchange.state() == State::Sending;
        let Some(body) = &mut exchange.body else { return };
        if body.owes_continue {
            return self.clear_deadline(token);
        }
        // Before the response begins, input waits for a send (a `100`). A stream is sent while the body is received.
        if restarts && !is_sending {
            body.restart(&rule, now_ms);
        }
        let due = tick_at(body.budget.due_ms());
        self.wheel.set(self.table.conns_mut(), token.slot(), due);
    }

    /// Bounds a handler's time for a client that has sent a FIN: it may be gone, and nothing else would detect that.
    /// Sends, and bodies that are being received, have their own deadlines.
    fn bound_half_closed(&mut self, token: Token) {
        if !self.is_half_closed(token) || !self.waits_for_handler(token) {
            return;
        }
        let wait_ms = if self.ends_with_client(token) { 0 } else { self.timeouts.half_closed_ms };
        let deadline = tick_at(self.now_ms.saturating_add(wait_ms));
        self.wheel.set(self.table.conns_mut(), token.slot(), deadline);
    }

    /// Lets a deadline expire again in the next tick: input that arrived before it is still to be fetched.
    pub(crate) fn postpone_deadline(&mut self, token: Token) {
        let deadline = tick_at(self.now_ms + 1);
        self.wheel.set(self.table.conns_mut(), token.slot(), deadline);
    }

    fn clear_deadline(&mut self, token: Token) {
        self.wheel.clear(self.table.conns_mut(), token.slot());
    }

    /// Returns the limit that a client violates by having read so many units since the last check.
    fn too_slow(&self, units: u64) -> Option<&Counter> {
        // Both checks rounded down: it may have been almost a unit more.
        let most_bytes = (units + 1) * RATE_UNIT_BYTES.unsigned_abs();
        if units == 0 {
            Some(&self.counters.hit_write_ms)
        } else if most_bytes < self.limits.send_bytes_min(self.timeouts.write_ms) {
            Some(&self.counters.hit_send_rate)
        } else {
            None
        }
    }

    /// Returns the timeout that has expired on a connection without a send in flight.
    fn expired_timeout(&mut self, token: Token) -> Option<&Counter> {
        let ends_soon = self.leaving.ends_soon(token);
        let ends_silence = self
            .exchange(token)
            .and_then(|exchange| exchange.body.as_ref())
            .is_some_and(|body| body.budget.ends_silence());
        let conn = self.table.get(token);
        let counters = &self.counters;
        Some(match conn.phase() {
            _ if conn.is_silent() && ends_soon => &counters.hit_drain_idle_ms,
            _ if conn.has(Flag::Fresh) => &counters.hit_first_head_ms,
            Phase::Idle | Phase::StrayCr | Phase::StrayLine => &counters.hit_idle_ms,
            Phase::Head => &counters.hit_head_ms,
            Phase::Body if ends_silence => &counters.hit_body_ms,
            Phase::Body => &counters.hit_body_rate,
            Phase::Linger => &counters.hit_linger_ms,
            _ => return None,
        })
    }
}

impl<D: Driver, S: Service> Worker<D, S> {
    /// Acts on a bounded number of due deadlines; the rest is due in the next turn. A deadline is due once
    /// all input that arrived before it was fetched, so that no timely request is rejected because it waited
    /// in the kernel.
    pub(crate) fn expire(&mut self, events: usize) {
        let arrived = std::mem::take(&mut self.arrived);
        if !self.state.wheel.is_due(self.driver.now_ms()) {
            return;
        }
        let caught_up_ms = self.driver.caught_up_ms();
        for _ in 0..expiries_max(events, arrived) {
            let state = &mut self.state;
            let Some(slot) = state.wheel.expire(state.table.conns_mut(), caught_up_ms) else { return };
            let token = state.table.token(slot);
            self.expired(token);
        }
        let state = &mut self.state;
        if state.wheel.due(state.table.conns_mut(), caught_up_ms).is_some() {
            state.counters.hit_expiries_per_turn.add(1);
        }
    }

    fn expired(&mut self, token: Token) {
        let state = &mut self.state;
        let conn = state.table.get(token);
        if conn.has(Flag::Sending) {
            return self.check_send(token);
        }
        let phase = conn.phase();
        if phase == Phase::Multiplexed {
            return self.http2_expired(token);
        }
        if phase == Phase::Linger && self.extend_linger(token) {
            return;
        }
        let state = &mut self.state;
        // The client is waiting for the handler: its own deadlines don't apply.
        if state.waits_for_handler(token) {
            return self.handler_expired(token);
        }
        let conn = state.table.get(token);
        let (is_silent, is_receiving) = (conn.is_silent(), conn.is_receiving());
        if conn.is_serving() && self.driver.reads_later(token) {
            return state.postpone_deadline(token);
        }
        if D::SECURES && phase == Phase::Body && self.extend_secured_body(token) {
            return;
        }
        let state = &mut self.state;
        if let Some(limit) = state.expired_timeout(token) {
            limit.add(1);
        }
        if is_receiving && !state.awaits_content(token) {
            state.refuse(token, Refusal::Timeout);
            self.flush(token);
        } else if is_silent
            || matches!(phase, Phase::Head | Phase::LastResponse | Phase::Truncated | Phase::Linger)
        {
            self.shut(token, CloseKind::Normal);
        }
    }

    /// Drops a handler whose client has sent a FIN.
    fn handler_expired(&mut self, token: Token) {
        if !self.state.is_half_closed(token) {
            return;
        }
        if self.state.ends_with_client(token) {
            return self.broken(token);
        }
        self.state.counters.hit_half_closed_ms.add(1);
        self.shut_as(token, CloseKind::Normal, ExchangeEnd::TimedOut);
    }

    /// Extends the short linger of a drain to the usual one if closing could destroy the response.
    fn extend_linger(&mut self, token: Token) -> bool {
        let has_got_it = self.driver.unacknowledged(token).is_none_or(|bytes| bytes == 0);
        let WorkerState { table, leaving, .. } = &mut self.state;
        let conn = table.get(token);
        if !leaving.ends_soon(token) || conn.has(Flag::LingerExtended) || (has_got_it && conn.discard(0) == 0)
        {
            return false;
        }
        conn.set(Flag::LingerExtended);
        conn.restart_deadline();
        self.state.reconcile_deadline(token);
        true
    }

    /// Resets a client that has read too little since the last check. Time spent waiting for a disk doesn't
    /// count.
    fn check_send(&mut self, token: Token) {
        let handed = self.driver.send_progress(token);
        let owed = self.driver.unacknowledged(token).unwrap_or(0);
        let waits_for_disk = self.driver.waits_for_disk(token);
        // Content counts as sent only with its whole record.
        let delivered = if D::SECURES { self.driver.delivered(token) } else { None };
        let state = &mut self.state;
        let conn = state.table.get(token);
        // Includes bytes of earlier sends: a value may be below 0, but not the difference of two.
        let taken =
            delivered.unwrap_or(handed.wrapping_sub(owed)).cast_signed().div_euclid(RATE_UNIT_BYTES) as u32;
        let units = u64::from(conn.measure_send(taken));
        if conn.has(Flag::Measured)
            && !waits_for_disk
            && let Some(limit) = state.too_slow(units)
        {
            limit.add(1);
            return self.shut_as(token, CloseKind::Reset, ExchangeEnd::TimedOut);
        }
        state.table.get(token).set(Flag::Measured);
        state.set_send_deadline(token);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        EVENTS_PER_EXPIRY, EXPIRIES_PER_ARRIVAL, EXPIRIES_PER_TURN_MAX, EXPIRIES_PER_TURN_MIN, expiries_max,
    };

    #[test]
    fn expires_deadlines_in_proportion_to_events_and_arrivals() {
        let most = EVENTS_PER_EXPIRY * EXPIRIES_PER_TURN_MAX;
        for (events, arrived, wanted) in [
            (0, 0, EXPIRIES_PER_TURN_MIN),
            (EVENTS_PER_EXPIRY * 5, 0, 5),
            (most, 0, EXPIRIES_PER_TURN_MAX),
            (100 * most, 0, EXPIRIES_PER_TURN_MAX),
            (16, 16, EXPIRIES_PER_TURN_MIN + 16 * EXPIRIES_PER_ARRIVAL),
            (100 * most, 16, EXPIRIES_PER_TURN_MAX + 16 * EXPIRIES_PER_ARRIVAL),
        ] {
            assert_eq!(expiries_max(events, arrived), wanted, "{events} events, {arrived} accepted");
        }
    }
}
