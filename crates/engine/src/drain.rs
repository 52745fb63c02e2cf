//! Draining: accepts no connections, but responds to everything that was received.

use shearwater_io::{CloseKind, Driver, Token};

use crate::app::App;
use crate::conn::{Conn, Flag, Phase};
use crate::control::{Notice, Order};
use crate::life::{Accepting, Life};
use crate::wheel::tick_at;
use crate::worker::Worker;

impl<D: Driver, A: App> Worker<D, A> {
    /// Acts on the order in force after a wake-up.
    pub(crate) fn woken(&mut self) {
        self.take_back();
        match self.service.control.order() {
            Order::Serve => {}
            Order::Drain => self.begin_drain(),
            Order::Stop => self.end(),
        }
    }

    /// Notes that the listeners are closed.
    pub(crate) fn accept_stopped(&mut self) {
        self.accepting = Accepting::Stopped;
    }

    fn begin_drain(&mut self) {
        if self.life != Life::Serving {
            return;
        }
        let now_ms = self.driver.now_ms();
        self.life = Life::Draining { until_ms: now_ms.saturating_add(self.service.control.drain_ms()) };
        self.service.responder.draining = true;
        self.accepting = Accepting::Stopping;
        self.driver.accept_stop();
        // A request may be in flight on a connection that looks idle: waits a little for it.
        let grace = tick_at(now_ms.saturating_add(self.service.timeouts.drain_idle_ms));
        for token in self.service.table.tokens(|conn| conn.is_idle() && !conn.has(Flag::Sending)) {
            self.service.set_deadline(token, grace);
        }
        for token in self.service.table.tokens(|conn| conn.phase == Phase::Linger) {
            self.service.linger_began(token, now_ms);
        }
    }

    /// Closes all connections.
    pub(crate) fn end(&mut self) {
        if self.life == Life::Ending {
            return;
        }
        self.life = Life::Ending;
        if self.accepting == Accepting::Open {
            self.accepting = Accepting::Stopping;
            self.driver.accept_stop();
        }
        self.tell_cut_off();
        for token in self.service.table.tokens(|conn| conn.phase != Phase::Closing) {
            self.shut(token, CloseKind::Normal);
        }
    }

    /// Counts and reports the connections that are about to be closed during a request or response.
    fn tell_cut_off(&mut self) {
        let service = &mut self.service;
        let connections = service.table.tokens(Conn::is_at_work).len();
        if connections > 0 {
            service.counters.connections_cut_off.add(connections as u64);
            service.tell(Notice::CutOff { worker: service.worker, connections });
        }
    }

    /// Returns true while ending: connections still accepted from the kernel's queue are closed at once.
    pub(crate) fn is_ending(&self) -> bool {
        self.life == Life::Ending
    }

    /// Returns true once all connections are closed. Handed-over connections are left to the program.
    pub(crate) fn is_over(&self) -> bool {
        self.life != Life::Serving
            && self.accepting == Accepting::Stopped
            && self.driver.connections() == self.handed_over.open
    }

    /// Counts handed-over connections as closed when the worker ends.
    pub(crate) fn forget_handed_over(&mut self) {
        for token in self.service.table.tokens(|conn| conn.phase == Phase::HandedOver) {
            self.shut(token, CloseKind::Normal);
            self.closed(token);
        }
    }

    /// Ends a drain that has timed out.
    pub(crate) fn check_drain(&mut self) {
        if let Life::Draining { until_ms } = self.life
            && self.driver.now_ms() >= until_ms
        {
            self.end();
        }
    }

    /// Returns the time limit of the drain.
    pub(crate) fn drain_until_ms(&self) -> Option<u64> {
        match self.life {
            Life::Draining { until_ms } => Some(until_ms),
            Life::Serving | Life::Ending => None,
        }
    }

    /// Closes a connection that was accepted while ending.
    pub(crate) fn turn_away(&mut self, token: Token) {
        self.service.counters.connections_accepted.add(1);
        self.service.table.open(token);
        self.shut(token, CloseKind::Normal);
    }
}
