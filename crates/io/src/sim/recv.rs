//! Receiving: lent bytes and their end.

use std::io::{Error, ErrorKind};

use super::Fault;
use super::kernel::Kernel;
use crate::{Event, ReadEnd, Token};

impl Kernel {
    pub(super) fn receive(&mut self, slot: usize, fault: Option<Fault>, lent: &mut Vec<u8>) -> Option<Event> {
        let bytes_max = self.options.recv_buffer_bytes.max(1);
        let conn = self.conn_at(slot)?;
        let most = conn.wire.borrow().readable().min(bytes_max).min(conn.receivable_max());
        let bytes = if fault == Some(Fault::Short) { self.rng.shorten(most) } else { most };
        if bytes == 0 {
            return None; // a reset destroyed them
        }
        let (turn, fin_follows) = (self.turn, self.rng.chance(self.options.fin_with_data));
        let conn = self.conn_at(slot)?;
        conn.wire.borrow_mut().server_reads(bytes, lent);
        conn.used.recvs += 1;
        if conn.paused {
            conn.after_pause_bytes += bytes;
        }
        if conn.wire.borrow().at_end() && !fin_follows {
            conn.idle_turn = turn;
        }
        let token = conn.token;
        self.trace.add_bytes(bytes);
        Some(Event::Received { token })
    }

    pub(super) fn report_end(&mut self, slot: usize) -> Option<Event> {
        let conn = self.conn_at(slot)?;
        conn.end_told = true;
        let broken = conn.wire.borrow().is_broken();
        let end = if broken {
            ReadEnd::Broken(Error::new(ErrorKind::ConnectionReset, "reset by the simulated peer"))
        } else {
            ReadEnd::Eof
        };
        Some(Event::ReadClosed { token: conn.token, end })
    }

    /// A reset loses what is unread, a FIN doesn't (R6).
    pub(super) fn report_end_while_paused(&mut self, slot: usize) -> Option<Event> {
        let conn = self.conn_at(slot)?;
        if conn.wire.borrow().is_broken() {
            return self.report_end(slot);
        }
        conn.fin_told = true;
        Some(Event::FinReceived { token: conn.token })
    }

    pub(super) fn recv_pause(&mut self, token: Token) {
        let leaks = self.rng.chance(self.options.data_after_pause);
        let Some(conn) = self.conn_at(token.slot()) else { return };
        if !conn.paused {
            conn.paused = true;
            conn.after_pause_bytes = 0;
            conn.used.leaks = leaks;
        }
    }

    pub(super) fn recv_resume(&mut self, token: Token) {
        if let Some(conn) = self.conn_at(token.slot()) {
            conn.paused = false;
            self.enqueue(token.slot());
        }
    }
}
