//! Bodies that aren't passed as one slice with their head: discarded, kept, or read by the handler.

use std::rc::Rc;

use shearwater_http1::{BodyDecoder, BodyEvent, Expectation, Framing, Head};

use crate::deferred::shared::Shared;
use crate::limits::{Limits, Timeouts};
use crate::memory::buffer::{Buffer, PagePool};
use crate::request::refusal::Refusal;

/// The destination of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Discard,
    /// Kept until the handler is called.
    Keep,
    /// Queued until the handler reads it.
    Handler,
}

/// A body that is being received.
pub(crate) struct BodyReader {
    pub(crate) decoder: BodyDecoder,
    pub(crate) budget: BodyBudget,
    /// Bytes so far, and their limit.
    pub(crate) bytes: u64,
    pub(crate) bytes_max: u64,
    /// Bytes that a connection with TLS had received when its time expired last.
    pub(crate) bytes_on_wire: u64,
    /// Bytes of an incomplete record that have earned their time before they are received.
    pub(crate) bytes_early: u64,
    /// The client waits for a `100`, which is sent once the handler reads.
    pub(crate) owes_continue: bool,
    pub(crate) to: To,
}

/// Result of decoding a piece of a body.
pub(crate) enum Piece {
    /// More input is needed, or the handler must read first: its queue is full.
    Starved,
    Complete,
    Refused(Refusal),
}

impl BodyReader {
    /// Restarts the time for the body after backpressure from us.
    pub(crate) fn restart(&mut self, rule: &BodyRateRule, now_ms: u64) {
        self.budget = BodyBudget::begin(rule, now_ms);
    }

    /// Extends the time by content received since `bytes_before`.
    pub(crate) fn earn(&mut self, rule: &BodyRateRule, bytes_before: u64, now_ms: u64) {
        let bytes = self.bytes - bytes_before;
        let early = self.bytes_early.min(bytes);
        self.bytes_early -= early;
        self.budget = self.budget.earn(rule, bytes - early, now_ms);
    }

    /// Discards the rest of the body.
    pub(crate) fn discard(&mut self) {
        self.to = To::Discard;
    }

    /// Counts content, and stores it where it belongs.
    pub(crate) fn store(
        &mut self,
        content: &[u8],
        kept: &mut Buffer,
        shared: Option<&Rc<Shared>>,
        pool: &mut PagePool,
    ) -> Result<(), Refusal> {
        self.bytes += content.len() as u64;
        if self.bytes > self.bytes_max {
            return Err(Refusal::BodyTooLarge);
        }
        match (self.to, shared) {
            (To::Keep, _) => kept.extend(content, pool),
            (To::Handler, Some(shared)) => shared.put(content),
            _ => {}
        }
        Ok(())
    }

    /// Decodes the available input; returns the bytes consumed.
    pub(crate) fn decode(
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
                    if let Err(refusal) = self.store(bytes, kept, shared, pool) {
                        return (consumed, Piece::Refused(refusal));
                    }
                    // Without further input the decoder may still report the end.
                    if self.to == To::Handler
                        && consumed < input.len()
                        && shared.is_some_and(|shared| !shared.has_room())
                    {
                        return (consumed, Piece::Starved);
                    }
                }
                BodyEvent::Trailer(bytes) => {
                    if let (To::Handler, Some(shared)) = (self.to, shared) {
                        shared.put_trailers(bytes);
                    }
                }
                BodyEvent::More => return (consumed, Piece::Starved),
                BodyEvent::Done => return (consumed, Piece::Complete),
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
