//! Deadlines: which one holds when, and what happens when it has come.

use shearwater_io::{CloseKind, Driver, Token};

use crate::app::App;
use crate::conn::{Flag, Phase};
use crate::counters::Counter;
use crate::limits::{EXPIRIES_PER_TURN_MAX, TURNS_BEHIND_MAX, WRITE_LOOK_MS};
use crate::pace::Pace;
use crate::refuse::Refusal;
use crate::service::Service;
use crate::timer::Tick;
use crate::wheel::{coarse_tick_at, tick_at};
use crate::worker::Worker;

/// What a client has taken is kept in units of so many bytes: a `u32` of them is more than any network brings within `write_ms`.
const LOOK_UNIT_BYTES: i64 = 64;

impl<A> Service<A> {
    /// From accept to the first complete head.
    pub(crate) fn accepted(&mut self, token: Token, now_ms: u64) {
        let drain_idle_ms = if self.responder.draining { self.timeouts.drain_idle_ms } else { u64::MAX };
        self.set_deadline(
            token,
            tick_at(now_ms.saturating_add(self.timeouts.first_head_ms.min(drain_idle_ms))),
        );
    }

    /// A part of a head has come. The first head's time runs since accept already, unless a drain has cut it short.
    pub(crate) fn head_began(&mut self, token: Token) {
        if self.responder.draining || !self.table.get(token).has(Flag::FirstHead) {
            self.set_deadline(token, tick_at(self.now_ms.saturating_add(self.timeouts.head_ms)));
        }
    }

    /// A head is complete, its body isn't.
    pub(crate) fn body_awaited(&mut self, token: Token, pace: Pace) {
        self.table.get(token).unset(Flag::FirstHead);
        self.set_deadline(token, tick_at(pace.due_ms()));
    }

    /// A body is read again: it was not its client's fault that it stood still.
    fn body_goes_on(&mut self, token: Token, now_ms: u64) -> Tick {
        let pace = Pace::begin(&self.pace_rule, now_ms);
        let index = self.table.get(token).block;
        if let Some(block) = self.blocks.get_mut(index) {
            block.pace = pace;
        }
        tick_at(pace.due_ms())
    }

    /// The same of a body that a handler takes.
    pub(crate) fn body_begins_anew(&mut self, token: Token, now_ms: u64) {
        self.body_goes_on(token, now_ms);
        self.await_body(token);
    }

    /// More of a body is awaited that a handler takes: by the time that it has left. While something is being sent the timer is that send's, and
    /// who waits for a `100` isn't to blame that nothing comes.
    pub(crate) fn await_body(&mut self, token: Token) {
        let conn = self.table.get(token);
        conn.unset(Flag::FirstHead);
        if conn.has(Flag::Sending) {
            return;
        }
        let index = conn.block;
        if self.owes_continue(token) {
            return self.wheel.clear(self.table.conns_mut(), token.slot());
        }
        let Some(pace) = self.blocks.get_mut(index).map(|block| block.pace) else { return };
        self.set_deadline(token, tick_at(pace.due_ms()));
    }

    /// A send is not over at once: most are before anybody looks.
    pub(crate) fn write_began(&mut self, token: Token, now_ms: u64) {
        let look_ms = self.timeouts.write_ms.min(WRITE_LOOK_MS);
        self.set_deadline(token, coarse_tick_at(now_ms.saturating_add(look_ms)));
    }

    pub(crate) fn linger_began(&mut self, token: Token, now_ms: u64) {
        self.set_deadline(token, coarse_tick_at(now_ms.saturating_add(self.timeouts.linger_ms)));
    }

    /// An answer is sent: what is waited for next?
    pub(crate) fn reading_goes_on(&mut self, token: Token, phase: Phase, now_ms: u64) {
        let deadline = match phase {
            Phase::Body => self.body_goes_on(token, now_ms),
            Phase::Head => tick_at(now_ms.saturating_add(self.timeouts.head_ms)),
            _ if self.responder.draining => tick_at(now_ms.saturating_add(self.timeouts.drain_idle_ms)),
            _ => coarse_tick_at(now_ms.saturating_add(self.timeouts.idle_ms)),
        };
        self.set_deadline(token, deadline);
    }

    /// The pace of the send in flight counts from now on.
    fn look_again(&mut self, token: Token, now_ms: u64) {
        self.table.get(token).set(Flag::Measured);
        self.set_deadline(token, coarse_tick_at(now_ms.saturating_add(self.timeouts.write_ms)));
    }

    /// The limit that a client has reached that took so many units since the last look.
    fn too_slow(&self, units: u64) -> Option<&Counter> {
        // Both looks rounded down: it may have been almost a unit more.
        let most_bytes = (units + 1) * LOOK_UNIT_BYTES.unsigned_abs();
        if units == 0 {
            Some(&self.counters.hit_write_ms)
        } else if most_bytes < self.limits.send_bytes_min(self.timeouts.write_ms) {
            Some(&self.counters.hit_send_pace)
        } else {
            None
        }
    }

    /// The time that has run out for a connection that nothing is being sent to.
    fn passed(&mut self, token: Token) -> Option<&Counter> {
        let conn = self.table.get(token);
        let counters = &self.counters;
        Some(match conn.phase {
            Phase::First | Phase::Idle if self.responder.draining => &counters.hit_drain_idle_ms,
            Phase::First => &counters.hit_first_head_ms,
            Phase::Idle => &counters.hit_idle_ms,
            Phase::Head if conn.has(Flag::FirstHead) => &counters.hit_first_head_ms,
            Phase::Head => &counters.hit_head_ms,
            Phase::Body | Phase::Taking | Phase::Exchanging
                if self.blocks.get_mut(conn.block)?.pace.ends_silence() =>
            {
                &counters.hit_body_ms
            }
            Phase::Body | Phase::Taking | Phase::Exchanging => &counters.hit_body_pace,
            Phase::Linger => &counters.hit_linger_ms,
            Phase::Handling | Phase::Last | Phase::HandedOver | Phase::Closing | Phase::Free => return None,
        })
    }

    pub(crate) fn set_deadline(&mut self, token: Token, deadline: Tick) {
        self.wheel.set(self.table.conns_mut(), token.slot(), deadline);
    }
}

impl<D: Driver, A: App> Worker<D, A> {
    /// Acts on the deadlines that have come, a bounded number of them: the rest is due in the next turn.
    pub(crate) fn expire(&mut self) {
        let now_ms = self.driver.now_ms();
        for _ in 0..EXPIRIES_PER_TURN_MAX {
            let service = &mut self.service;
            let Some(slot) = service.wheel.expire(service.table.conns_mut(), now_ms) else { return };
            let token = service.table.token(slot);
            self.expired(token);
        }
        self.service.counters.hit_expiries_per_turn.add(1);
    }

    fn expired(&mut self, token: Token) {
        let service = &mut self.service;
        let conn = service.table.get(token);
        if conn.has(Flag::Sending) {
            return self.look(token);
        }
        let phase = conn.phase;
        // What a handler takes its time for is not the client's doing.
        if conn.is_taking() && conn.has(Flag::Paused) {
            return;
        }
        if let Some(limit) = service.passed(token) {
            limit.add(1);
        }
        match phase {
            Phase::Head | Phase::Body | Phase::Taking | Phase::Exchanging => {
                service.refuse(token, Refusal::Timeout);
                self.flush(token);
            }
            Phase::First | Phase::Idle | Phase::Last | Phase::Linger => self.shut(token, CloseKind::Normal),
            Phase::Handling | Phase::HandedOver | Phase::Closing | Phase::Free => {}
        }
    }

    /// Looks how much the client has taken since the last look: enough, and it is looked at again, or too little. Who waits for a disk
    /// at that moment is not to be blamed.
    fn look(&mut self, token: Token) {
        let handed = self.driver.send_progress(token);
        let owed = self.driver.unacknowledged(token).unwrap_or(0);
        let waits_for_disk = self.driver.waits_for_disk(token);
        let service = &mut self.service;
        let conn = service.table.get(token);
        // What earlier sends left in the socket is owed too: the difference may be below 0, that of two looks isn't.
        let taken = handed.wrapping_sub(owed).cast_signed().div_euclid(LOOK_UNIT_BYTES) as u32;
        let units = u64::from(taken.wrapping_sub(conn.progress));
        conn.progress = taken;
        if conn.has(Flag::Measured)
            && !waits_for_disk
            && let Some(limit) = service.too_slow(units)
        {
            limit.add(1);
            return self.shut(token, CloseKind::Reset);
        }
        service.look_again(token, self.driver.now_ms());
    }
}

/// Whether the worker lags behind the kernel. A deadline may then have passed only because its input wasn't fetched; but
/// load alone must not keep slow clients in.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    turns: u32,
}

impl Lag {
    /// Whether no deadline is acted on in this turn: the kernel has more, and not for too many turns in a row. `bound` counts the
    /// times that it was for too many.
    pub(crate) fn holds_back(&mut self, has_more: bool, bound: &Counter) -> bool {
        let holds_back = has_more && self.turns < TURNS_BEHIND_MAX;
        if has_more && !holds_back {
            bound.add(1);
        }
        self.turns = if holds_back { self.turns + 1 } else { 0 };
        holds_back
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, Lag, TURNS_BEHIND_MAX};

    #[test]
    fn deadlines_wait_for_so_many_turns() {
        let (mut lag, bound) = (Lag::default(), Counter::default());
        assert!(!lag.holds_back(false, &bound));
        for times in 1..=3 {
            assert!((0..TURNS_BEHIND_MAX).all(|_| lag.holds_back(true, &bound)));
            assert!(!lag.holds_back(true, &bound), "now they are acted on");
            assert_eq!(bound.get(), times);
        }
        assert!(lag.holds_back(true, &bound));
        assert!(!lag.holds_back(false, &bound), "all is fetched");
        assert_eq!(bound.get(), 3);
    }
}
