//! Verb 6, close: so that the last answer arrives and nothing is left behind.

use shearwater_io::{CloseKind, Driver, Token};

use crate::app::App;
use crate::conn::{Flag, Phase};
use crate::refuse::Refusal;
use crate::worker::Worker;

impl<D: Driver, A: App> Worker<D, A> {
    /// The last answer is sent. Closing with input unread would send a reset, which can destroy the answer (RFC 9112
    /// section 9.6): where the client may still be sending, our side is shut and the rest read and thrown away.
    pub(crate) fn finish(&mut self, token: Token) {
        let conn = self.service.table.get(token);
        if !conn.has(Flag::Linger) || conn.has(Flag::ReadClosed) {
            return self.shut(token, CloseKind::Normal);
        }
        conn.phase = Phase::Linger;
        conn.progress = 0;
        if conn.has(Flag::Paused) {
            conn.unset(Flag::Paused);
            self.driver.recv_resume(token);
        }
        self.service.blocks.release(&mut conn.block);
        self.service.linger_began(token, self.driver.now_ms());
        self.driver.shutdown_write(token);
    }

    /// Bytes that come after the last answer are counted and thrown away.
    pub(crate) fn linger_received(&mut self, token: Token, len: usize) {
        let conn = self.service.table.get(token);
        conn.progress = conn.progress.saturating_add(u32::try_from(len).unwrap_or(u32::MAX));
        if conn.progress > self.service.limits.linger_bytes_max {
            self.service.counters.hit_linger_bytes.add(1);
            self.shut(token, CloseKind::Reset);
        }
    }

    /// The client has ended its side and everything that it sent is answered, but for a request that it left unfinished.
    pub(crate) fn ended(&mut self, token: Token) {
        if self.service.table.get(token).is_idle() {
            return self.shut(token, CloseKind::Normal);
        }
        self.service.refuse(token, Refusal::Incomplete);
        self.flush(token);
    }

    /// The peer or the network has broken a connection: counted once, whoever tells of it, and not where it was closed here before.
    pub(crate) fn broken(&mut self, token: Token) {
        let service = &mut self.service;
        if service.table.get(token).phase != Phase::Closing {
            service.counters.connections_broken.add(1);
        }
        self.shut(token, CloseKind::Normal);
    }

    /// Lets go of a connection. Its slot is free again after the driver's `Closed`.
    pub(crate) fn shut(&mut self, token: Token, kind: CloseKind) {
        let service = &mut self.service;
        match service.table.get(token).phase {
            Phase::Closing => return,
            Phase::HandedOver => self.handed_over.open -= 1,
            _ => {}
        }
        service.give_up_call(token);
        service.table.get(token).phase = Phase::Closing;
        if kind == CloseKind::Reset {
            service.counters.connections_reset.add(1);
        }
        self.leave(token);
        self.driver.close(token, kind);
    }

    /// Forgets what a connection owns beyond its slot.
    pub(crate) fn leave(&mut self, token: Token) {
        let service = &mut self.service;
        service.blocks.release(&mut service.table.get(token).block);
        service.wheel.clear(service.table.conns_mut(), token.slot());
    }
}
