//! Time budget of a body, extended by each byte received. Nothing is checked in between.

use crate::limits::{Limits, Timeouts};

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

#[cfg(test)]
mod tests {
    use super::{BodyBudget, BodyRateRule};
    use crate::limits::{Limits, Timeouts};

    fn rule(bytes_per_second_min: u32) -> BodyRateRule {
        let limits = Limits { body_bytes_per_second_min: bytes_per_second_min, ..Limits::default() };
        BodyRateRule::new(&limits, &Timeouts { body_grace_ms: 5000, body_ms: 30_000, ..Timeouts::default() })
    }

    #[test]
    fn single_bytes_earn_what_they_are_worth() {
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
    fn the_time_earned_is_bounded_by_the_silence() {
        let rule = rule(240);
        let budget = BodyBudget::begin(&rule, 0).earn(&rule, 10_000_000, 2000);
        assert_eq!((budget.due_ms(), budget.ends_silence()), (32_000, true));
        assert_eq!(budget.earn(&rule, 1, 20_000).due_ms(), 32_005, "not earned twice");
    }

    #[test]
    fn without_a_pace_the_silence_counts_alone() {
        let rule = rule(0);
        let budget = BodyBudget::begin(&rule, 0);
        assert_eq!((budget.due_ms(), budget.ends_silence()), (30_000, true));
        assert_eq!(budget.earn(&rule, 1, 29_999).due_ms(), 59_999);
    }

    #[test]
    fn the_largest_figures_are_no_danger() {
        let longest = Timeouts { body_grace_ms: u64::MAX, body_ms: u64::MAX, ..Timeouts::default() };
        for bytes_per_second_min in [0, 1, u32::MAX] {
            let limits = Limits { body_bytes_per_second_min: bytes_per_second_min, ..Limits::default() };
            let rule = BodyRateRule::new(&limits, &longest);
            let budget = BodyBudget::begin(&rule, u64::MAX).earn(&rule, u64::MAX, u64::MAX);
            assert_eq!(budget.due_ms(), u64::MAX.div_ceil(1000));
        }
    }
}
