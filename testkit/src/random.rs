//! Seeded generators: the same seed and part give the same sequence on every machine.

pub use fastrand::Rng;

/// Returns a generator for one part of a run, independent of the other parts for the same seed.
pub fn part(seed: u64, part: u64) -> Rng {
    Rng::with_seed(Rng::with_seed(seed ^ part.rotate_left(32)).u64(..))
}

/// Returns `length` random bytes.
pub fn bytes(random: &mut Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}
