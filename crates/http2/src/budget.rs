//! Token buckets: how often a peer may cause work that no content pays for.

const MS_PER_SECOND: u64 = 1000;

/// Tokens that refill over time, up to a bound.
#[derive(Debug)]
pub(crate) struct Budget {
    tokens: u32,
    tokens_max: u32,
    per_second: u32,
    /// Time up to which tokens have been refilled.
    refilled_ms: u64,
}

impl Budget {
    /// Creates a full budget.
    pub(crate) fn new(tokens_max: u32, per_second: u32, now_ms: u64) -> Self {
        Self { tokens: tokens_max, tokens_max, per_second, refilled_ms: now_ms }
    }

    /// Adds the tokens of the time that has passed.
    pub(crate) fn refill(&mut self, now_ms: u64) {
        let passed_ms = now_ms.saturating_sub(self.refilled_ms);
        let earned = passed_ms.saturating_mul(self.per_second.into()) / MS_PER_SECOND;
        if earned > 0 {
            // The rest of the time counts later.
            self.refilled_ms += earned.saturating_mul(MS_PER_SECOND) / u64::from(self.per_second);
            self.earn(u32::try_from(earned).unwrap_or(u32::MAX));
        }
    }

    /// Adds tokens.
    #[inline]
    pub(crate) fn earn(&mut self, tokens: u32) {
        self.tokens = self.tokens.saturating_add(tokens).min(self.tokens_max);
    }

    /// Takes a token; returns false if none is left.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        let is_left = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    fn take_all(budget: &mut Budget) -> u32 {
        (0..).find(|_| !budget.take()).expect("it ends")
    }

    #[test]
    fn refills_with_time_up_to_its_bound() {
        let mut budget = Budget::new(10, 2, 1_000);
        assert_eq!(take_all(&mut budget), 10);
        budget.refill(1_499);
        assert_eq!(take_all(&mut budget), 0);
        budget.refill(1_500);
        assert_eq!(take_all(&mut budget), 1);
        budget.refill(4_000);
        assert_eq!(take_all(&mut budget), 5);
        budget.refill(3_000);
        assert_eq!(take_all(&mut budget), 0);
        budget.refill(u64::MAX);
        assert_eq!(take_all(&mut budget), 10);
        budget.earn(3);
        assert_eq!(take_all(&mut budget), 3);
    }
}
