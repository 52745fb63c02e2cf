//! Byte classes of RFC 9110 and RFC 3986, one byte or eight at a time, in safe Rust.
//!
//! A predicate of a word maps it to a mask with the top bit set in exactly the bytes that match. All arithmetic
//! keeps each byte's carry inside the byte, so the masks are exact and the lowest set bit is the first match.

/// Returns true for a `tchar` (RFC 9110 5.6.2).
#[inline]
pub(crate) fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[byte as usize]
}

/// The bytes that are a `tchar`, as a table: each head begins with one.
static TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = matches!(
            byte as u8,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.'
                | b'^'..=b'`' | b'|' | b'~'
        );
        byte += 1;
    }
    table
};

/// Returns true for a `token`, 1*tchar (RFC 9110 5.6.2).
#[inline(never)]
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    // Most names consist of letters, digits and hyphens.
    all(bytes, is_plain_name) || (!bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte)))
}

/// Returns true for UTF-8 without spaces, control characters and `#`: a fragment is never part of a request
/// target (RFC 9112 3.2), and clients send other characters without encoding them.
pub(crate) fn is_target(bytes: &[u8]) -> bool {
    let is_allowed = |letter: char| !matches!(letter, ' ' | '#') && !letter.is_control();
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_allowed))
}

/// Returns true for VCHAR, SP, HTAB or obs-text (RFC 9110 5.5).
#[inline]
pub(crate) fn is_field_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7F)
}

/// Returns true for `unreserved` or `sub-delims`: `reg-name` (RFC 3986 3.2.2) except percent-encoded octets.
#[inline]
pub(crate) fn is_reg_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

/// Returns the offset of the first `:`.
#[inline]
pub(crate) fn colon(bytes: &[u8]) -> Option<usize> {
    position(bytes, |word| equal(word, b':'))
}

/// Returns the offset of the first SP.
#[inline]
pub(crate) fn space(bytes: &[u8]) -> Option<usize> {
    position(bytes, |word| equal(word, b' '))
}

/// Returns the offset of the first `?`.
#[inline]
pub(crate) fn question_mark(bytes: &[u8]) -> Option<usize> {
    position(bytes, |word| equal(word, b'?'))
}

pub(super) const WORD: usize = size_of::<u64>();
pub(super) const LOW_BITS: u64 = splat(0x7F);
const HIGH_BITS: u64 = splat(0x80);

pub(super) const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD])
}

/// Returns the offset of the first byte that `matches` marks.
#[inline]
fn position(bytes: &[u8], matches: impl Fn(u64) -> u64) -> Option<usize> {
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

/// The scanner for other architectures than x86-64.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) mod portable {
    use super::super::masks::{BlockMasks, HALF_BYTES, LANE_BYTES, NameMasks, Scanner, TargetMasks};
    use super::{LOW_BITS, WORD, controls, equal, splat, within};

    /// The scanner, which needs no CPU feature.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::scan) struct WordScanner;

    pub(in crate::scan) const BASELINE: WordScanner = WordScanner;

    impl Scanner for WordScanner {
        fn half(self, bytes: &[u8; HALF_BYTES]) -> BlockMasks {
            BlockMasks { controls: bits(bytes, controls), colons: bits(bytes, |word| equal(word, b':')) }
        }
    }

    pub(in crate::scan) fn target(bytes: &[u8; LANE_BYTES]) -> TargetMasks {
        let allowed = |word: u64| within(word & LOW_BITS, b'!', b'~') & !word & !equal(word, b'#');
        let dots = |word| equal(word, b'.') | equal(word, b'%');
        let after_slash = bits(bytes, |word| equal(word, b'/')) << 1;
        TargetMasks {
            plain: (bits(bytes, allowed) & !(bits(bytes, dots) & after_slash)) as u32,
            marks: bits(bytes, |word| equal(word, b'?')) as u32,
        }
    }

    pub(in crate::scan) fn name(bytes: &[u8; LANE_BYTES]) -> NameMasks {
        let digits = |word: u64| within(word & LOW_BITS, b'0', b'9') & !word;
        let letters = |word: u64| within(word & LOW_BITS | splat(0x20), b'a', b'z') & !word;
        let plain = |word: u64| letters(word) | digits(word) | (within(word & LOW_BITS, b'-', b'.') & !word);
        NameMasks {
            plain: bits(bytes, plain) as u32,
            digits: bits(bytes, digits) as u32,
            colons: bits(bytes, |word| equal(word, b':')) as u32,
        }
    }

    /// Returns one bit for each byte that `matches` marks, with the first byte in the lowest bit.
    fn bits(bytes: &[u8], matches: impl Fn(u64) -> u64) -> u64 {
        let (words, _) = bytes.as_chunks();
        let bits_of = |word: &[u8; WORD]| gather(matches(u64::from_le_bytes(*word)));
        words.iter().rev().fold(0, |all, word| all << WORD | bits_of(word))
    }

    /// Gathers the top bits of the bytes: the product adds each at its own position in the top byte.
    fn gather(mask: u64) -> u64 {
        const PLACES: u64 = u64::from_be_bytes([1, 2, 4, 8, 16, 32, 64, 128]);
        (mask >> 7).wrapping_mul(PLACES) >> (u64::BITS - u8::BITS)
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

    /// Compares the classes of single bytes with the grammars of the RFCs.
    #[test]
    fn classes_are_those_of_the_grammars() {
        let alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let token = format!("!#$%&'*+-.^_`|~{alphanumeric}");
        let reg_name = format!("-._~!$&'()*+,;={alphanumeric}");
        for byte in 0..=u8::MAX {
            assert_eq!(is_token_byte(byte), token.bytes().any(|one| one == byte), "{byte:#x}");
            assert_eq!(is_reg_name_byte(byte), reg_name.bytes().any(|one| one == byte), "{byte:#x}");
            let is_value = byte == 9 || (0x20..0x7f).contains(&byte) || byte >= 0x80;
            assert_eq!(is_field_value_byte(byte), is_value, "{byte:#x}");
        }
    }
}
