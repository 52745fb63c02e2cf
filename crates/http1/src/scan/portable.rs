//! The scanner for other architectures: words, in safe Rust.

use super::block::{Block, HALF_BYTES, Scanner};
use super::cut::{self, Progress, Stop};
use super::stretch::{LANE_BYTES, NameBits, TargetBits};
use super::swar::{LOW_BITS, WORD, controls, equal, splat, within};
use crate::fields::FieldSpans;

/// The scanner, which needs no CPU feature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words;

pub(super) const BASELINE: Words = Words;

impl Scanner for Words {
    fn half(self, bytes: &[u8; HALF_BYTES]) -> Block {
        Block { controls: bits(bytes, controls), colons: bits(bytes, |word| equal(word, b':')) }
    }
}

/// [`cut::lines`], compiled for words.
pub(super) fn lines(bytes: &[u8], progress: &mut Progress, table: &mut [FieldSpans]) -> Stop {
    cut::lines(Words, bytes, progress, table)
}

pub(super) fn target(bytes: &[u8; LANE_BYTES]) -> TargetBits {
    let allowed = |word: u64| within(word & LOW_BITS, b'!', b'~') & !word & !equal(word, b'#');
    TargetBits { allowed: bits(bytes, allowed) as u32, marks: bits(bytes, |word| equal(word, b'?')) as u32 }
}

pub(super) fn name(bytes: &[u8; LANE_BYTES]) -> NameBits {
    let digits = |word: u64| within(word & LOW_BITS, b'0', b'9') & !word;
    let letters = |word: u64| within(word & LOW_BITS | splat(0x20), b'a', b'z') & !word;
    let plain = |word: u64| letters(word) | digits(word) | (within(word & LOW_BITS, b'-', b'.') & !word);
    NameBits {
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
