//! The boundary between the parts of an answer (RFC 2046 section 5.1.1): 128 bits that nobody can foresee.
//!
//! A boundary that stood in the file would end a part too early. Each answer draws its own, by a keyed hash whose keys the system
//! gave this process at random, after the file was written: no file can be made to hold it, not even by who has seen others. That a
//! file holds it by chance is as likely as one in 2^128 for each of its bytes: for a file of a tebibyte, one in 2^88.

use std::hash::{BuildHasher, RandomState};

/// A new boundary of 32 digits.
pub(crate) fn boundary() -> String {
    // Each value has keys of its own.
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
