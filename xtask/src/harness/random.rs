//! Seeded numbers: the same seed gives the same trial, on every machine.

/// A SplitMix64 generator (Steele, Lea, Flood 2014): small, fast, good enough for loads and file contents.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random {
    /// A generator whose sequence is fixed by `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A generator for one part of a trial, independent of the others for the same seed.
    pub(crate) fn stream(seed: u64, part: u64) -> Self {
        let mut mixed = Self::new(seed ^ part.wrapping_mul(GOLDEN_GAMMA));
        Self::new(mixed.next())
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number in `0..bound`; 0 for a bound of 0. The bias is below 2^-32 for bounds below 2^32.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// `length` random bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_part_others() {
        assert_eq!(Random::stream(7, 1).bytes(33), Random::stream(7, 1).bytes(33));
        assert_ne!(Random::stream(7, 1).bytes(33), Random::stream(7, 2).bytes(33));
    }

    #[test]
    fn below_stays_below() {
        let mut random = Random::new(3);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert_eq!(random.below(0), 0);
    }
}
