//! Eight bytes at a time in an ordinary register ("SIMD within a register"), in safe Rust.
//!
//! A predicate maps a word to a mask with the top bit set in exactly the bytes that match. All arithmetic keeps each byte's
//! carry inside the byte, so the masks are exact and the lowest set bit is the first match.

const WORD: usize = size_of::<u64>();
const LOW_BITS: u64 = splat(0x7F);
const HIGH_BITS: u64 = splat(0x80);

const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD])
}

/// The offset of the first byte that `matches` marks.
#[inline]
pub(super) fn position(bytes: &[u8], matches: impl Fn(u64) -> u64) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<WORD>();
    for (index, word) in words.iter().enumerate() {
        let mask = matches(u64::from_le_bytes(*word));
        if mask != 0 {
            return Some(index * WORD + first(mask));
        }
    }
    let mask = matches(tail(rest)) & (1u64 << (rest.len() * 8)).wrapping_sub(1);
    (mask != 0).then(|| bytes.len() - rest.len() + first(mask))
}

/// Control bytes other than HTAB.
#[inline]
pub(super) fn controls(word: u64) -> u64 {
    let low = word & LOW_BITS;
    let below_space = !(low + splat(0x80 - b' ')) & !word;
    ((below_space & !equal(word, b'\t')) | equal(word, 0x7F)) & HIGH_BITS
}

/// Bytes equal to `byte`.
#[inline]
pub(super) fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ splat(byte);
    !(((difference & LOW_BITS) + LOW_BITS) | difference) & HIGH_BITS
}

#[inline]
fn first(mask: u64) -> usize {
    mask.trailing_zeros() as usize / 8
}

/// Up to seven bytes as a word, zeros above them.
#[inline]
fn tail(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_exact_for_every_byte_beside_every_byte() {
        for left in 0..=255u8 {
            for right in 0..=255u8 {
                let word = u64::from_le_bytes([left, right, b'a', left, right, right, left, 0xFF]);
                for (at, byte) in word.to_le_bytes().into_iter().enumerate() {
                    let bit = 0x80u64 << (8 * at);
                    assert_eq!(
                        controls(word) & bit != 0,
                        byte.is_ascii_control() && byte != b'\t',
                        "{word:x} {at}"
                    );
                    assert_eq!(equal(word, b':') & bit != 0, byte == b':', "{word:x} {at}");
                }
            }
        }
    }

    #[test]
    fn positions_agree_with_a_plain_loop_at_every_length_and_place() {
        for length in 0..40 {
            assert_eq!(position(&vec![b'x'; length], controls), None);
            for place in 0..length {
                let mut bytes = vec![b'x'; length];
                bytes[place..].fill(b'\r');
                assert_eq!(position(&bytes, controls), Some(place), "{length} {place}");
            }
        }
    }
}
