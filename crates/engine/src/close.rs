//! Verb 6, close: delivers the last response, then releases the connection.

use shearwater_io::{CloseKind, Driver, Token};

use crate::conn::{Flag, Phase};
use crate::refuse::Refusal;
use crate::service::Service;
use crate::worker::Worker;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Closes after the last response was sent. Closing with unread input would send a reset, which can
    /// destroy the response (RFC 9112 section 9.6): if the client may still be sending, shuts down our side
    /// and discards the rest.
    pub(crate) fn finish(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        if !conn.has(Flag::Linger) || conn.has(Flag::ReadClosed) {
            return self.shut(token, CloseKind::Normal);
        }
        conn.phase = Phase::Linger;
        conn.progress = 0;
        if conn.has(Flag::Paused) {
            conn.unset(Flag::Paused);
            self.driver.recv_resume(token);
        }
        self.state.blocks.release(&mut conn.block);
        self.state.linger_began(token, self.driver.now_ms());
        self.driver.shutdown_write(token);
    }

    /// Counts and discards bytes that arrive after the last response.
    pub(crate) fn linger_received(&mut self, token: Token, len: usize) {
        let conn = self.state.table.get(token);
        conn.progress = conn.progress.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
        if conn.progress > self.state.limits.linger_bytes_max {
            self.state.counters.hit_linger_bytes.add(1);
            self.shut(token, CloseKind::Reset);
        }
    }

    /// Closes after the client's FIN; a request that is still unfinished is rejected.
    pub(crate) fn ended(&mut self, token: Token) {
        if self.state.table.get(token).is_idle() {
            return self.shut(token, CloseKind::Normal);
        }
        self.state.refuse(token, Refusal::Incomplete);
        self.flush(token);
    }

    /// Closes a connection that the peer or the network has broken, and counts it once unless it was already
    /// closed here.
    pub(crate) fn broken(&mut self, token: Token) {
        let state = &mut self.state;
        if state.table.get(token).phase != Phase::Closing {
            state.counters.connections_broken.add(1);
        }
        self.shut(token, CloseKind::Normal);
    }

    /// Closes a connection. Its slot is free again after the driver's `Closed`.
    pub(crate) fn shut(&mut self, token: Token, kind: CloseKind) {
        let state = &mut self.state;
        match state.table.get(token).phase {
            Phase::Closing => return,
            Phase::HandedOver => self.handed_over.open -= 1,
            _ => {}
        }
        state.drop_call(token);
        state.table.get(token).phase = Phase::Closing;
        if kind == CloseKind::Reset {
            state.counters.connections_reset.add(1);
        }
        self.leave(token);
        self.driver.close(token, kind);
    }

    /// Releases all state of a connection beyond its slot.
    pub(crate) fn leave(&mut self, token: Token) {
        let state = &mut self.state;
        state.blocks.release(&mut state.table.get(token).block);
        state.wheel.clear(state.table.conns_mut(), token.slot());
    }
}
