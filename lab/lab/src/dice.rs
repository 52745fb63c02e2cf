//! Random numbers from a seed: the same seed gives the same order of blocks and the same intervals.

/// SplitMix64: small, quick, and good enough for orders and resampling.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that always fall the same for one seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The high half of a product spreads evenly enough for bounds as small as ours.
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Puts the items into a random order, each as likely as any other.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
