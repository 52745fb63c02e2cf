//! Deferred requests: started, and finished when their handler is done.

use shearwater_http1::{Framing, Head};
use shearwater_io::Token;

use crate::connection::Flag;
use crate::deferred::calls::Deferral;
use crate::deferred::calls::Deferred;
use crate::exchange::body::{To, waits_for_continue};
use crate::exchange::{Exchange, State};
use crate::request::refusal::Refusal;
use crate::request::{DriverView, Request};
use crate::response::facts::{Disposition, RequestFacts};
use crate::response::responder::Outcome;
use crate::service::Service;
use crate::worker::ledger_events::Source;
use crate::worker::request_loop::{Step, StepResult, facts};
use crate::worker::state::WorkerState;

/// Starting.
impl<S: Service> WorkerState<S> {
    /// Defers a request. If it is rejected, it is discarded together with what follows it.
    #[cold]
    pub(crate) fn defer_whole(
        &mut self,
        token: Token,
        deferral: Deferral,
        facts: RequestFacts,
        head: Head<'_>,
        consumed: usize,
    ) -> Step {
        // An upgrade was already responded to with a `101`.
        let Deferral::Deferred(deferred) = deferral else {
            return self.refuse_as(token, Refusal::CallsFull, Source::Head(head));
        };
        let mut exchange = self.open.begin(token);
        exchange.facts = facts;
        let result = self.defer(exchange, deferred);
        Step::new(if result == StepResult::Refused { 0 } else { consumed }, result)
    }

    /// Polls a handler that did not respond to a complete request at once, and keeps the exchange unless it is ready.
    pub(crate) fn defer(&mut self, mut exchange: Box<Exchange>, deferred: Deferred) -> StepResult {
        let token = exchange.token;
        // A kept request is compared with others together with its copy.
        let held = exchange.kept_bytes() + deferred.shared.held_bytes();
        let has_room = !self.busy.is_full() || self.make_room_for(token, held);
        exchange.handle(deferred, None, &mut self.busy.pool);
        if !has_room {
            let source = Source::Head(exchange.shared().head());
            let result = self.refuse_as(token, Refusal::BuffersFull, source).result;
            self.end_exchange(exchange);
            return result;
        }
        if exchange.is_new {
            self.poll(&mut exchange);
        }
        if let Some(disposition) = self.pump(&mut exchange) {
            return self.end_response(exchange, disposition);
        }
        self.keep_exchange(exchange);
        self.note_output(token, None);
        self.table.get(token).begin_waiting();
        StepResult::Waits
    }

    /// Calls a handler that pulls the body itself.
    pub(crate) fn begin_call(
        &mut self,
        token: Token,
        head: Head<'_>,
        head_len: usize,
        rest: &[u8],
        driver: &dyn DriverView,
    ) -> Step {
        let framing = head.framing();
        let all_is_here = matches!(framing, Framing::Length(len) if len <= rest.len() as u64);
        if let Framing::Length(len) = framing
            && len > self.limits.body_bytes_max
        {
            self.report_body_limit();
            return self.refuse_as(token, Refusal::BodyTooLarge, Source::Head(head));
        }
        let owes_continue = waits_for_continue(&head, rest);
        let is_last = self.is_last(token, false);
        let facts = facts(&head, false, is_last);
        let kept = (framing == Framing::Length(0)).then_some(&[][..]);
        let request = Request::new(head, kept, driver, self.proxies.as_deref(), token);
        let is_followed = all_is_here && body_len(framing) < rest.len();
        let unread = RequestFacts { is_last: is_last || !all_is_here, is_followed, ..facts };
        let deferred = match self.responder.call(&self.service, &request, unread, &mut self.calls) {
            Outcome::Deferred(Deferral::Deferred(deferred)) => deferred,
            outcome => {
                let body = if all_is_here { body_len(framing) } else { 0 };
                self.note_whole(token, head, all_is_here, outcome.status());
                return self.conclude(token, outcome, facts, head, head_len + body);
            }
        };
        deferred.shared.expect_body();
        let mut body = self.body_reader(framing, self.limits.body_bytes_max, To::Call);
        body.owes_continue = owes_continue;
        let mut exchange = self.open.begin(token);
        exchange.facts = facts;
        exchange.handle(deferred, Some(body), &mut self.busy.pool);
        self.keep_exchange(exchange);
        self.table.get(token).begin_body();
        if !self.make_room(token) {
            return self.refuse(token, Refusal::BuffersFull);
        }
        Step::new(head_len, StepResult::Body)
    }
}

/// Continuing.
impl<S: Service> WorkerState<S> {
    /// Polls a connection's handler and encodes its output. `is_followed` means that more input has arrived after the
    /// request and isn't stored yet.
    pub(crate) fn run_handler(&mut self, token: Token, is_followed: bool) -> StepResult {
        let Some(mut exchange) = self.take_exchange(token) else { return StepResult::Waits };
        self.poll(&mut exchange);
        self.advance(exchange, is_followed)
    }

    /// Continues a connection's exchange after a send.
    pub(crate) fn resume_exchange(&mut self, token: Token) {
        let Some(exchange) = self.take_exchange(token) else { return };
        match exchange.state() {
            State::Handling | State::Sending => {
                exchange.shared().wake_writer();
                self.advance(exchange, false);
            }
            // An upgrade has no handler any more.
            _ => self.keep_exchange(exchange),
        }
    }

    pub(crate) fn advance(&mut self, mut exchange: Box<Exchange>, is_followed: bool) -> StepResult {
        let token = exchange.token;
        let conn = self.table.get(token);
        // Only one send at a time: further output waits for its end.
        if conn.has(Flag::Sending) {
            self.keep_exchange(exchange);
            return StepResult::Waits;
        }
        exchange.facts.is_followed = is_followed || self.busy.has_input(conn.busy);
        match self.pump(&mut exchange) {
            None => {
                self.note_output(token, None);
                self.send_continue(&mut exchange);
                self.keep_exchange(exchange);
                StepResult::Waits
            }
            // The rest of the body follows.
            Some(disposition) if exchange.body.is_some() && disposition != Disposition::Truncated => {
                self.end_response(exchange, Disposition::Last)
            }
            Some(disposition) => self.end_response(exchange, disposition),
        }
    }

    fn end_response(&mut self, exchange: Box<Exchange>, disposition: Disposition) -> StepResult {
        let token = exchange.token;
        self.end_exchange(exchange);
        self.note_output(token, Some(disposition));
        self.end_request(token, disposition);
        StepResult::Responded
    }
}

fn body_len(framing: Framing) -> usize {
    match framing {
        Framing::Length(len) => usize::try_from(len).unwrap_or(usize::MAX),
        Framing::None | Framing::Chunked => 0,
    }
}
