//! Deadlines: which one applies in each phase, and the action when it expires.

use shearwater_io::{CloseKind, Driver, Token};

use crate::body_budget::BodyBudget;
use crate::conn::{Flag, Phase};
use crate::counters::Counter;
use crate::limits::{
    DRAIN_LINGER_MS, EVENTS_PER_EXPIRY, EXPIRIES_PER_ARRIVAL, EXPIRIES_PER_TURN_MAX, EXPIRIES_PER_TURN_MIN,
    WRITE_CHECK_MS,
};
use crate::refuse::Refusal;
use crate::service::Service;
use crate::timer::Tick;
use crate::wheel::{coarse_tick_at, tick_at};
use crate::worker::Worker;
use crate::worker_state::WorkerState;

/// Unit in which send progress is kept: a `u32` of them exceeds any network's throughput within `write_ms`.
const RATE_UNIT_BYTES: i64 = 64;

impl<S> WorkerState<S> {
    /// Arms the deadline of the first head.
    pub(crate) fn accepted(&mut self, token: Token, now_ms: u64) {
        let drain_idle_ms = if self.responder.draining { self.timeouts.drain_idle_ms } else { u64::MAX };
        self.set_deadline(
            token,
            tick_at(now_ms.saturating_add(self.timeouts.first_head_ms.min(drain_idle_ms))),
        );
    }

    /// Arms the deadline of a later head. The first one's runs from accept, unless a drain has shortened it.
    pub(crate) fn head_began(&mut self, token: Token) {
        if self.responder.draining || !self.table.get(token).has(Flag::FirstHead) {
            self.set_deadline(token, tick_at(self.now_ms.saturating_add(self.timeouts.head_ms)));
        }
    }

    /// Arms the deadline of a body that is being received.
    pub(crate) fn arm_body(&mut self, token: Token, budget: BodyBudget) {
        self.table.get(token).unset(Flag::FirstHead);
        self.set_deadline(token, tick_at(budget.due_ms()));
    }

    /// Restarts the body timer after backpressure from us.
    fn restart_budget(&mut self, token: Token, now_ms: u64) -> Tick {
        let budget = BodyBudget::begin(&self.body_rate_rule, now_ms);
        let index = self.table.get(token).block;
        if let Some(block) = self.blocks.get_mut(index) {
            block.budget = budget;
        }
        tick_at(budget.due_ms())
    }

    /// Restarts the timer of a body that a handler pulls.
    pub(crate) fn restart_body(&mut self, token: Token, now_ms: u64) {
        self.restart_budget(token, now_ms);
        self.arm_pulled_body(token);
    }

    /// Arms the deadline for more of a body that a handler pulls. During a send the timer belongs to the
    /// send. A client that waits for a `100` has no deadline: it sends nothing before that.
    pub(crate) fn arm_pulled_body(&mut self, token: Token) {
        let conn = self.table.get(token);
        conn.unset(Flag::FirstHead);
        if conn.has(Flag::Sending) {
            return;
        }
        let index = conn.block;
        if self.owes_continue(token) {
            return self.wheel.clear(self.table.conns_mut(), token.slot());
        }
        let Some(budget) = self.blocks.get_mut(index).map(|block| block.budget) else { return };
        self.set_deadline(token, tick_at(budget.due_ms()));
    }

    /// Arms the first check of a send that is in flight; most complete before it.
    pub(crate) fn write_began(&mut self, token: Token, now_ms: u64) {
        let look_ms = self.timeouts.write_ms.min(WRITE_CHECK_MS);
        self.set_deadline(token, coarse_tick_at(now_ms.saturating_add(look_ms)));
    }

    /// Arms the deadline of a lingering close; while draining it is short at first.
    pub(crate) fn linger_began(&mut self, token: Token, now_ms: u64) {
        self.table.get(token).unset(Flag::Measured);
        let linger_ms = self.timeouts.linger_ms;
        let deadline = match self.responder.draining {
            true => tick_at(now_ms.saturating_add(linger_ms.min(DRAIN_LINGER_MS))),
            false => coarse_tick_at(now_ms.saturating_add(linger_ms)),
        };
        self.set_deadline(token, deadline);
    }

    /// Bounds a handler's time for a client that has sent a FIN: it may be gone, and nothing else would
    /// detect that. Sends, and bodies that are being received, have their own deadlines.
    pub(crate) fn bound_half_closed(&mut self, token: Token) {
        if !self.is_half_closed(token) || !self.table.get(token).waits_for_handler() {
            return;
        }
        let wait_ms = if self.ends_with_client(token) { 0 } else { self.timeouts.half_closed_ms };
        self.set_deadline(token, tick_at(self.now_ms.saturating_add(wait_ms)));
    }

    /// Arms the deadline for the next input after a response was sent.
    pub(crate) fn arm_reading(&mut self, token: Token, phase: Phase, now_ms: u64) {
        let deadline = match phase {
            Phase::Body => self.restart_budget(token, now_ms),
            Phase::Head => tick_at(now_ms.saturating_add(self.timeouts.head_ms)),
            _ if self.responder.draining => tick_at(now_ms.saturating_add(self.timeouts.drain_idle_ms)),
            _ => coarse_tick_at(now_ms.saturating_add(self.timeouts.idle_ms)),
        };
        self.set_deadline(token, deadline);
    }

    /// Restarts the measurement of the send in flight.
    fn arm_send_check(&mut self, token: Token, now_ms: u64) {
        self.table.get(token).set(Flag::Measured);
        self.set_deadline(token, coarse_tick_at(now_ms.saturating_add(self.timeouts.write_ms)));
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
        let conn = self.table.get(token);
        let counters = &self.counters;
        Some(match conn.phase {
            _ if conn.is_idle() && self.responder.draining => &counters.hit_drain_idle_ms,
            Phase::First => &counters.hit_first_head_ms,
            Phase::Idle | Phase::StrayCr | Phase::StrayLine => &counters.hit_idle_ms,
            Phase::Head if conn.has(Flag::FirstHead) => &counters.hit_first_head_ms,
            Phase::Head => &counters.hit_head_ms,
            Phase::Body | Phase::ReadingBody | Phase::Streaming
                if self.blocks.get_mut(conn.block)?.budget.ends_silence() =>
            {
                &counters.hit_body_ms
            }
            Phase::Body | Phase::ReadingBody | Phase::Streaming => &counters.hit_body_rate,
            Phase::Linger => &counters.hit_linger_ms,
            Phase::Handling | Phase::LastResponse | Phase::HandedOver | Phase::Closing | Phase::Free => {
                return None;
            }
        })
    }

    pub(crate) fn set_deadline(&mut self, token: Token, deadline: Tick) {
        self.wheel.set(self.table.conns_mut(), token.slot(), deadline);
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
        let phase = conn.phase;
        if phase == Phase::Linger && self.extend_linger(token) {
            return;
        }
        let state = &mut self.state;
        let conn = state.table.get(token);
        // The client is waiting for the handler: its own deadlines don't apply.
        if conn.waits_for_handler() {
            return self.handler_expired(token);
        }
        if conn.is_serving() && self.driver.reads_later(token) {
            let soon = tick_at(self.driver.now_ms() + 1);
            return state.set_deadline(token, soon);
        }
        if let Some(limit) = state.expired_timeout(token) {
            limit.add(1);
        }
        match phase {
            Phase::Head | Phase::Body | Phase::ReadingBody | Phase::Streaming => {
                state.refuse(token, Refusal::Timeout);
                self.flush(token);
            }
            Phase::First
            | Phase::Idle
            | Phase::StrayCr
            | Phase::StrayLine
            | Phase::LastResponse
            | Phase::Linger => {
                self.shut(token, CloseKind::Normal);
            }
            Phase::Handling | Phase::HandedOver | Phase::Closing | Phase::Free => {}
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
        self.shut(token, CloseKind::Normal);
    }

    /// Extends the short linger of a drain to the usual one if closing could destroy the response.
    fn extend_linger(&mut self, token: Token) -> bool {
        let has_got_it = self.driver.unacknowledged(token).is_none_or(|bytes| bytes == 0);
        let now_ms = self.driver.now_ms();
        let WorkerState { table, responder, timeouts, .. } = &mut self.state;
        let conn = table.get(token);
        if !responder.draining || conn.has(Flag::Measured) || (has_got_it && conn.progress == 0) {
            return false;
        }
        conn.set(Flag::Measured);
        let linger_ms = timeouts.linger_ms;
        self.state.set_deadline(token, coarse_tick_at(now_ms.saturating_add(linger_ms)));
        true
    }

    /// Resets a client that has read too little since the last check. Time spent waiting for a disk doesn't
    /// count.
    fn check_send(&mut self, token: Token) {
        let handed = self.driver.send_progress(token);
        let owed = self.driver.unacknowledged(token).unwrap_or(0);
        let waits_for_disk = self.driver.waits_for_disk(token);
        let state = &mut self.state;
        let conn = state.table.get(token);
        // Includes bytes of earlier sends: a value may be below 0, but not the difference of two.
        let taken = handed.wrapping_sub(owed).cast_signed().div_euclid(RATE_UNIT_BYTES) as u32;
        let units = u64::from(taken.wrapping_sub(conn.progress));
        conn.progress = taken;
        if conn.has(Flag::Measured)
            && !waits_for_disk
            && let Some(limit) = state.too_slow(units)
        {
            limit.add(1);
            return self.shut(token, CloseKind::Reset);
        }
        state.arm_send_check(token, self.driver.now_ms());
    }
}

/// Returns the number of deadlines that a turn with so many events and accepted connections may act on.
fn expiries_max(events: usize, arrived: usize) -> usize {
    let of_events = (events / EVENTS_PER_EXPIRY).clamp(EXPIRIES_PER_TURN_MIN, EXPIRIES_PER_TURN_MAX);
    of_events + EXPIRIES_PER_ARRIVAL * arrived
}

#[cfg(test)]
mod tests {
    use super::{
        EVENTS_PER_EXPIRY, EXPIRIES_PER_ARRIVAL, EXPIRIES_PER_TURN_MAX, EXPIRIES_PER_TURN_MIN, expiries_max,
    };

    #[test]
    fn a_turn_acts_on_deadlines_in_proportion_to_its_events_and_arrivals() {
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
