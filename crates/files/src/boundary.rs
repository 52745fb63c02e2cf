//! Multipart boundaries (RFC 2046 section 5.1.1): 128 unpredictable bits.
//!
//! A boundary that occurs in the file would end a part early. Each response generates its own with a keyed hash. Its
//! keys are chosen at random for this process, so no file can be crafted to contain it. The chance that a file contains
//! it by accident is 1 in 2^128 for each of its bytes, 1 in 2^88 for a tebibyte.

use std::hash::{BuildHasher, RandomState};

/// Returns a new boundary of 32 digits.
pub(crate) fn boundary() -> String {
    // Each `RandomState` has different keys.
    let keys = RandomState::new();
    format!("{:016x}{:016x}", keys.hash_one(0_u8), keys.hash_one(1_u8))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::boundary;

    #[test]
    fn no_two_are_the_same() {
        let drawn: HashSet<_> = (0..1_000).map(|_| boundary()).collect();
        assert_eq!(drawn.len(), 1_000);
        assert!(drawn.iter().all(|boundary| boundary.len() == 32));
    }
}
