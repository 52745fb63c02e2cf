//! Medians, and how sure of them we may be.

use crate::dice::Dice;

/// Resamples of one interval.
pub const RESAMPLES: usize = 10_000;
/// Fewer values than this have no interval worth the name.
pub const VALUES_MIN: usize = 3;

/// A median with its bootstrap 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median of the values.
    pub median: f64,
    /// The interval's ends; none with fewer than [`VALUES_MIN`] values.
    pub interval: Option<(f64, f64)>,
    /// How many values it rests on.
    pub values: usize,
}

/// The middle value, or the mean of the two in the middle; none of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    middle(&sorted)
}

/// Median and bootstrap 95 % interval (percentiles of the medians of [`RESAMPLES`] resamples); none of no values.
pub fn estimate(values: &[f64], seed: u64) -> Option<Estimate> {
    let median = median(values)?;
    let interval = (values.len() >= VALUES_MIN).then(|| bootstrap(values, seed));
    Some(Estimate { median, interval, values: values.len() })
}

fn bootstrap(values: &[f64], seed: u64) -> (f64, f64) {
    let mut dice = Dice::new(seed);
    let mut sample = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            sample.fill_with(|| values[dice.below(values.len())]);
            sample.sort_unstable_by(f64::total_cmp);
            middle(&sample)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| medians[((medians.len() - 1) as f64 * share).round() as usize];
    (at(0.025), at(0.975))
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    Some(if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[half - 1], upper) } else { upper })
}
