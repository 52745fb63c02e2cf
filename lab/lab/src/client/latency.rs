//! Latencies: in microseconds, and how many of them lie below what.

use std::time::Duration;

/// The value that so many of a hundred do not exceed; 0 of no values.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    permille(sorted, percent * 10)
}

/// The value that so many of a thousand do not exceed; 0 of no values.
pub fn permille(sorted: &[u64], permille: usize) -> u64 {
    let rank = (sorted.len() * permille).div_ceil(1000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

/// A time in whole microseconds.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
