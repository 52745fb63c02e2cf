//! Latencies of normal clients, by stretches of time.

use std::time::{Duration, Instant};

/// A stretch of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    /// Its first moment.
    pub(super) start: Instant,
    /// The first moment after it.
    pub(super) end: Instant,
}

impl Stretch {
    /// From `start` to now.
    pub(super) fn since(start: Instant) -> Self {
        Self { start, end: Instant::now() }
    }

    /// True if the moment lies in it.
    pub(super) fn contains(self, moment: Instant) -> bool {
        (self.start..self.end).contains(&moment)
    }

    /// How long it is.
    pub(super) fn length(self) -> Duration {
        self.end - self.start
    }
}

/// One figure with its moment.
pub(super) type Sample = (Instant, Duration);

/// The latency that 99 of 100 did not exceed (nearest rank) over all `stretches`, microseconds; `None` of nothing.
pub(super) fn p99_us(samples: &[Sample], stretches: &[Stretch]) -> Option<f64> {
    let inside = |moment| stretches.iter().any(|stretch| stretch.contains(moment));
    let mut sorted: Vec<Duration> =
        samples.iter().filter(|(moment, _)| inside(*moment)).map(|(_, latency)| *latency).collect();
    sorted.sort_unstable();
    let rank = (sorted.len() * 99).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).map(|latency| latency.as_secs_f64() * 1e6)
}

/// The p99 of each second of a stretch, microseconds: shows at what the attackers did it was.
pub(super) fn p99_by_second_us(samples: &[Sample], stretch: Stretch) -> Vec<Option<f64>> {
    let second = Duration::from_secs(1);
    let starts = (0..).map(|index| stretch.start + second * index).take_while(|start| *start < stretch.end);
    starts.map(|start| p99_us(samples, &[Stretch { start, end: start + second }])).collect()
}

#[cfg(test)]
mod tests {
    use super::{Stretch, p99_by_second_us, p99_us};
    use std::time::{Duration, Instant};

    #[test]
    fn only_what_lies_in_the_stretches_counts() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut samples: Vec<_> = (1..=100).map(|n| (at(n), Duration::from_micros(n))).collect();
        samples.push((at(500), Duration::from_secs(1)));
        let first = Stretch { start, end: at(400) };
        assert_eq!(p99_us(&samples, &[first]).map(f64::round), Some(99.0));
        assert_eq!(p99_us(&samples, &[Stretch { start: at(450), end: at(600) }]), Some(1e6));
        assert_eq!(p99_us(&samples, &[]), None);
        let seconds = p99_by_second_us(&samples[..100], Stretch { start, end: at(1_500) });
        let rounded: Vec<Option<f64>> = seconds.into_iter().map(|p99| p99.map(f64::round)).collect();
        assert_eq!(rounded, [Some(99.0), None]);
    }
}
