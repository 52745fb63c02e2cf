//! SIMD within a register: eight bytes at a time, in safe Rust.
//!
//! A predicate maps a word to a mask with the top bit set in exactly the bytes that match. All arithmetic keeps each byte's
//! carry inside the byte, so the masks are exact and the lowest set bit is the first match.

pub(super) const WORD: usize = size_of::<u64>();
pub(super) const LOW_BITS: u64 = splat(0x7F);
const HIGH_BITS: u64 = splat(0x80);

pub(super) const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD])
}

/// Returns the offset of the first byte that `matches` marks.
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

/// Marks control bytes other than HTAB.
#[inline]
pub(super) fn controls(word: u64) -> u64 {
    let low = word & LOW_BITS;
    let at_least_space = low + splat(0x80 - b' ');
    let not_tab = (low ^ splat(b'\t')) + LOW_BITS;
    let delete = low + splat(0x80 - 0x7F);
    ((!at_least_space & not_tab) | delete) & !word & HIGH_BITS
}

/// Marks bytes equal to `byte`.
#[inline]
pub(super) fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ splat(byte);
    !(((difference & LOW_BITS) + LOW_BITS) | difference) & HIGH_BITS
}

/// Returns true if all words over `bytes` satisfy `is_good`; the last ones overlap. `false` for fewer than
/// four bytes.
#[inline]
pub(super) fn all(bytes: &[u8], is_good: impl Fn(u64) -> bool) -> bool {
    match (bytes.first_chunk(), bytes.last_chunk(), bytes.last_chunk()) {
        (_, _, Some(last)) => {
            let (words, _) = bytes.as_chunks();
            words.iter().all(|word| is_good(u64::from_le_bytes(*word))) && is_good(u64::from_le_bytes(*last))
        }
        (Some(first), Some(last), None) => {
            let [first, last]: [u32; 2] = [first, last].map(|half| u32::from_le_bytes(*half));
            is_good(u64::from(first) | u64::from(last) << u32::BITS)
        }
        _ => false,
    }
}

/// Returns true if all bytes are ASCII.
#[inline]
pub(super) fn is_ascii(word: u64) -> bool {
    word & HIGH_BITS == 0
}

/// Returns true if all bytes are letters, digits and hyphens.
#[inline]
pub(super) fn is_plain_name(word: u64) -> bool {
    let low = word & LOW_BITS;
    let letters = within(low | splat(0x20), b'a', b'z');
    let others = within(low, b'0', b'9') | equal(low, b'-');
    (letters | others) & !word & HIGH_BITS == HIGH_BITS
}

/// Marks bytes from `first` to `last`, if no byte of `low` is above 0x7F.
#[inline]
pub(super) fn within(low: u64, first: u8, last: u8) -> u64 {
    (low + splat(0x80 - first)) & !(low + splat(0x7F - last)) & HIGH_BITS
}

#[inline]
fn first(mask: u64) -> usize {
    mask.trailing_zeros() as usize / 8
}

/// Returns the last `count` bytes, fewer than a word, padded with zeros at the high end.
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
