//! Bodies that aren't passed as one slice with their head, and the response once one is complete.

use std::ops::ControlFlow;

use crate::deferred::calls::Deferral;
use crate::exchange::body::{BodyBudget, BodyReader, Piece, To};
use crate::exchange::{Exchange, State};
use crate::request::guards::{GuardPosition, GuardsPassed};
use crate::request::refusal::Refusal;
use crate::request::{DriverView, Request};
use crate::response::fault::Fault;
use crate::response::responder::Outcome;
use crate::server::panics;
use crate::server::reports::named;
use crate::service::{BodyPolicy, Service};
use crate::worker::ledger_events::Source;
use crate::worker::request_loop::{Step, StepResult, facts};
use crate::worker::state::WorkerState;
use shearwater_http1::{BodyDecoder, Framing, Head, HeadParser};
use shearwater_io::Token;

impl<S: Service> WorkerState<S> {
    /// Returns the largest body allowed under `policy`, in bytes.
    pub(crate) fn body_bytes_max(&self, policy: &BodyPolicy) -> u64 {
        match policy {
            BodyPolicy::Buffer { bytes_max } => self.limits.body_bytes_max.min(*bytes_max),
            BodyPolicy::Discard | BodyPolicy::Call => self.limits.body_bytes_max,
            BodyPolicy::Pass { bytes_max } => *bytes_max,
        }
    }

    /// Returns what is done with a request's body; breaks if that is too long.
    pub(crate) fn policy_of(&mut self, head: &Head<'_>) -> ControlFlow<Refusal, BodyPolicy> {
        let policy = match panics::catch(|| self.service.body_policy(head)) {
            Ok(policy) => policy,
            Err(mut panic) => {
                panic.request = Some(named(head));
                self.faulty(Fault::Panic(panic));
                return ControlFlow::Break(Refusal::Panicked);
            }
        };
        match head.framing() {
            Framing::Length(len) if len > self.body_bytes_max(&policy) => {
                if policy.is_read_by_handler() {
                    self.report_body_limit();
                }
                ControlFlow::Break(Refusal::BodyTooLarge)
            }
            _ => ControlFlow::Continue(policy),
        }
    }

    /// Restarts the time of a body that a handler reads: the pause was ours, not the client's.
    pub(crate) fn restart_body(&mut self, token: Token) {
        let (rule, now_ms) = (self.body_rate_rule, self.now_ms);
        let Some(exchange) = self.exchange(token).filter(|exchange| exchange.is_handled()) else { return };
        exchange.body.iter_mut().for_each(|body| body.restart(&rule, now_ms));
    }

    /// Returns a reader for a body.
    pub(crate) fn body_reader(&self, framing: Framing, bytes_max: u64, to: To) -> BodyReader {
        let decoder = BodyDecoder::new(framing, self.limits.body());
        let budget = BodyBudget::begin(&self.body_rate_rule, self.now_ms);
        BodyReader {
            decoder,
            budget,
            bytes: 0,
            bytes_max,
            bytes_on_wire: 0,
            bytes_early: 0,
            owes_continue: false,
            to,
        }
    }

    /// Prepares to discard or keep the body of a complete head, which moves with its parser into an exchange.
    pub(crate) fn begin_body(
        &mut self,
        parser: &mut HeadParser,
        token: Token,
        head: &[u8],
        (policy, passed): (&BodyPolicy, GuardsPassed),
        is_awaited: bool,
    ) -> Step {
        let to = if matches!(policy, BodyPolicy::Discard) { To::Discard } else { To::Keep };
        let parsed = parser.head(head);
        let mut exchange = self.exchanges.begin(token);
        exchange.facts = facts(&parsed, false, false);
        let body = self.body_reader(parsed.framing(), self.body_bytes_max(policy), to);
        exchange.enter(State::Reading);
        exchange.body = Some(body);
        exchange.passed = passed;
        exchange.head.extend(head, &mut self.busy.pool);
        let new = || Box::new(HeadParser::without_room(self.limits.head()));
        std::mem::swap(parser, exchange.parser.get_or_insert_with(new));
        parser.make_room();
        self.keep_exchange(exchange);
        self.table.get(token).begin_body();
        if !self.make_memory_room(token) {
            return self.refuse(token, Refusal::BuffersFull);
        }
        if is_awaited {
            self.responder.append_continue();
        }
        Step::new(head.len(), StepResult::Body)
    }

    /// Receives the next piece of a body. Once a body is complete that the handler doesn't read itself, calls it.
    #[inline(never)]
    pub(crate) fn receive_body(&mut self, token: Token, input: &[u8], driver: &dyn DriverView) -> Step {
        let mut exchange = self.take_exchange(token).expect("a connection in `Body` has an exchange");
        if exchange.is_full() {
            self.keep_exchange(exchange);
            return Step::new(0, StepResult::Waits);
        }
        let mut body = exchange.body.take().expect("its body is being received");
        let bytes_before = body.bytes;
        let Exchange { kept, shared, .. } = &mut *exchange;
        let (consumed, piece) = body.decode(input, kept, shared.as_ref(), &mut self.busy.pool);
        body.earn(&self.body_rate_rule, bytes_before, self.now_ms);
        if let Some(ledger) = &mut self.ledger {
            ledger.receive_body(token, body.bytes);
        }
        let grows = body.to != To::Discard;
        let is_followed = consumed < input.len();
        match (&piece, &exchange.shared) {
            (Piece::Complete, None) => {
                let result = self.respond_to_kept(exchange, &body, is_followed, driver);
                return Step::new(consumed, result);
            }
            (Piece::Complete, Some(shared)) => {
                shared.end_body();
                self.table.get(token).begin_waiting();
            }
            _ => exchange.body = Some(body),
        }
        if let Piece::Refused(refusal) = piece {
            if exchange.is_handled() && matches!(refusal, Refusal::BodyTooLarge) {
                self.report_body_limit();
            }
            self.keep_exchange(exchange);
            return Step::new(consumed, self.refuse(token, refusal).result);
        }
        let is_new = exchange.is_new;
        if is_new && !self.busy.is_full() {
            self.poll(&mut exchange);
            return Step::new(consumed, self.advance(exchange, is_followed));
        }
        // Eviction picks the largest by what is stored.
        self.keep_exchange(exchange);
        if grows && !self.make_memory_room(token) {
            return Step::new(consumed, self.refuse(token, Refusal::BuffersFull).result);
        }
        let result = if is_new { self.run_handler(token, is_followed) } else { StepResult::Waits };
        Step::new(consumed, result)
    }

    /// Calls the handler of a request whose body is complete, and responds unless that is deferred.
    pub(crate) fn call_kept(
        &mut self,
        exchange: &Exchange,
        body: &BodyReader,
        driver: &dyn DriverView,
    ) -> Outcome {
        let head = exchange.head().expect("its head is kept until its handler is called");
        let seen = (body.to == To::Keep || body.bytes == 0).then_some(&*exchange.kept);
        let request = Request::new(head, seen, driver, self.proxies.as_deref(), exchange.token);
        let request = request.at(GuardPosition::late(exchange.passed));
        let outcome = match &exchange.service {
            None => self.responder.call(&self.service, &request, exchange.facts, &mut self.calls),
            Some(old) => self.responder.call_replaced(&**old, &request, exchange.facts, &mut self.calls),
        };
        self.calls.note_block(&head);
        outcome
    }

    /// Calls the handler once the body is complete, and ends the exchange unless its response is deferred.
    fn respond_to_kept(
        &mut self,
        mut exchange: Box<Exchange>,
        body: &BodyReader,
        is_followed: bool,
        driver: &dyn DriverView,
    ) -> StepResult {
        let token = exchange.token;
        exchange.facts.is_followed = is_followed;
        exchange.facts.is_last = self.count_served(token, is_followed);
        let outcome = self.call_kept(&exchange, body, driver);
        let head = exchange.head().expect("its head is kept until its handler is called");
        match outcome {
            Outcome::Responded(responded) => {
                if self.ledger.is_some() {
                    self.note_response(token, Source::Head(head), responded.status);
                }
                self.end_exchange(exchange);
                let disposition = self.count(responded);
                self.end_request(token, disposition);
                StepResult::Responded
            }
            Outcome::Deferred(Deferral::Deferred(deferred)) => self.defer(exchange, deferred),
            Outcome::Deferred(_) => {
                let result = self.refuse_as(token, Refusal::CallsFull, Source::Head(head)).result;
                self.end_exchange(exchange);
                result
            }
        }
    }
}
