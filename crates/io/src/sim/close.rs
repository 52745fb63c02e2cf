//! Closing: FIN, the end of a token, and peers that outlive it.

use super::kernel::Kernel;
use super::trace::OperationKind;
use crate::{CloseKind, Event, SendError, Token};

impl Kernel {
    pub(super) fn shutdown_write(&mut self, token: Token) {
        let Some(conn) = self.conn_at(token.slot()) else { return };
        assert!(conn.sending.is_none(), "clause C1: {token:?} has a send in flight");
        let fault = self.operation(OperationKind::Shutdown, Some(token), false);
        self.apply_fault_at_verb(token.slot(), fault);
        if let Some(conn) = self.conn_at(token.slot()) {
            conn.wire.borrow_mut().server_finishes();
        }
        self.enqueue(token.slot());
    }

    pub(super) fn close(&mut self, token: Token, kind: CloseKind) {
        let fault = self.operation(OperationKind::Close, Some(token), false);
        self.apply_fault_at_verb(token.slot(), fault);
        let Some(conn) = self.conn_at(token.slot()) else { return };
        conn.closing = true;
        if let Some(sending) = &mut conn.sending {
            sending.decided.get_or_insert(Err(SendError::Cancelled));
        }
        match kind {
            CloseKind::Normal => conn.wire.borrow_mut().server_closes(),
            CloseKind::Reset => conn.wire.borrow_mut().server_resets(),
        }
        self.enqueue_completion(token.slot());
    }

    pub(super) fn report_closed(&mut self, slot: usize) -> Option<Event> {
        let conn = self.remove(slot)?;
        if conn.wire.borrow().has_bytes_for_peer() {
            self.departed.push(conn.wire);
        }
        Some(Event::Closed { token: conn.token })
    }
}
