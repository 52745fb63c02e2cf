//! Medians and their bootstrap intervals.

use serde::{Deserialize, Serialize};

const RESAMPLES: usize = 10_000;
/// Minimum number of values for an interval.
pub(crate) const VALUES_MIN: usize = 3;

/// A median with its bootstrap 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    /// Ends of the interval; none with fewer than [`VALUES_MIN`] values.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Number of values it rests on.
    pub(crate) values: usize,
}

/// Estimates the median; the interval is the 2.5 and 97.5 % percentiles of the medians of [`RESAMPLES`] resamples.
pub(crate) fn estimate(values: &[f64], seed: u64) -> Option<Estimate> {
    let median = median(values.to_vec())?;
    let interval = (values.len() >= VALUES_MIN).then(|| bootstrap(values, seed));
    let (low, high) = interval.unzip();
    Some(Estimate { median, low, high, values: values.len() })
}

fn bootstrap(values: &[f64], seed: u64) -> (f64, f64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resample = || values.iter().map(|_| values[random.usize(..values.len())]).collect();
    let mut medians: Vec<f64> = (0..RESAMPLES).filter_map(|_| median(resample())).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| medians[((medians.len() - 1) as f64 * share).round() as usize];
    (at(0.025), at(0.975))
}

/// Returns the middle value, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    Some(if values.len().is_multiple_of(2) { f64::midpoint(values[half - 1], upper) } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        for (values, expected) in [
            (vec![], None),
            (vec![3.0, 1.0, 2.0], Some(2.0)),
            (vec![4.0, 1.0, 3.0, 2.0], Some(2.5)),
            (vec![1.0, 1.0, 1000.0], Some(1.0)),
        ] {
            assert_eq!(median(values), expected);
        }
    }

    #[test]
    fn the_interval_has_the_ranks_of_the_binomial_distribution() {
        // Of 1..=99 the median's 95 % interval by order statistics is (40, 60).
        let values: Vec<f64> = (1..=99).map(f64::from).collect();
        let wide = estimate(&values, 7).expect("enough values");
        assert!(wide.low.is_some_and(|low| (39.0..=42.0).contains(&low)), "{wide:?}");
        assert!(wide.high.is_some_and(|high| (58.0..=61.0).contains(&high)), "{wide:?}");
        assert_eq!(estimate(&values, 7), Some(wide), "one seed gives one interval");
        let constant = estimate(&[2.0; 12], 1).expect("enough values");
        assert_eq!((constant.low, constant.median, constant.high), (Some(2.0), 2.0, Some(2.0)));
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert_eq!(estimate(&[], 1), None);
        assert_eq!(estimate(&[1.0, 2.0], 1).expect("a median").low, None);
        assert!(estimate(&[1.0, 2.0, 3.0], 1).expect("a median").low.is_some());
    }
}
