//! Sends: the output of an event in one send, and what follows its end.

use shearwater_io::{CloseKind, Driver, Output, SendError, Token};

use crate::connection::{Flag, Phase};
use crate::limits::SPARE_OUTPUT_BYTES_MAX;
use crate::observe::record::ExchangeEnd;
use crate::response::fault::Fault;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker::state::WorkerState;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Sends the output of a connection's event in one send.
    pub(crate) fn flush(&mut self, token: Token) {
        let WorkerState { table, busy, responder, outputs, ledger, .. } = &mut self.state;
        if responder.out.is_empty() {
            if ledger.is_some() && !table.get(token).has(Flag::Sending) {
                self.note_flushed(token, true);
            }
            let conn = self.state.table.get(token);
            // A handler has ended its response without further output, or a stray line end is complete.
            if conn.phase() == Phase::Idle && !conn.has(Flag::Sending) && !conn.has(Flag::Fresh) {
                return self.output_sent(token);
            }
            return self.reconcile(token);
        }
        let is_awaited = || {
            let conn = table.get(token);
            // A client's FIN is handled after this turn's sends, and may close the connection.
            let is_http2 = conn.phase() == Phase::Multiplexed && !conn.has(Flag::ReadClosed);
            !(conn.is_quiet() || is_http2 && busy.needs_no_send(conn.busy))
        };
        if self.driver.send_at_once(token, &mut responder.out, is_awaited) {
            responder.out.clear(SPARE_OUTPUT_BYTES_MAX);
            if self.state.ledger.is_some() {
                self.note_flushed(token, true);
            }
            return self.output_sent(token);
        }
        // The driver has taken the output: the next event needs another one.
        responder.out = outputs.take();
        table.get(token).begin_send();
        if self.state.ledger.is_some() {
            self.note_flushed(token, false);
        }
        self.state.set_send_deadline(token);
        self.reconcile(token);
    }

    /// Handles a send that counted as done and isn't: it is in flight.
    #[cold]
    pub(crate) fn unsent(&mut self, token: Token) {
        if let Some(ledger) = &mut self.state.ledger {
            ledger.unsent(token);
        }
        let Some(conn) = self.state.table.find(token) else { return };
        if conn.phase() != Phase::Closing {
            conn.begin_send();
            self.state.set_send_deadline(token);
            self.reconcile(token);
        }
    }

    /// Handles the end of a send: recycles the output and resumes the connection.
    pub(crate) fn sent(&mut self, token: Token, output: Output, result: &Result<(), SendError>) {
        self.state.outputs.recycle(output);
        let Some(conn) = self.state.table.find(token) else { return self.sent_to_closing(token, result) };
        conn.end_send();
        if conn.phase() == Phase::Closing {
            return self.abort_records(token, self.end_by_close());
        }
        match result {
            Ok(()) => {
                self.note_sent(token);
                match self.state.table.get(token).phase() {
                    Phase::Multiplexed => self.frames_sent(token, true),
                    _ => self.output_sent(token),
                }
            }
            Err(SendError::Broken(_) | SendError::Cancelled) => self.broken(token),
            // The file became shorter than its Content-Length, or changed: only a close signals that to the
            // client.
            Err(error @ (SendError::FileShort | SendError::FileChanged | SendError::FileUnreadable(_))) => {
                self.state.faulty(Fault::CutShort(error.to_string()));
                if self.state.table.get(token).phase() == Phase::Multiplexed {
                    return self.cut_http2(token);
                }
                self.shut_as(token, CloseKind::Normal, ExchangeEnd::Truncated);
            }
        }
    }

    /// Continues a connection after its output: with its handler, with stored input, or by waiting for more.
    pub(crate) fn output_sent(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        // All that `reconcile` would find: most responses end here.
        if conn.is_quiet() {
            return self.state.set_idle_deadline(token);
        }
        if conn.phase() == Phase::Multiplexed {
            return self.frames_sent(token, false);
        }
        if self.state.is_handled(token) {
            return self.continue_after_send(token);
        }
        let conn = self.state.table.get(token);
        conn.restart_deadline();
        if conn.is_serving() && self.state.busy.has_input(conn.busy) {
            self.state.queue(token);
        }
        self.reconcile(token);
    }
}
