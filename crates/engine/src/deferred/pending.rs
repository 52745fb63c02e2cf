//! Deferred requests: started, fed with their body, and finished when their handler is done.

use std::rc::Rc;

use shearwater_http1::{BodyDecoder, Framing, Method};
use shearwater_io::Token;
use shearwater_tasks::TaskId;

use crate::connection::{Flag, NONE};
use crate::deferred::deferral::Deferral;
use crate::deferred::poll::PendingCall;
use crate::memory::blocks::Destination;
use crate::observe::capture::Noted;
use crate::request::body::waits_for_continue;
use crate::request::body::{BodyBudget, Piece, decode};
use crate::request::refusal::Refusal;
use crate::request::{DriverView, Request};
use crate::request_loop::{Step, StepResult, facts};
use crate::response::responder::{Disposition, Outcome, RequestFacts};
use crate::service::Service;
use crate::worker_state::WorkerState;

/// Starting.
impl<S: Service> WorkerState<S> {
    /// Returns true if the buffers have room for a deferred request beside `held` bytes, if need be by eviction.
    pub(crate) fn has_room_for(&mut self, token: Token, deferral: &Deferral, held: usize) -> bool {
        let Deferral::Deferred(deferred) = deferral else { return true };
        !self.blocks.is_full() || self.make_room_for(token, held + deferred.exchange.held_bytes())
    }

    /// Defers a request of `len` bytes. If it is rejected, it is discarded together with what follows it.
    #[cold]
    pub(crate) fn defer_whole(
        &mut self,
        token: Token,
        deferral: Deferral,
        facts: RequestFacts,
        len: usize,
    ) -> Step {
        let has_room = self.has_room_for(token, &deferral, 0);
        let result = self.defer(token, deferral, facts, has_room);
        Step::new(if result == StepResult::Refused { 0 } else { len }, result)
    }

    /// Polls a handler that did not respond to a complete request at once, and keeps it unless it is ready.
    pub(crate) fn defer(
        &mut self,
        token: Token,
        deferral: Deferral,
        facts: RequestFacts,
        has_room: bool,
    ) -> StepResult {
        // An upgrade was already responded to with a `101`.
        let Deferral::Deferred(deferred) = deferral else {
            return self.refuse_as(token, Refusal::CallsFull, facts.method == Method::Head).result;
        };
        let mut pending = PendingCall::new(deferred, facts);
        if !has_room {
            if let Some(exchanges) = &mut self.exchanges {
                exchanges.describe(token, &pending.exchange.head(), self.proxies.as_deref());
            }
            self.release_call(pending);
            return self.refuse_as(token, Refusal::BuffersFull, facts.method == Method::Head).result;
        }
        if pending.is_new {
            self.poll(&mut pending);
        }
        let Some(disposition) = self.pump(&mut pending) else {
            self.keep_call(token, pending);
            self.note_output(token);
            self.table.get(token).begin_handling();
            return StepResult::Waits;
        };
        self.release_call(pending);
        self.note_end(token, disposition);
        self.end_request(token, disposition);
        StepResult::Responded
    }

    /// Calls a handler that pulls the body itself.
    pub(crate) fn begin_call(
        &mut self,
        token: Token,
        bytes: &[u8],
        rest: &[u8],
        driver: &dyn DriverView,
    ) -> Step {
        let head = self.parser.head(bytes);
        let framing = head.framing();
        let all_is_here = matches!(framing, Framing::Length(len) if len <= rest.len() as u64);
        if let Framing::Length(len) = framing
            && len > self.limits.body_bytes_max
        {
            self.report_body_limit();
            return self.refuse_head(token, Refusal::BodyTooLarge, bytes);
        }
        let owes_continue = waits_for_continue(&head, rest);
        let is_last = self.is_last(token, false);
        let head = self.parser.head(bytes);
        let facts = facts(&head, false, is_last);
        let kept = (framing == Framing::Length(0)).then_some(&[][..]);
        let request = Request::new(head, kept, driver, self.proxies.as_deref(), token);
        let is_followed = all_is_here && body_len(framing) < rest.len();
        let unread = RequestFacts { is_last: is_last || !all_is_here, is_followed, ..facts };
        let deferred = match self.responder.call(&self.service, &request, unread, &mut self.calls) {
            Outcome::Deferred(Deferral::Deferred(deferred)) => deferred,
            outcome => {
                let body = if all_is_here { body_len(framing) } else { 0 };
                if self.exchanges.is_some() {
                    self.note_response(token, bytes, all_is_here, Noted::of(&outcome));
                }
                return self.conclude(token, outcome, facts, bytes.len() + body);
            }
        };
        deferred.exchange.expect_body();
        let destination = Destination::Call(Rc::clone(&deferred.exchange));
        let mut pending = PendingCall::new(deferred, facts);
        pending.owes_continue = owes_continue;
        let budget = BodyBudget::begin(&self.body_rate_rule, self.now_ms);
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.begin(token);
        }
        let conn = self.table.get(token);
        conn.begin_read_body();
        let mut block = self.blocks.take(token, &mut conn.block);
        block.decoder = Some(BodyDecoder::new(framing, self.limits.body()));
        (block.body_bytes, block.body_bytes_max) = (0, self.limits.body_bytes_max);
        block.budget = budget;
        block.destination = destination;
        block.call = Some(pending);
        self.blocks.put(conn.block, block);
        if !self.make_room(token) {
            return self.refuse(token, Refusal::BuffersFull);
        }
        Step::new(bytes.len(), StepResult::Body)
    }
}

/// Continuing.
impl<S: Service> WorkerState<S> {
    /// Passes the next piece of a body to its handler.
    pub(crate) fn feed(&mut self, token: Token, input: &[u8]) -> Step {
        let mut index = self.table.get(token).block;
        let mut block = self.blocks.take(token, &mut index);
        if block.is_fed() {
            self.blocks.put(index, block);
            return Step::new(0, StepResult::Waits);
        }
        let bytes_before = block.body_bytes;
        let (consumed, piece) = decode(&mut block, input, &mut self.blocks.pool);
        block.budget = block.budget.earn(&self.body_rate_rule, block.body_bytes - bytes_before, self.now_ms);
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.receive_body(token, block.body_bytes);
        }
        let is_new = block.call.as_ref().is_some_and(|pending| pending.is_new);
        let is_complete = matches!(piece, Piece::Complete) && block.call.is_some();
        if let (true, Some(pending)) = (is_complete, &block.call) {
            pending.exchange.end_body();
            block.decoder = None;
            block.destination = Destination::Discard;
        }
        self.blocks.put(index, block);
        if is_complete {
            self.table.get(token).begin_handling();
        }
        match piece {
            Piece::Refused(refusal) => {
                if matches!(refusal, Refusal::BodyTooLarge) {
                    self.report_body_limit();
                }
                return Step::new(consumed, self.refuse(token, refusal).result);
            }
            Piece::Starved | Piece::Complete | Piece::Full => {}
        }
        if !self.make_room(token) {
            return Step::new(consumed, self.refuse(token, Refusal::BuffersFull).result);
        }
        if is_new {
            return Step::new(consumed, self.run_call(token, consumed < input.len()));
        }
        Step::new(consumed, StepResult::Waits)
    }

    /// Polls a connection's handler again and sends its output. `is_followed` means that more input has
    /// arrived after the request and isn't stored yet.
    pub(crate) fn run_call(&mut self, token: Token, is_followed: bool) -> StepResult {
        let Some(mut pending) = self.take_call(token) else { return StepResult::Waits };
        self.poll(&mut pending);
        self.advance_call(token, pending, is_followed)
    }

    /// Continues a connection's call after a send.
    pub(crate) fn resume_call(&mut self, token: Token) {
        if let Some(pending) = self.take_call(token) {
            pending.exchange.wake_writer();
            self.advance_call(token, pending, false);
        }
    }

    fn advance_call(&mut self, token: Token, mut pending: PendingCall, is_followed: bool) -> StepResult {
        let conn = self.table.get(token);
        // Only one send at a time: further output waits for its end.
        if conn.has(Flag::Sending) {
            self.keep_call(token, pending);
            return StepResult::Waits;
        }
        let is_reading_body = conn.is_reading_body();
        pending.is_reading_body = is_reading_body;
        pending.facts.is_followed = is_followed || self.blocks.has_input(conn.block);
        match self.pump(&mut pending) {
            None => {
                self.note_output(token);
                let is_continued = self.send_continue(&mut pending);
                if is_reading_body && pending.disposition.is_some() {
                    self.table.get(token).begin_streaming();
                }
                self.keep_call(token, pending);
                if is_continued {
                    self.restart_budget(token);
                }
                StepResult::Waits
            }
            // The rest of the body follows.
            Some(disposition) if is_reading_body && disposition != Disposition::Truncated => {
                self.end_call(token, pending, Disposition::Last)
            }
            Some(disposition) => self.end_call(token, pending, disposition),
        }
    }

    fn end_call(&mut self, token: Token, pending: PendingCall, disposition: Disposition) -> StepResult {
        let conn = self.table.get(token);
        let mut block = self.blocks.take(token, &mut conn.block);
        block.end_request(&mut self.blocks.pool);
        self.blocks.put(conn.block, block);
        self.release_call(pending);
        self.note_end(token, disposition);
        self.end_request(token, disposition);
        StepResult::Responded
    }
}

/// Storing and releasing.
impl<S> WorkerState<S> {
    fn take_call(&mut self, token: Token) -> Option<PendingCall> {
        let index = self.table.get(token).block;
        self.blocks.get_mut(index)?.call.take()
    }

    fn keep_call(&mut self, token: Token, pending: PendingCall) {
        let conn = self.table.get(token);
        let mut block = self.blocks.take(token, &mut conn.block);
        block.call = Some(pending);
        self.blocks.put(conn.block, block);
    }

    /// Returns the task that handles a connection's request.
    pub(crate) fn task_of(&mut self, token: Token) -> Option<TaskId> {
        let index = self.table.find(token)?.block;
        self.blocks.get_mut(index)?.call.as_ref().map(|pending| pending.task)
    }

    /// Returns true if a connection's handler is to be dropped as soon as the client sends a FIN.
    pub(crate) fn ends_with_client(&mut self, token: Token) -> bool {
        let Some(conn) = self.table.find(token).filter(|conn| conn.is_handled()) else { return false };
        let index = conn.block;
        let pending = self.blocks.get_mut(index).and_then(|block| block.call.as_ref());
        pending.is_some_and(|pending| pending.exchange.ends_with_client())
    }

    /// Returns true if the client has sent a FIN, possibly after input that is still to be received.
    pub(crate) fn is_half_closed(&mut self, token: Token) -> bool {
        let conn = self.table.get(token);
        let index = conn.block;
        conn.has(Flag::ReadClosed) || self.blocks.get_mut(index).is_some_and(|block| block.fin_received)
    }

    /// Returns true if the client waits for a `100` before it sends its body.
    pub(crate) fn owes_continue(&mut self, token: Token) -> bool {
        let index = self.table.get(token).block;
        let pending = self.blocks.get_mut(index).and_then(|block| block.call.as_ref());
        pending.is_some_and(|pending| pending.owes_continue)
    }

    /// Returns true if the handler has room for more body than has been received.
    pub(crate) fn takes_more(&mut self, token: Token) -> bool {
        let index = self.table.get(token).block;
        self.blocks.get_mut(index).is_some_and(|block| block.input.is_empty() && !block.is_fed())
    }

    /// Returns true if the handler has room for received but unprocessed body.
    pub(crate) fn can_feed(&mut self, token: Token) -> bool {
        let conn = self.table.get(token);
        let (is_reading_body, index) = (conn.is_reading_body(), conn.block);
        is_reading_body
            && self.blocks.get_mut(index).is_some_and(|block| !block.input.is_empty() && !block.is_fed())
    }

    /// Returns true if all received input has been processed.
    pub(crate) fn is_input_processed(&mut self, token: Token) -> bool {
        let conn = self.table.get(token);
        let (is_live, is_reading_body, index) = (conn.is_live(), conn.is_reading_body(), conn.block);
        is_live && !(is_reading_body && self.blocks.has_input(index))
    }

    pub(crate) fn release_call(&mut self, pending: PendingCall) {
        self.calls.abandon(pending.exchange, pending.task);
    }

    /// Drops a connection's handler; returns true if a part of its response has been sent or queued.
    pub(crate) fn drop_call(&mut self, token: Token) -> bool {
        let conn = self.table.get(token);
        if conn.block == NONE || !conn.is_handled() {
            return false;
        }
        let Some(pending) = self.take_call(token) else { return false };
        let has_begun = pending.disposition.is_some();
        let index = self.table.get(token).block;
        if let Some(block) = self.blocks.get_mut(index) {
            block.destination = Destination::Discard;
        }
        self.release_call(pending);
        has_begun
    }
}

fn body_len(framing: Framing) -> usize {
    match framing {
        Framing::Length(len) => usize::try_from(len).unwrap_or(usize::MAX),
        Framing::None | Framing::Chunked => 0,
    }
}
