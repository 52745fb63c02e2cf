//! A seeded generator for all choices: SplitMix64, small and the same everywhere.

/// A deterministic sequence of numbers.
#[derive(Debug)]
pub(super) struct Rng {
    state: u64,
}

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `end - 1`; 0 if `end` is 0. (The bias of `%` is far below what a test could
    /// see.)
    pub(super) fn below(&mut self, end: usize) -> usize {
        let number = self.next();
        if end == 0 { 0 } else { (number % end as u64) as usize }
    }

    /// Returns true with the given probability. Certainties draw no number.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        probability >= 1.0 || ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Returns a shorter length, 1 to `len - 1`, or `len` if it can't be shortened.
    pub(super) fn shorten(&mut self, len: usize) -> usize {
        if len < 2 { len } else { 1 + self.below(len - 1) }
    }
}
