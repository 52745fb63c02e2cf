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
    let mask = matches(tail(bytes, rest.len())) & (1u64 << (rest.len() * 8)).wrapping_sub(1);
    (mask != 0).then(|| bytes.len() - rest.len() + first(mask))
}

/// Control bytes other than HTAB.
#[inline]
pub(super) fn controls(word: u64) -> u64 {
    let low = word & LOW_BITS;
    let at_least_space = low + splat(0x80 - b' ');
    let not_tab = (low ^ splat(b'\t')) + LOW_BITS;
    let delete = low + splat(0x80 - 0x7F);
    ((!at_least_space & not_tab) | delete) & !word & HIGH_BITS
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

/// The last `count` bytes, fewer than a word, as a word with zeros above them.
#[inline]
fn tail(bytes: &[u8], count: usize) -> u64 {
    match bytes.last_chunk::<WORD>() {
        Some(last) if count > 0 => u64::from_le_bytes(*last) >> ((WORD - count) * 8),
        Some(_) => 0,
        None => bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte)),
    }
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
}
