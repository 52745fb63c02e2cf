//! Change points in the results of successive commits: E-divisive, the mean distance between the values of two parts
//! (Matteson and James, 2014), with a seeded permutation test, so that one series always has the same ones.

use fastrand::Rng;

/// Minimum number of values between two changes: a single outlier isn't a level.
const SEGMENT_MIN: usize = 4;
const PERMUTATIONS: usize = 999;
/// Share of permutations that may split as clearly by chance.
const CHANCE_MAX: f64 = 0.01;

/// Returns the indexes at which another level begins.
pub(crate) fn change_points(values: &[f64], seed: u64) -> Vec<usize> {
    let mut random = Rng::with_seed(seed);
    let mut found = Vec::new();
    // Starts and ends.
    let mut pending = vec![(0, values.len())];
    while let Some((start, end)) = pending.pop() {
        if let Some(at) = change_point(&values[start..end], &mut random) {
            found.push(start + at);
            pending.extend([(start, start + at), (start + at, end)]);
        }
    }
    found.sort_unstable();
    found
}

/// Returns the clearest split, unless the same values in random order split as clearly.
fn change_point(values: &[f64], random: &mut Rng) -> Option<usize> {
    let (at, distance) = clearest_split(values)?;
    let mut shuffled = values.to_vec();
    let mut is_as_clear = || {
        random.shuffle(&mut shuffled);
        clearest_split(&shuffled).is_some_and(|(_, other)| other >= distance)
    };
    let by_chance = (0..PERMUTATIONS).filter(|_| is_as_clear()).count();
    ((by_chance + 1) as f64 / (PERMUTATIONS + 1) as f64 <= CHANCE_MAX).then_some(at)
}

/// Returns the split whose parts differ most, with the distance between them.
fn clearest_split(values: &[f64]) -> Option<(usize, f64)> {
    let distances = |from: f64, to: &[f64]| to.iter().map(|value| (from - value).abs()).sum::<f64>();
    // Sums over pairs of values: both before the split, both after it, one of each.
    let (mut before, mut across) = (0.0, 0.0);
    let mut after: f64 = (0..values.len()).map(|at| distances(values[at], &values[..at])).sum();
    let mut clearest = None;
    for (at, &value) in values.iter().enumerate() {
        let [to_before, to_after] = [&values[..at], &values[at + 1..]].map(|part| distances(value, part));
        before += to_before;
        after -= to_after;
        across += to_after - to_before;
        let (left, right) = (at + 1, values.len() - at - 1);
        if left.min(right) < SEGMENT_MIN {
            continue;
        }
        let [n, m] = [left, right].map(|length| length as f64);
        let distance =
            (2.0 * across / (n * m) - 2.0 * before / (n * n) - 2.0 * after / (m * m)) * n * m / (n + m);
        if clearest.is_none_or(|(_, most)| distance > most) {
            clearest = Some((left, distance));
        }
    }
    clearest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns values around levels, each so often.
    fn noisy(levels: &[(f64, usize)], seed: u64) -> Vec<f64> {
        let mut random = Rng::with_seed(seed);
        let around = |level: f64| level + random.f64() + random.f64() + random.f64() - 1.5;
        levels.iter().flat_map(|(level, count)| vec![*level; *count]).map(around).collect()
    }

    #[test]
    fn finds_planted_changes_and_next_to_nothing_in_noise() {
        for seed in 0..5 {
            let found = change_points(&noisy(&[(100.0, 20), (102.0, 15), (101.0, 25)], seed), 1);
            assert_eq!(found.len(), 2, "{seed}: {found:?}");
            assert!(found[0].abs_diff(20) <= 1 && found[1].abs_diff(35) <= 4, "{seed}: {found:?}");
        }
        assert_eq!(change_points(&[[3_412.0; 6], [3_430.0; 6]].concat(), 1), [6], "counts have no noise");
        let found: usize = (0..30).map(|seed| change_points(&noisy(&[(100.0, 30)], seed), seed).len()).sum();
        assert!(found <= 2, "{found} in 30 series");
        for values in [vec![], vec![1.0; 50], [vec![1.0; 20], vec![9.0]].concat()] {
            assert_eq!(change_points(&values, 1), [0; 0], "{values:?}");
        }
    }
}
