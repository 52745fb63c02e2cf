//! A hash of short texts, and their comparison, both also without regard to the case of ASCII letters: a few instructions per eight bytes.
//!
//! What is hashed here comes from the operator; what a client sends is only looked up. So the hash needs no secret.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bit that tells a capital from a small letter, in eight bytes. What it makes the same of other bytes (`[` and `{`, `_` and DEL) can't
/// both stand in a host.
const CASE: u64 = 0x2020_2020_2020_2020;

/// How bytes are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// As they are.
    Differs,
    /// Capitals as small letters.
    Same,
}

impl Case {
    #[inline(always)]
    const fn mask(self) -> u64 {
        match self {
            Self::Differs => 0,
            Self::Same => CASE,
        }
    }
}

/// The hash of a text.
#[inline]
pub(crate) fn hash(text: &[u8], case: Case) -> u64 {
    let (words, tail) = text.as_chunks::<8>();
    let start = text.len() as u64;
    let state =
        words.iter().fold(start, |state, word| mix(state ^ (u64::from_le_bytes(*word) | case.mask())));
    // Of longer texts the last eight bytes, some of them twice: that is quicker than to tell how many are left.
    let last = text.last_chunk::<8>().map_or_else(|| word_of(tail), |last| u64::from_le_bytes(*last));
    mix(state ^ (last | case.mask()))
}

/// A hash of samples of two texts: in no more time for longer ones.
#[inline]
pub(crate) fn of_samples(one: &[u8], other: &[u8]) -> u64 {
    let word = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let ends = match other.first_chunk::<8>() {
        Some(first) => u64::from_le_bytes(*first).rotate_left(1) ^ word(other.last_chunk()),
        None => word_of(other),
    };
    let middle = word(other[other.len() / 2..].first_chunk());
    mix(mix(word(one.first_chunk()) ^ ends) ^ middle ^ other.len() as u64)
}

/// Whether two texts are the same.
#[inline]
pub(crate) fn is_same(one: &[u8], other: &[u8], case: Case) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let ((words, tail), (other_words, other_tail)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let differs = |one: u64, other: u64| (one | case.mask()) ^ (other | case.mask());
    let pairs = words.iter().zip(other_words);
    let words = pairs
        .fold(0, |any, (one, other)| any | differs(u64::from_le_bytes(*one), u64::from_le_bytes(*other)));
    let last = match (one.last_chunk::<8>(), other.last_chunk::<8>()) {
        (Some(one), Some(other)) => differs(u64::from_le_bytes(*one), u64::from_le_bytes(*other)),
        _ => differs(word_of(tail), word_of(other_tail)),
    };
    words | last == 0
}

/// Up to seven bytes as a number: two texts of the same length have the same one if they are the same.
#[inline(always)]
fn word_of(mut tail: &[u8]) -> u64 {
    let mut word = 0;
    if let Some((four, rest)) = tail.split_first_chunk::<4>() {
        word = u64::from(u32::from_le_bytes(*four));
        tail = rest;
    }
    if let Some((two, rest)) = tail.split_first_chunk::<2>() {
        word = word << 16 | u64::from(u16::from_le_bytes(*two));
        tail = rest;
    }
    tail.first().map_or(word, |&byte| word << 8 | u64::from(byte))
}

/// Both halves of a product: each bit of the one depends on all of the other.
#[inline(always)]
fn mix(state: u64) -> u64 {
    let wide = u128::from(state ^ MULTIPLIER) * u128::from(MULTIPLIER);
    (wide >> 64) as u64 ^ wide as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Case, hash, is_same, of_samples};

    #[test]
    fn texts_that_differ_in_a_byte_are_told_apart() {
        for len in 0..40 {
            let text: Vec<u8> = (0..len).map(|at| b'a' + at as u8 % 26).collect();
            assert!(is_same(&text, &text.clone(), Case::Differs));
            for at in 0..len {
                let mut other = text.clone();
                other[at] = b'.';
                assert!(!is_same(&text, &other, Case::Differs) && !is_same(&text, &other, Case::Same));
                assert_ne!(hash(&text, Case::Differs), hash(&other, Case::Differs));
                let mut upper = text.clone();
                upper[at].make_ascii_uppercase();
                assert!(!is_same(&text, &upper, Case::Differs) && is_same(&text, &upper, Case::Same));
                assert_eq!(hash(&text, Case::Same), hash(&upper, Case::Same));
            }
            assert!(!is_same(&text, &[&text[..], b"x"].concat(), Case::Same));
        }
    }

    #[test]
    fn samples_tell_usual_paths_apart() {
        let paths = (0..1000).map(|number| format!("/articles/2024/{number}/index.html"));
        let hashes: HashSet<_> =
            paths.map(|path| of_samples(b"example.org", path.as_bytes()) % 1024).collect();
        assert!(hashes.len() > 550, "{}", hashes.len());
        let hosts = (0..1000).map(|number| format!("site-{number}.example.org"));
        let hashes: HashSet<_> = hosts.map(|host| of_samples(host.as_bytes(), b"/") % 1024).collect();
        assert!(hashes.len() > 550, "{}", hashes.len());
        assert_ne!(of_samples(b"", b"/a"), of_samples(b"", b"/b"));
    }

    #[test]
    fn names_in_a_row_spread() {
        let low_bits = |bits: u32| {
            let hashes =
                (0..1000).map(|number| hash(format!("site-{number}.example").as_bytes(), Case::Same));
            hashes.map(|hash| hash % (1 << bits)).collect::<HashSet<_>>().len()
        };
        // Of a thousand balls in as many boxes some 620 boxes hold one.
        assert!(low_bits(10) > 550, "{}", low_bits(10));
        assert!(low_bits(32) == 1000);
    }
}
