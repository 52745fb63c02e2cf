//! The end of a worker: it stops accepting, and its connections end.

use crate::connection::{Conn, Flag, Phase};
use crate::server::control::Order;
use crate::server::drain::{Accepting, Lifecycle};
use crate::server::notice::Notice;
use crate::service::Service;
use crate::worker::Worker;
use shearwater_io::{CloseKind, Driver, Token};

impl<D: Driver, S: Service> Worker<D, S> {
    /// Acts on a new service, changed listeners and the order in force after a wake-up.
    pub(crate) fn woken(&mut self) {
        self.free_returned();
        self.reload();
        self.change_listeners();
        self.share_room();
        match self.state.control.order() {
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
        if self.lifecycle != Lifecycle::Serving {
            return;
        }
        let now_ms = self.driver.now_ms();
        self.lifecycle =
            Lifecycle::Draining { until_ms: now_ms.saturating_add(self.state.control.drain_ms()) };
        self.state.responder.ends_connections = true;
        self.state.leaving.drain();
        self.accepting = Accepting::Stopping;
        self.driver.accept_stop();
        self.hasten_idle();
        self.drain_http2();
    }

    /// Closes all connections.
    pub(crate) fn end(&mut self) {
        if self.lifecycle == Lifecycle::Ending {
            return;
        }
        self.lifecycle = Lifecycle::Ending;
        if self.accepting == Accepting::Open {
            self.accepting = Accepting::Stopping;
            self.driver.accept_stop();
        }
        self.report_cut_off();
        for token in self.state.table.tokens(|conn| conn.phase() != Phase::Closing) {
            self.shut(token, CloseKind::Normal);
        }
    }

    /// Counts and reports the connections that are about to be closed during a request or response.
    fn report_cut_off(&mut self) {
        let state = &mut self.state;
        // A connection between requests may wait only for the client's FIN.
        let is_at_work = |conn: &Conn| match conn.phase() {
            Phase::Evicted | Phase::Truncated | Phase::LastResponse => true,
            _ if conn.is_silent() => conn.has(Flag::Sending) || conn.has(Flag::Queued),
            _ => conn.is_serving(),
        };
        let mut tokens = state.table.tokens(is_at_work);
        // Tunnels have no end of their own.
        let by_client = state.http2.tunnels.by_client();
        tokens.retain(|token| {
            let conn = state.table.get(*token);
            let tunnels = by_client.get(token).copied().unwrap_or_default();
            conn.phase() != Phase::Multiplexed
                || conn.has(Flag::Sending)
                || state.open_streams(*token) > tunnels
        });
        let connections = tokens.len();
        if connections > 0 {
            state.counters.connections_cut_off.add(connections as u64);
            state.notify(Notice::CutOff { worker: state.worker, connections });
        }
    }

    /// Returns true while ending: connections still accepted from the kernel's queue are closed at once.
    pub(crate) fn is_ending(&self) -> bool {
        self.lifecycle == Lifecycle::Ending
    }

    /// Returns true once all connections are closed. Handed-over connections are left to the program.
    pub(crate) fn is_over(&self) -> bool {
        self.lifecycle != Lifecycle::Serving
            && self.accepting == Accepting::Stopped
            && self.driver.connections() == self.handed_over.open
            && !self.handed_over.is_detaching()
    }

    /// Counts handed-over connections as closed when the worker ends.
    pub(crate) fn release_handed_over(&mut self) {
        for token in self.state.table.tokens(|conn| conn.phase() == Phase::HandedOver) {
            self.shut(token, CloseKind::Normal);
            self.closed(token);
        }
    }

    /// Ends a drain that has timed out, and tunnels that nothing else is left beside.
    pub(crate) fn check_drain(&mut self) {
        if let Lifecycle::Draining { until_ms } = self.lifecycle
            && self.driver.now_ms() >= until_ms
        {
            self.end();
        }
        if !self.tunnels.is_empty() || !self.state.http2.tunnels.is_empty() {
            self.end_tunnels();
        }
    }

    /// Returns the time limit of the drain.
    pub(crate) fn drain_until_ms(&self) -> Option<u64> {
        match self.lifecycle {
            Lifecycle::Draining { until_ms } => Some(until_ms),
            Lifecycle::Serving | Lifecycle::Ending => None,
        }
    }

    /// Closes a connection that was accepted while ending.
    pub(crate) fn close_accepted(&mut self, token: Token) {
        self.state.counters.connections_accepted.add(1);
        self.state.table.open(token, self.state.now_ms);
        self.shut(token, CloseKind::Normal);
    }
}
