//! Bodies that don't arrive together with their head: discarded, or buffered.

use shearwater_http1::{BodyDecoder, BodyEvent, Expectation, Framing, Head};
use shearwater_io::Token;

use crate::deferred::deferral::Deferral;
use crate::limits::{Limits, Timeouts};
use crate::memory::blocks::{Block, Destination};
use crate::memory::buffer::PagePool;
use crate::observe::capture::Source;
use crate::request::refusal::Refusal;
use crate::request::{DriverView, Request};
use crate::request_loop::{Step, StepResult, facts};
use crate::response::responder::Outcome;
use crate::service::{BodyPolicy, Service};
use crate::worker_state::WorkerState;

/// Result of decoding a piece of a body.
pub(crate) enum Piece {
    Starved,
    /// The handler's queue is full.
    Full,
    Complete,
    Refused(Refusal),
}

impl<S: Service> WorkerState<S> {
    /// Returns the largest body allowed under `policy`, in bytes.
    pub(crate) fn body_bytes_max(&self, policy: &BodyPolicy) -> u64 {
        match policy {
            BodyPolicy::Buffer { bytes_max } => self.limits.body_bytes_max.min(*bytes_max),
            BodyPolicy::Discard | BodyPolicy::Call => self.limits.body_bytes_max,
        }
    }

    /// Prepares to receive the body of a complete head, which moves from the worker's parser into the block.
    pub(crate) fn begin_body(
        &mut self,
        token: Token,
        head: &[u8],
        policy: BodyPolicy,
        is_awaited: bool,
    ) -> Step {
        let body_bytes_max = self.body_bytes_max(&policy);
        let conn = self.table.get(token);
        let mut block = self.blocks.take(token, &mut conn.block);
        block.head.extend(head, &mut self.blocks.pool);
        std::mem::swap(&mut self.parser, &mut block.parser);
        self.parser.make_room();
        let parsed = block.parser.head(&block.head);
        block.decoder = Some(BodyDecoder::new(parsed.framing(), self.limits.body()));
        block.body_bytes = 0;
        block.body_bytes_max = body_bytes_max;
        block.budget = BodyBudget::begin(&self.body_rate_rule, self.now_ms);
        block.destination = match policy {
            BodyPolicy::Discard | BodyPolicy::Call => Destination::Discard,
            BodyPolicy::Buffer { .. } => Destination::Buffer,
        };
        self.blocks.put(conn.block, block);
        conn.begin_body();
        if !self.make_room(token) {
            return self.refuse(token, Refusal::BuffersFull);
        }
        if is_awaited {
            self.responder.append_continue();
        }
        Step::new(head.len(), StepResult::Body)
    }

    /// Decodes the next piece of the body, and responds once it is complete.
    pub(crate) fn take_body(&mut self, token: Token, input: &[u8], driver: &dyn DriverView) -> Step {
        let index = self.table.get(token).block;
        let mut block = self.blocks.take_out(index);
        let bytes_before = block.body_bytes;
        let (consumed, piece) = decode(&mut block, input, &mut self.blocks.pool);
        block.budget = block.budget.earn(&self.body_rate_rule, block.body_bytes - bytes_before, self.now_ms);
        if let Some(ledger) = &mut self.ledger {
            ledger.receive_body(token, block.body_bytes);
        }
        if let Piece::Complete = piece {
            let is_followed = consumed < input.len();
            let is_last = self.is_last(token, is_followed);
            let head = block.parser.head(&block.head);
            let facts = facts(&head, is_followed, is_last);
            let is_lost = matches!(block.destination, Destination::Discard) && block.body_bytes > 0;
            let request =
                Request::new(head, (!is_lost).then_some(&block.body), driver, self.proxies.as_deref(), token);
            let replaced = block.service.take();
            let outcome = match &replaced {
                None => self.responder.call(&self.service, &request, facts, &mut self.calls),
                Some(old) => self.responder.call_replaced(&**old, &request, facts, &mut self.calls),
            };
            // While the block is taken out: it is compared with others together with its copy.
            let has_room = match &outcome {
                Outcome::Deferred(Deferral::Deferred(deferred)) => {
                    self.has_room_for(token, deferred, block.held_bytes())
                }
                _ => true,
            };
            if let (true, Some(status)) = (self.ledger.is_some(), outcome.status()) {
                self.note_response(token, Source::Head(block.parser.head(&block.head)), status);
            }
            // A refusal describes the request in the block.
            if !matches!(outcome, Outcome::Deferred(Deferral::Full)) {
                block.end_request(&mut self.blocks.pool);
            }
            self.blocks.put(index, block);
            return match outcome {
                Outcome::Responded(responded) => {
                    let disposition = self.count(responded);
                    self.end_request(token, disposition);
                    Step::new(consumed, StepResult::Responded)
                }
                Outcome::Deferred(Deferral::Deferred(deferred)) => {
                    Step::new(consumed, self.defer(token, deferred, facts, has_room))
                }
                Outcome::Deferred(_) => Step::new(consumed, self.refuse(token, Refusal::CallsFull).result),
            };
        }
        // A body that is discarded doesn't grow in memory.
        let is_kept = matches!(block.destination, Destination::Buffer);
        self.blocks.put(index, block);
        match piece {
            Piece::Refused(refusal) => Step::new(consumed, self.refuse(token, refusal).result),
            _ if is_kept && !self.make_room(token) => self.refuse(token, Refusal::BuffersFull),
            _ => Step::new(consumed, StepResult::Starve),
        }
    }
}

/// Decodes the available input; returns the bytes consumed.
pub(crate) fn decode(block: &mut Block, input: &[u8], pool: &mut PagePool) -> (usize, Piece) {
    let Some(mut decoder) = block.decoder else { return (0, Piece::Starved) };
    let mut consumed = 0;
    let piece = loop {
        let step = match decoder.decode(&input[consumed..]) {
            Ok(step) => step,
            Err(reject) => break Piece::Refused(Refusal::Rejected(reject)),
        };
        consumed += step.consumed;
        match step.event {
            BodyEvent::Data(bytes) => {
                if let Err(end) = take_data(block, bytes, pool) {
                    break end;
                }
                // Without further input the decoder may still report the end.
                if consumed < input.len() && block.is_fed() {
                    break Piece::Full;
                }
            }
            BodyEvent::Trailer(bytes) => {
                if let Destination::Call(exchange) = &block.destination {
                    exchange.put_trailers(bytes);
                }
            }
            BodyEvent::More => break Piece::Starved,
            BodyEvent::Done => break Piece::Complete,
        }
    };
    block.decoder = Some(decoder);
    (consumed, piece)
}

/// Passes a piece of content to the block's destination.
fn take_data(block: &mut Block, bytes: &[u8], pool: &mut PagePool) -> Result<(), Piece> {
    block.body_bytes += bytes.len() as u64;
    if block.body_bytes > block.body_bytes_max {
        return Err(Piece::Refused(Refusal::BodyTooLarge));
    }
    match &mut block.destination {
        Destination::Discard => Ok(()),
        Destination::Buffer => {
            block.body.extend(bytes, pool);
            Ok(())
        }
        Destination::Call(exchange) => {
            exchange.put(bytes);
            Ok(())
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
