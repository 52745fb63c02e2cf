//! A histogram of durations with fixed buckets.

use crate::counts::Counter;
use crate::document::Percentile;

/// Upper bounds of the buckets in microseconds, inclusive; the last bucket is unbounded.
///
/// Fast routes take a few microseconds, cached files tens, slow clients up to the timeouts of a minute. Steps of 2 to 2.5 bound the
/// error of an interpolated percentile in all of that range, with few enough series for each worker to be small.
pub const BUCKETS_US: [u64; 21] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// Number of buckets, with the unbounded one.
pub(crate) const BUCKETS: usize = BUCKETS_US.len() + 1;

/// First bucket that may hold a number of so many significant bits.
const FIRST_BUCKET: [u8; 65] = {
    let mut first = [0; 65];
    let mut bits = 1;
    while bits <= 64 {
        let least = 1u64 << (bits - 1);
        let mut bucket = 0;
        while bucket < BUCKETS_US.len() && BUCKETS_US[bucket] < least {
            bucket += 1;
        }
        first[bits] = bucket as u8;
        bits += 1;
    }
    first
};

/// Returns the bucket of a duration: a load and at most three comparisons.
fn bucket(us: u64) -> usize {
    let mut bucket = usize::from(FIRST_BUCKET[(u64::BITS - us.leading_zeros()) as usize]);
    while bucket < BUCKETS_US.len() && us > BUCKETS_US[bucket] {
        bucket += 1;
    }
    bucket
}

/// A histogram with one writer.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [Counter; BUCKETS],
    sum_us: Counter,
}

impl Histogram {
    /// Counts a duration.
    pub(crate) fn record(&self, us: u64) {
        self.buckets[bucket(us)].add(1);
        self.sum_us.add(us);
    }
}

/// Values of a histogram, summed over workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HistogramValues {
    /// Durations in each bucket alone.
    pub(crate) buckets: [u64; BUCKETS],
    pub(crate) sum_us: u64,
}

impl HistogramValues {
    /// Adds a worker's values.
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        for (sum, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum += bucket.get();
        }
        self.sum_us += histogram.sum_us.get();
    }

    /// Returns what was counted since earlier values of the same histogram.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let buckets = std::array::from_fn(|index| self.buckets[index].saturating_sub(before.buckets[index]));
        Self { buckets, sum_us: self.sum_us.saturating_sub(before.sum_us) }
    }

    /// Estimates a percentile, given as a part of 1; `None` without durations.
    pub(crate) fn percentile(&self, part: f64) -> Option<Percentile> {
        let rank = part * self.count() as f64;
        let index = self.cumulative().position(|(_, count)| count > 0 && count as f64 >= rank)?;
        let (count, below) = (self.buckets[index] as f64, self.buckets[..index].iter().sum::<u64>() as f64);
        let low = index.checked_sub(1).map_or(0.0, |previous| seconds(BUCKETS_US[previous]));
        let high = BUCKETS_US.get(index).map(|us| seconds(*us));
        // The last bucket has no width, and only its bound is known.
        let estimate = high.map_or(low, |high| low + (high - low) * (rank - below) / count);
        Some(Percentile { estimate, low, high })
    }

    /// Returns the upper bound of each bucket in seconds, and the number of durations up to it.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (Option<f64>, u64)> {
        let bounds = BUCKETS_US.iter().map(|us| Some(seconds(*us))).chain([None]);
        bounds.zip(self.buckets.iter().scan(0, |count, bucket| {
            *count += bucket;
            Some(*count)
        }))
    }

    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(crate) fn sum_seconds(&self) -> f64 {
        seconds(self.sum_us)
    }
}

/// Returns microseconds as seconds.
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, BUCKETS_US, Histogram, HistogramValues, bucket};

    #[test]
    fn bounds_of_buckets_are_inclusive() {
        assert_eq!((bucket(0), bucket(10), bucket(11)), (0, 0, 1));
        for (index, bound) in BUCKETS_US.into_iter().enumerate() {
            assert_eq!((bucket(bound), bucket(bound + 1)), (index, index + 1), "{bound}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for us in 0..200_000 {
            assert_eq!(bucket(us), BUCKETS_US.partition_point(|bound| *bound < us), "{us}");
        }
    }

    #[test]
    fn sums_buckets_of_workers() {
        let (one, other) = (Histogram::default(), Histogram::default());
        [10, 20, 70_000_000].into_iter().for_each(|us| one.record(us));
        other.record(25);
        let mut values = HistogramValues::default();
        [&one, &other].into_iter().for_each(|histogram| values.add(histogram));
        let cumulative: Vec<_> = values.cumulative().collect();
        assert_eq!(cumulative[..3], [(Some(0.000_01), 1), (Some(0.000_025), 3), (Some(0.000_05), 3)]);
        assert_eq!((cumulative[BUCKETS - 1], values.count()), ((None, 4), 4));
        assert!((values.sum_seconds() - 70.000_055).abs() < 1e-9);
    }

    #[test]
    fn percentiles_of_a_difference_have_the_bounds_of_their_bucket() {
        let of = |us: &[u64]| {
            let histogram = Histogram::default();
            us.iter().for_each(|us| histogram.record(*us));
            let mut values = HistogramValues::default();
            values.add(&histogram);
            values
        };
        let bounds = |values: &HistogramValues, part| {
            values.percentile(part).map(|found| (found.low, found.estimate, found.high))
        };
        assert_eq!(bounds(&of(&[]), 0.5), None);
        assert_eq!(bounds(&of(&[3, 3]), 0.5), Some((0.0, 0.000_005, Some(0.000_01))));
        assert_eq!(bounds(&of(&[70_000_000]), 0.5), Some((60.0, 60.0, None)));
        let (old, new) = (of(&[3, 3, 3]), of(&[3, 3, 3, 20, 70_000]));
        assert_eq!(bounds(&new.since(&old), 0.5), Some((0.000_01, 0.000_025, Some(0.000_025))));
        assert_eq!(bounds(&new.since(&old), 0.99).map(|(low, ..)| low), Some(0.05));
        assert_eq!(bounds(&old.since(&new), 0.5), None, "never negative");
    }
}
