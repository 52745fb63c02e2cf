//! Bodies that don't arrive together with their head: discarded, kept, or read by the handler.

use std::rc::Rc;

use shearwater_http1::{BodyDecoder, BodyEvent, Expectation, Framing, Head, HeadParser};
use shearwater_io::Token;

use crate::deferred::deferral::Deferral;
use crate::deferred::shared::Shared;
use crate::exchange::{Exchange, State};
use crate::limits::{Limits, Timeouts};
use crate::memory::buffer::{Buffer, PagePool};
use crate::request::refusal::Refusal;
use crate::request::{DriverView, Request};
use crate::response::responder::Outcome;
use crate::service::{BodyPolicy, Service};
use crate::worker::observing::Source;
use crate::worker::request_loop::{Step, StepResult, facts};
use crate::worker::state::WorkerState;

/// The destination of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Discard,
    /// Kept until the handler is called.
    Keep,
    /// Queued until the handler reads it.
    Call,
}

/// A body that is being received.
pub(crate) struct BodyReader {
    decoder: BodyDecoder,
    pub(crate) budget: BodyBudget,
    /// Bytes so far, and their limit.
    bytes: u64,
    bytes_max: u64,
    /// The client waits for a `100`, which is sent once the handler reads.
    pub(crate) owes_continue: bool,
    to: To,
}

/// Result of decoding a piece of a body.
enum Piece {
    /// More input is needed, or the handler's queue is full.
    Starved,
    Complete,
    Refused(Refusal),
}

impl BodyReader {
    /// Restarts the time for the body after backpressure from us.
    pub(crate) fn restart(&mut self, rule: &BodyRateRule, now_ms: u64) {
        self.budget = BodyBudget::begin(rule, now_ms);
    }

    /// Discards the rest of the body.
    pub(crate) fn discard(&mut self) {
        self.to = To::Discard;
    }

    /// Decodes the available input; returns the bytes consumed.
    fn decode(
        &mut self,
        input: &[u8],
        kept: &mut Buffer,
        shared: Option<&Rc<Shared>>,
        pool: &mut PagePool,
    ) -> (usize, Piece) {
        let mut consumed = 0;
        loop {
            let step = match self.decoder.decode(&input[consumed..]) {
                Ok(step) => step,
                Err(reject) => return (consumed, Piece::Refused(Refusal::Rejected(reject))),
            };
            consumed += step.consumed;
            match step.event {
                BodyEvent::Data(bytes) => {
                    self.bytes += bytes.len() as u64;
                    if self.bytes > self.bytes_max {
                        return (consumed, Piece::Refused(Refusal::BodyTooLarge));
                    }
                    match (self.to, shared) {
                        (To::Keep, _) => kept.extend(bytes, pool),
                        (To::Call, Some(shared)) => {
                            shared.put(bytes);
                            // Without further input the decoder may still report the end.
                            if consumed < input.len() && !shared.has_room() {
                                return (consumed, Piece::Starved);
                            }
                        }
                        _ => {}
                    }
                }
                BodyEvent::Trailer(bytes) => {
                    if let (To::Call, Some(shared)) = (self.to, shared) {
                        shared.put_trailers(bytes);
                    }
                }
                BodyEvent::More => return (consumed, Piece::Starved),
                BodyEvent::Done => return (consumed, Piece::Complete),
            }
        }
    }
}

impl Exchange {
    /// Returns true if the handler's queue is full.
    pub(crate) fn is_full(&self) -> bool {
        self.reads_body() && !self.shared().has_room()
    }
}

impl<S: Service> WorkerState<S> {
    /// Returns the largest body allowed under `policy`, in bytes.
    pub(crate) fn body_bytes_max(&self, policy: &BodyPolicy) -> u64 {
        match policy {
            BodyPolicy::Buffer { bytes_max } => self.limits.body_bytes_max.min(*bytes_max),
            BodyPolicy::Discard | BodyPolicy::Call => self.limits.body_bytes_max,
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
        BodyReader { decoder, budget, bytes: 0, bytes_max, owes_continue: false, to }
    }

    /// Prepares to receive the body of a complete head, which moves from the worker's parser into an exchange.
    pub(crate) fn begin_body(
        &mut self,
        token: Token,
        head: &[u8],
        policy: &BodyPolicy,
        is_awaited: bool,
    ) -> Step {
        let to = match policy {
            BodyPolicy::Discard | BodyPolicy::Call => To::Discard,
            BodyPolicy::Buffer { .. } => To::Keep,
        };
        let parsed = self.parser.head(head);
        let mut exchange = self.open.begin(token);
        exchange.facts = facts(&parsed, false, false);
        let body = self.body_reader(parsed.framing(), self.body_bytes_max(policy), to);
        exchange.enter(State::Reading);
        exchange.body = Some(body);
        exchange.head.extend(head, &mut self.busy.pool);
        let new = || Box::new(HeadParser::without_room(self.limits.head()));
        std::mem::swap(&mut self.parser, exchange.parser.get_or_insert_with(new));
        self.parser.make_room();
        self.keep_exchange(exchange);
        self.table.get(token).begin_body();
        if !self.make_room(token) {
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
        body.budget = body.budget.earn(&self.body_rate_rule, body.bytes - bytes_before, self.now_ms);
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
        let (is_handled, is_new) = (exchange.is_handled(), exchange.is_new);
        self.keep_exchange(exchange);
        if let Piece::Refused(refusal) = piece {
            if is_handled && matches!(refusal, Refusal::BodyTooLarge) {
                self.report_body_limit();
            }
            return Step::new(consumed, self.refuse(token, refusal).result);
        }
        if grows && !self.make_room(token) {
            return Step::new(consumed, self.refuse(token, Refusal::BuffersFull).result);
        }
        let result = if is_new { self.run_handler(token, is_followed) } else { StepResult::Waits };
        Step::new(consumed, result)
    }

    /// Calls the handler once the body is complete, and responds unless that is deferred.
    fn respond_to_kept(
        &mut self,
        mut exchange: Box<Exchange>,
        body: &BodyReader,
        is_followed: bool,
        driver: &dyn DriverView,
    ) -> StepResult {
        let token = exchange.token;
        exchange.facts.is_followed = is_followed;
        exchange.facts.is_last = self.is_last(token, is_followed);
        let facts = exchange.facts;
        let head = exchange.head().expect("its head is kept until its handler is called");
        let seen = (body.to == To::Keep || body.bytes == 0).then_some(&*exchange.kept);
        let request = Request::new(head, seen, driver, self.proxies.as_deref(), token);
        let outcome = match &exchange.service {
            None => self.responder.call(&self.service, &request, facts, &mut self.calls),
            Some(old) => self.responder.call_replaced(&**old, &request, facts, &mut self.calls),
        };
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

/// Limits of a body's rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyRateRule {
    /// Initial time.
    grace_us: u64,
    /// Longest time that may be left, and so the longest silence.
    silence_us: u64,
    /// Bytes that earn a second; 0: only the silence is limited.
    bytes_per_second_min: u64,
}

impl BodyRateRule {
    pub(crate) fn new(limits: &Limits, timeouts: &Timeouts) -> Self {
        Self {
            grace_us: timeouts.body_grace_ms.saturating_mul(1000),
            silence_us: timeouts.body_ms.saturating_mul(1000),
            bytes_per_second_min: u64::from(limits.body_bytes_per_second_min),
        }
    }

    /// Returns the time that so many bytes earn.
    fn earned_us(&self, bytes: u64) -> u64 {
        let earned = bytes.saturating_mul(1_000_000).checked_div(self.bytes_per_second_min);
        earned.unwrap_or(u64::MAX)
    }
}

/// Remaining time of a body. Kept in microseconds: a byte earns a few thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BodyBudget {
    /// Deadline by the worker's clock.
    due_us: u64,
    /// The deadline is bounded by silence rather than by the rate.
    ends_silence: bool,
}

impl BodyBudget {
    /// Starts the budget of a body, or restarts it.
    pub(crate) fn begin(rule: &BodyRateRule, now_ms: u64) -> Self {
        let now_us = now_ms.saturating_mul(1000);
        let grace_us = if rule.bytes_per_second_min == 0 { u64::MAX } else { rule.grace_us };
        Self { due_us: now_us.saturating_add(grace_us), ends_silence: false }.bounded(rule, now_us)
    }

    /// Extends the budget by received content.
    pub(crate) fn earn(self, rule: &BodyRateRule, bytes: u64, now_ms: u64) -> Self {
        let due_us = self.due_us.saturating_add(rule.earned_us(bytes));
        Self { due_us, ends_silence: false }.bounded(rule, now_ms.saturating_mul(1000))
    }

    /// Returns the deadline in milliseconds of the worker's clock.
    pub(crate) fn due_ms(self) -> u64 {
        self.due_us.div_ceil(1000)
    }

    /// Returns true if it expires because of silence; else because of the rate.
    pub(crate) fn ends_silence(self) -> bool {
        self.ends_silence
    }

    fn bounded(self, rule: &BodyRateRule, now_us: u64) -> Self {
        let latest_us = now_us.saturating_add(rule.silence_us);
        Self { due_us: self.due_us.min(latest_us), ends_silence: self.due_us >= latest_us }
    }
}

/// Returns true if the client waits for a `100` before it sends any of its body (RFC 9110 section 10.1.1).
pub(crate) fn waits_for_continue(head: &Head<'_>, rest: &[u8]) -> bool {
    rest.is_empty()
        && head.expectation() == Expectation::Continue
        && !matches!(head.framing(), Framing::None | Framing::Length(0))
}

#[cfg(test)]
mod tests {
    use super::{BodyBudget, BodyRateRule};
    use crate::limits::{Limits, Timeouts};

    fn rule(bytes_per_second_min: u32) -> BodyRateRule {
        let limits = Limits { body_bytes_per_second_min: bytes_per_second_min, ..Limits::default() };
        BodyRateRule::new(&limits, &Timeouts { body_grace_ms: 5000, body_ms: 30_000, ..Timeouts::default() })
    }

    #[test]
    fn single_bytes_earn_their_share_of_time() {
        let rule = rule(240);
        let mut budget = BodyBudget::begin(&rule, 1000);
        assert_eq!((budget.due_ms(), budget.ends_silence()), (6000, false));
        for _ in 0..240 {
            budget = budget.earn(&rule, 1, 1000);
        }
        assert!((6999..=7000).contains(&budget.due_ms()), "{}", budget.due_ms());
        assert_eq!(budget.earn(&rule, 0, 1500).due_ms(), budget.due_ms(), "framing earns nothing");
    }

    #[test]
    fn earned_time_is_bounded_by_the_longest_silence() {
        let rule = rule(240);
        let budget = BodyBudget::begin(&rule, 0).earn(&rule, 10_000_000, 2000);
        assert_eq!((budget.due_ms(), budget.ends_silence()), (32_000, true));
        assert_eq!(budget.earn(&rule, 1, 20_000).due_ms(), 32_005, "not earned twice");
    }

    #[test]
    fn without_a_minimum_rate_only_silence_counts() {
        let rule = rule(0);
        let budget = BodyBudget::begin(&rule, 0);
        assert_eq!((budget.due_ms(), budget.ends_silence()), (30_000, true));
        assert_eq!(budget.earn(&rule, 1, 29_999).due_ms(), 59_999);
    }

    #[test]
    fn largest_values_do_not_overflow() {
        let longest = Timeouts { body_grace_ms: u64::MAX, body_ms: u64::MAX, ..Timeouts::default() };
        for bytes_per_second_min in [0, 1, u32::MAX] {
            let limits = Limits { body_bytes_per_second_min: bytes_per_second_min, ..Limits::default() };
            let rule = BodyRateRule::new(&limits, &longest);
            let budget = BodyBudget::begin(&rule, u64::MAX).earn(&rule, u64::MAX, u64::MAX);
            assert_eq!(budget.due_ms(), u64::MAX.div_ceil(1000));
        }
    }
}
