//! Deadlines: which one holds when, and what happens when it has come.

use shearwater_io::{CloseKind, Driver, Token};

use crate::app::App;
use crate::conn::{Flag, Phase};
use crate::limits::{EXPIRIES_PER_TURN_MAX, TURNS_BEHIND_MAX};
use crate::refuse::Refusal;
use crate::service::Service;
use crate::timer::Tick;
use crate::wheel::{coarse_tick_at, tick_at};
use crate::worker::Worker;

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
    pub(crate) fn body_began(&mut self, token: Token) {
        self.table.get(token).unset(Flag::FirstHead);
        self.set_deadline(token, tick_at(self.now_ms.saturating_add(self.timeouts.body_ms)));
    }

    pub(crate) fn write_began(&mut self, token: Token, now_ms: u64) {
        self.set_deadline(token, coarse_tick_at(now_ms.saturating_add(self.timeouts.write_ms)));
    }

    pub(crate) fn linger_began(&mut self, token: Token, now_ms: u64) {
        self.set_deadline(token, coarse_tick_at(now_ms.saturating_add(self.timeouts.linger_ms)));
    }

    /// An answer is sent: what is waited for next?
    pub(crate) fn reading_goes_on(&mut self, token: Token, now_ms: u64) {
        let deadline = match self.table.get(token).phase {
            Phase::Body => tick_at(now_ms.saturating_add(self.timeouts.body_ms)),
            Phase::Head => tick_at(now_ms.saturating_add(self.timeouts.head_ms)),
            _ if self.responder.draining => tick_at(now_ms.saturating_add(self.timeouts.drain_idle_ms)),
            _ => coarse_tick_at(now_ms.saturating_add(self.timeouts.idle_ms)),
        };
        self.set_deadline(token, deadline);
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
            let Some(slot) = service.wheel.expire(service.table.conns_mut(), now_ms) else { break };
            let token = service.table.token(slot);
            self.expired(token);
        }
    }

    fn expired(&mut self, token: Token) {
        let service = &mut self.service;
        let conn = service.table.get(token);
        if conn.has(Flag::Sending) {
            return self.write_expired(token);
        }
        match conn.phase {
            Phase::First | Phase::Idle => {
                service.counters.timeouts_idle.add(1);
                self.shut(token, CloseKind::Normal);
            }
            Phase::Head | Phase::Body => {
                service.counters.timeouts_request.add(1);
                service.refuse(token, Refusal::Timeout);
                self.flush(token);
            }
            Phase::Last | Phase::Linger => self.shut(token, CloseKind::Normal),
            Phase::Closing | Phase::Free => {}
        }
    }

    /// The client has taken some bytes since the last look, and gets more time; or it has taken none.
    fn write_expired(&mut self, token: Token) {
        let progress = self.driver.send_progress(token) as u32;
        let conn = self.service.table.get(token);
        if progress == conn.progress {
            self.service.counters.timeouts_write.add(1);
            return self.shut(token, CloseKind::Reset);
        }
        conn.progress = progress;
        self.service.write_began(token, self.driver.now_ms());
    }
}

/// Whether the worker lags behind the kernel. A deadline may then have passed only because its input wasn't fetched; but
/// load alone must not keep slow clients in.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    turns: u32,
}

impl Lag {
    /// Whether no deadline is acted on in this turn: the kernel has more, and not for too many turns in a row.
    pub(crate) fn holds_back(&mut self, has_more: bool) -> bool {
        let holds_back = has_more && self.turns < TURNS_BEHIND_MAX;
        self.turns = if holds_back { self.turns + 1 } else { 0 };
        holds_back
    }
}

#[cfg(test)]
mod tests {
    use super::{Lag, TURNS_BEHIND_MAX};

    #[test]
    fn deadlines_wait_for_so_many_turns() {
        let mut lag = Lag::default();
        assert!(!lag.holds_back(false));
        for _ in 0..3 {
            assert!((0..TURNS_BEHIND_MAX).all(|_| lag.holds_back(true)));
            assert!(!lag.holds_back(true), "now they are acted on");
        }
        assert!(lag.holds_back(true));
        assert!(!lag.holds_back(false), "all is fetched");
    }
}
