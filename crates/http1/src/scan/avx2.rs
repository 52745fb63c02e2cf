//! Scans 32 bytes at a time with AVX2, on processors that have it.

use super::block::{Block, HALF_BYTES, Scanner};
use super::cut::{self, Progress, Stop};
use crate::fields::FieldSpans;
use std::arch::x86_64::{
    __m256i, _mm256_andnot_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

/// Proof that the processor has AVX2, BMI1 and BMI2: created only by detection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        has_all.then_some(Self(()))
    }

    /// [`cut::lines`], compiled for AVX2.
    #[inline(always)]
    pub(super) fn lines(self, bytes: &[u8], progress: &mut Progress, table: &mut [FieldSpans]) -> Stop {
        // SAFETY: `self` exists only if the features were detected.
        unsafe { lines(self, bytes, progress, table) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn lines(scanner: Avx2, bytes: &[u8], progress: &mut Progress, table: &mut [FieldSpans]) -> Stop {
    cut::lines(scanner, bytes, progress, table)
}

impl Scanner for Avx2 {
    #[inline(always)]
    fn half(self, bytes: &[u8; HALF_BYTES]) -> Block {
        // SAFETY: `self` exists only if the features were detected.
        unsafe { find_line(bytes) }
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn find_line(bytes: &[u8; HALF_BYTES]) -> Block {
    // SAFETY: `bytes` has the length of the load, which needs no alignment.
    let half = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    let top = _mm256_set1_epi8(0x1F);
    let low = _mm256_cmpeq_epi8(_mm256_min_epu8(half, top), half);
    let low = _mm256_andnot_si256(equal(half, b'\t'), low);
    Block { controls: bits(_mm256_or_si256(low, equal(half, 0x7F))), colons: bits(equal(half, b':')) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn equal(half: __m256i, byte: u8) -> __m256i {
    _mm256_cmpeq_epi8(half, _mm256_set1_epi8(byte as i8))
}

#[target_feature(enable = "avx2")]
#[inline]
fn bits(half: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(half) as u32)
}
