//! Scanners of x86-64: 16 bytes at a time with SSE2, which every processor has, and 32 with AVX2.

use super::lines::{self, FieldSpans, LineProgress, ScanStop};
use super::masks::{BlockMasks, HALF_BYTES, LANE_BYTES, NameMasks, Scanner, TargetMasks};
use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_andnot_si128, _mm_bslli_si128, _mm_cmpeq_epi8, _mm_min_epu8,
    _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8, _mm_sub_epi8, _mm256_andnot_si256,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8,
};

/// The scanner, which needs no detection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sse2;

pub(super) const BASELINE: Sse2 = Sse2;

impl Scanner for Sse2 {
    #[inline(always)]
    fn half(self, bytes: &[u8; HALF_BYTES]) -> BlockMasks {
        // SAFETY: x86-64 has SSE2.
        unsafe { find_lines(bytes) }
    }
}

#[inline(always)]
pub(super) fn target(bytes: &[u8; LANE_BYTES]) -> TargetMasks {
    // SAFETY: x86-64 has SSE2.
    unsafe { find_target(bytes) }
}

#[inline(always)]
pub(super) fn name(bytes: &[u8; LANE_BYTES]) -> NameMasks {
    // SAFETY: x86-64 has SSE2.
    unsafe { find_name(bytes) }
}

#[target_feature(enable = "sse2")]
#[inline]
fn find_lines(bytes: &[u8; HALF_BYTES]) -> BlockMasks {
    let mut block = BlockMasks { controls: 0, colons: 0 };
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
fn find_target(bytes: &[u8; LANE_BYTES]) -> TargetMasks {
    let lane = load(bytes);
    let after_slash = _mm_bslli_si128::<1>(equal(lane, b'/'));
    let dots = _mm_and_si128(_mm_or_si128(equal(lane, b'.'), equal(lane, b'%')), after_slash);
    let unusual = _mm_or_si128(equal(lane, b'#'), dots);
    let plain = _mm_andnot_si128(unusual, within(lane, b'!', b'~'));
    TargetMasks { plain: bits(plain), marks: bits(equal(lane, b'?')) }
}

#[target_feature(enable = "sse2")]
#[inline]
fn find_name(bytes: &[u8; LANE_BYTES]) -> NameMasks {
    let lane = load(bytes);
    let digits = within(lane, b'0', b'9');
    let letters = within(_mm_or_si128(lane, _mm_set1_epi8(0x20)), b'a', b'z');
    let plain = _mm_or_si128(_mm_or_si128(letters, digits), within(lane, b'-', b'.'));
    NameMasks { plain: bits(plain), digits: bits(digits), colons: bits(equal(lane, b':')) }
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

    /// [`lines::lines`], compiled for AVX2.
    #[inline(always)]
    pub(super) fn lines(
        self,
        bytes: &[u8],
        progress: &mut LineProgress,
        table: &mut [FieldSpans],
    ) -> ScanStop {
        // SAFETY: `self` exists only if the features were detected.
        unsafe { lines_with_avx2(self, bytes, progress, table) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn lines_with_avx2(
    scanner: Avx2,
    bytes: &[u8],
    progress: &mut LineProgress,
    table: &mut [FieldSpans],
) -> ScanStop {
    lines::lines(scanner, bytes, progress, table)
}

impl Scanner for Avx2 {
    #[inline(always)]
    fn half(self, bytes: &[u8; HALF_BYTES]) -> BlockMasks {
        // SAFETY: `self` exists only if the features were detected.
        unsafe { find_lines_of_half(bytes) }
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn find_lines_of_half(bytes: &[u8; HALF_BYTES]) -> BlockMasks {
    // SAFETY: `bytes` has the length of the load, which needs no alignment.
    let half = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    let top = _mm256_set1_epi8(0x1F);
    let low = _mm256_cmpeq_epi8(_mm256_min_epu8(half, top), half);
    let low = _mm256_andnot_si256(equal_32(half, b'\t'), low);
    BlockMasks {
        controls: bits_32(_mm256_or_si256(low, equal_32(half, 0x7F))),
        colons: bits_32(equal_32(half, b':')),
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn equal_32(half: __m256i, byte: u8) -> __m256i {
    _mm256_cmpeq_epi8(half, _mm256_set1_epi8(byte as i8))
}

#[target_feature(enable = "avx2")]
#[inline]
fn bits_32(half: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(half) as u32)
}
