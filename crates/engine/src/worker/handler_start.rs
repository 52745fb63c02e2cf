//! Starts deferred handlers, of complete requests and of those whose body they read.

use shearwater_http1::{Framing, Head};
use shearwater_io::Token;

use crate::deferred::calls::Deferral;
use crate::deferred::calls::Deferred;
use crate::exchange::Exchange;
use crate::exchange::body::{To, waits_for_continue};
use crate::request::guards::{GuardPosition, GuardsPassed};
use crate::request::refusal::Refusal;
use crate::request::{DriverView, Request};
use crate::response::facts::RequestFacts;
use crate::response::responder::Outcome;
use crate::service::Service;
use crate::worker::ledger_events::Source;
use crate::worker::request_loop::{Arrived, Step, StepResult, facts};
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
        // Only `Full` is left: an upgrade was responded to with a `101`.
        let Deferral::Deferred(deferred) = deferral else {
            return self.refuse_as(token, Refusal::CallsFull, Source::Head(head));
        };
        let mut exchange = self.exchanges.begin(token);
        exchange.facts = facts;
        let result = self.defer(exchange, deferred);
        Step::new(if result == StepResult::Refused { 0 } else { consumed }, result)
    }

    /// Polls a deferred handler of a complete request. Keeps the exchange unless its response is complete.
    pub(crate) fn defer(&mut self, mut exchange: Box<Exchange>, deferred: Deferred) -> StepResult {
        let token = exchange.token;
        // Eviction picks the largest by what is stored: a kept request and the handler's copy of it.
        let held = exchange.kept_bytes() + deferred.shared.held_bytes();
        let has_room = !self.busy.is_full() || self.make_memory_room_for(token, held);
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
    pub(crate) fn begin_reading_handler(
        &mut self,
        token: Token,
        arrived: Arrived<'_>,
        passed: GuardsPassed,
        bytes_max: u64,
        driver: &dyn DriverView,
    ) -> Step {
        let Arrived { head, bytes, rest } = arrived;
        let (framing, whole_len) = (head.framing(), arrived.whole_body_len());
        let owes_continue = waits_for_continue(&head, rest);
        let is_last = self.count_served(token, false);
        let facts = facts(&head, false, is_last);
        let kept = (framing == Framing::Length(0)).then_some(&[][..]);
        let request = Request::new(head, kept, driver, self.proxies.as_deref(), token);
        let request = request.at(GuardPosition::late(passed));
        let is_followed = whole_len.is_some_and(|len| len < rest.len());
        let unread = RequestFacts { is_last: is_last || whole_len.is_none(), is_followed, ..facts };
        let deferred = match self.responder.call(&self.service, &request, unread, &mut self.calls) {
            Outcome::Deferred(Deferral::Deferred(deferred)) => deferred,
            outcome => {
                self.note_whole(token, head, whole_len.is_some(), outcome.status());
                let consumed = bytes.len() + whole_len.unwrap_or(0);
                return self.conclude(token, outcome, facts, head, consumed);
            }
        };
        deferred.shared.expect_body();
        let mut body = self.body_reader(framing, bytes_max, To::Handler);
        body.owes_continue = owes_continue;
        let mut exchange = self.exchanges.begin(token);
        exchange.facts = facts;
        exchange.handle(deferred, Some(body), &mut self.busy.pool);
        self.keep_exchange(exchange);
        self.table.get(token).begin_body();
        if !self.make_memory_room(token) {
            return self.refuse(token, Refusal::BuffersFull);
        }
        Step::new(bytes.len(), StepResult::Body)
    }
}
