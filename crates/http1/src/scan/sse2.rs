//! Scans 16 bytes at a time with SSE2, which every x86-64 processor has.

use super::block::{Block, HALF_BYTES, Scanner};
use super::cut::{self, Progress, Stop};
use super::stretch::{LANE_BYTES, NameBits, TargetBits};
use crate::fields::FieldSpans;
use std::arch::x86_64::{
    __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
    _mm_set1_epi8, _mm_sub_epi8,
};

/// The scanner, which needs no detection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sse2;

pub(super) const BASELINE: Sse2 = Sse2;

/// [`cut::lines`], compiled for SSE2.
#[inline(never)]
pub(super) fn lines(bytes: &[u8], progress: &mut Progress, table: &mut [FieldSpans]) -> Stop {
    cut::lines(Sse2, bytes, progress, table)
}

impl Scanner for Sse2 {
    #[inline(always)]
    fn half(self, bytes: &[u8; HALF_BYTES]) -> Block {
        // SAFETY: x86-64 has SSE2.
        unsafe { find_lines(bytes) }
    }
}

#[inline(always)]
pub(super) fn target(bytes: &[u8; LANE_BYTES]) -> TargetBits {
    // SAFETY: x86-64 has SSE2.
    unsafe { find_target(bytes) }
}

#[inline(always)]
pub(super) fn name(bytes: &[u8; LANE_BYTES]) -> NameBits {
    // SAFETY: x86-64 has SSE2.
    unsafe { find_name(bytes) }
}

#[target_feature(enable = "sse2")]
#[inline]
fn find_lines(bytes: &[u8; HALF_BYTES]) -> Block {
    let mut block = Block { controls: 0, colons: 0 };
    for (index, lane) in bytes.as_chunks().0.iter().enumerate() {
        let lane = load(lane);
        let low = _mm_andnot_si128(equal(lane, b'\t'), within(lane, 0, 0x1F));
        let controls = _mm_or_si128(low, equal(lane, 0x7F));
        block.controls |= u64::from(bits(controls)) << (index * LANE_BYTES);
        block.colons |= u64::from(bits(equal(lane, b':'))) << (index * LANE_BYTES);
    }
    block
}

#[target_feature(enable = "sse2")]
#[inline]
fn find_target(bytes: &[u8; LANE_BYTES]) -> TargetBits {
    let lane = load(bytes);
    let allowed = _mm_andnot_si128(equal(lane, b'#'), within(lane, b'!', b'~'));
    TargetBits { allowed: bits(allowed), marks: bits(equal(lane, b'?')) }
}

#[target_feature(enable = "sse2")]
#[inline]
fn find_name(bytes: &[u8; LANE_BYTES]) -> NameBits {
    let lane = load(bytes);
    let digits = within(lane, b'0', b'9');
    let letters = within(_mm_or_si128(lane, _mm_set1_epi8(0x20)), b'a', b'z');
    let plain = _mm_or_si128(_mm_or_si128(letters, digits), within(lane, b'-', b'.'));
    NameBits { plain: bits(plain), digits: bits(digits), colons: bits(equal(lane, b':')) }
}

/// Loads two words, which the compiler merges into one load.
#[target_feature(enable = "sse2")]
#[inline]
fn load(bytes: &[u8; LANE_BYTES]) -> __m128i {
    let both = i128::from_le_bytes(*bytes);
    _mm_set_epi64x((both >> i64::BITS) as i64, both as i64)
}

#[target_feature(enable = "sse2")]
#[inline]
fn equal(lane: __m128i, byte: u8) -> __m128i {
    _mm_cmpeq_epi8(lane, _mm_set1_epi8(byte as i8))
}

/// Returns a mask of the bytes from `first` to `last`.
#[target_feature(enable = "sse2")]
#[inline]
fn within(lane: __m128i, first: u8, last: u8) -> __m128i {
    let offset = _mm_sub_epi8(lane, _mm_set1_epi8(first as i8));
    _mm_cmpeq_epi8(_mm_min_epu8(offset, _mm_set1_epi8((last - first) as i8)), offset)
}

#[target_feature(enable = "sse2")]
#[inline]
fn bits(lane: __m128i) -> u32 {
    _mm_movemask_epi8(lane) as u32
}
