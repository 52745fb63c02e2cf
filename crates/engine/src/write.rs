//! Verb 5, write: sends the output of a connection's turn in one send.

use shearwater_io::{CloseKind, Driver, Output, SendError, Token};

use crate::conn::{Flag, Phase};
use crate::limits::SPARE_OUTPUT_BYTES_MAX;
use crate::service::Service;
use crate::worker::Worker;
use crate::worker_state::WorkerState;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Ends a connection's part of the turn: sends its output and releases what is no longer needed.
    pub(crate) fn flush(&mut self, token: Token) {
        let state = &mut self.state;
        if state.responder.out.is_empty() {
            return self.flush_nothing(token);
        }
        let WorkerState { table, responder, .. } = state;
        let is_awaited = || table.get(token).waits_for_sent();
        if self.driver.send_at_once(token, &mut responder.out, is_awaited) {
            return self.sent_at_once(token);
        }
        state.responder.out = state.outputs.take();
        let conn = state.table.get(token);
        conn.set(Flag::Sending);
        conn.unset(Flag::Measured);
        state.write_began(token, self.driver.now_ms());
        self.settle(token);
    }

    /// Ends a turn without output. In the last phase the response was truncated: the connection closes.
    fn flush_nothing(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        if conn.phase == Phase::LastResponse && !conn.has(Flag::Sending) {
            return self.finish(token);
        }
        self.settle(token);
    }

    /// Reuses the output after the kernel has taken all of it at once.
    fn sent_at_once(&mut self, token: Token) {
        self.state.responder.out.clear(SPARE_OUTPUT_BYTES_MAX);
        self.resume_reading(token);
    }

    /// Handles the end of a send: recycles the output and resumes the connection.
    pub(crate) fn sent(&mut self, token: Token, output: Output, result: &Result<(), SendError>) {
        self.state.outputs.recycle(output);
        let Some(conn) = self.state.table.find(token) else { return };
        conn.unset(Flag::Sending);
        if conn.phase == Phase::Closing {
            return;
        }
        match result {
            Ok(()) => self.resume_reading(token),
            Err(SendError::Broken(_) | SendError::Cancelled) => self.broken(token),
            // The file became shorter than its Content-Length, or changed: only a close signals that to the
            // client.
            Err(SendError::FileShort | SendError::FileChanged | SendError::FileUnreadable(_)) => {
                self.state.counters.files_failed.add(1);
                self.shut(token, CloseKind::Normal);
            }
        }
    }

    /// Closes the connection after its last response, or waits for its next request.
    pub(crate) fn resume_reading(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        if conn.phase == Phase::LastResponse {
            return self.finish(token);
        }
        if conn.is_handled() {
            return self.resume_handler(token);
        }
        let (phase, is_settled) = (conn.phase, conn.is_settled());
        if !is_settled && conn.is_serving() && self.state.blocks.has_input(conn.block) {
            self.state.queue(token);
        }
        self.state.arm_reading(token, phase, self.driver.now_ms());
        if !is_settled {
            self.settle(token);
        }
    }

    /// Reconciles a connection between two turns: releases an unneeded block and handles a pending FIN.
    pub(crate) fn settle(&mut self, token: Token) {
        let conn = self.state.table.get(token);
        if conn.is_settled() {
            return;
        }
        match conn.phase {
            Phase::Head | Phase::Body => {}
            Phase::ReadingBody | Phase::Streaming => self.hold_back(token),
            Phase::Handling => return self.hand_over(token),
            Phase::First | Phase::Idle | Phase::StrayCr | Phase::StrayLine => {
                self.state.blocks.release_spent(&mut conn.block);
            }
            // Nothing more is read: the last request's memory need not wait for the response to be sent.
            Phase::LastResponse | Phase::Linger | Phase::HandedOver | Phase::Closing | Phase::Free => {
                self.state.blocks.release(&mut conn.block);
            }
        }
        self.unpause(token);
        if self.state.table.get(token).has(Flag::ReadClosed) && self.state.is_input_processed(token) {
            self.ended(token);
        }
    }
}
