//! The byte scanner: all searches over more than a few bytes of a head, so that a faster implementation
//! replaces one folder.
#![expect(unsafe_code, reason = "vector intrinsics are unsafe")]

mod lines;
mod masks;
#[cfg(test)]
mod tests;
mod words;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use lines::{FieldSpans, HeadSpan, LineProgress, ScanStop};
use masks::{HALF_BYTES, LANE_BYTES, NameMasks, Scanner};
#[cfg(not(target_arch = "x86_64"))]
use words::portable as best;
pub(crate) use words::{
    colon, is_field_value_byte, is_reg_name_byte, is_target, is_token, is_token_byte, question_mark, space,
};
#[cfg(target_arch = "x86_64")]
use x86 as best;

/// The instruction set for splitting lines, chosen once when a parser is created.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cutter {
    /// The baseline of the architecture.
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::Avx2),
}

impl Cutter {
    /// Chooses the fastest one for this processor.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = x86::Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::Baseline
    }

    /// Splits the complete lines into `table`, up to the empty line, and resumes at `progress`.
    #[inline(always)]
    pub(crate) fn lines(
        self,
        bytes: &[u8],
        progress: &mut LineProgress,
        table: &mut [FieldSpans],
    ) -> ScanStop {
        match self {
            Self::Baseline => baseline_lines(bytes, progress, table),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.lines(bytes, progress, table),
        }
    }
}

#[inline(never)]
fn baseline_lines(bytes: &[u8], progress: &mut LineProgress, table: &mut [FieldSpans]) -> ScanStop {
    lines::lines(best::BASELINE, bytes, progress, table)
}

/// Returns true if there is a control byte other than HTAB (`< 0x20` or `0x7F`).
#[inline]
pub(crate) fn has_control(bytes: &[u8]) -> bool {
    let is_clean = |half: &[u8; HALF_BYTES]| best::BASELINE.half(half).controls == 0;
    match bytes.last_chunk() {
        // The last half overlaps the one before.
        Some(last) => !(bytes.as_chunks().0.iter().all(is_clean) && is_clean(last)),
        None if bytes.len() < words::WORD / 2 => !bytes.iter().all(|byte| is_field_value_byte(*byte)),
        None => !words::all(bytes, |word| words::controls(word) == 0),
    }
}

/// One bit for each byte of a lane.
const ALL: u32 = (1 << LANE_BYTES) - 1;

/// Returns the offset of the first `?` in `bytes[start..end]`, or `end`. `None` if the target needs a closer look:
/// a byte isn't visible ASCII or is `#`, or a segment begins with a dot or `%`. `None` too if fewer than 16 bytes
/// follow `start` or the last lane.
#[inline(always)]
pub(crate) fn target(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    match all(end - start) {
        Some(all) => target_lane(bytes, start, all).map(|marks| mark(marks, start, end)),
        None => long_target(bytes, start, end),
    }
}

/// Returns the mask of `?` in the lane at `at`. `None` if a byte with its bit in `counts` needs a closer look.
#[inline(always)]
fn target_lane(bytes: &[u8], at: usize, counts: u32) -> Option<u32> {
    let found = best::target(bytes.get(at..at + LANE_BYTES)?.first_chunk()?);
    (!found.plain & counts == 0).then_some(found.marks & counts)
}

#[inline(always)]
fn mark(marks: u32, at: usize, end: usize) -> usize {
    if marks == 0 { end } else { at + marks.trailing_zeros() as usize }
}

fn long_target(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let mut first = end;
    for at in (start..end).step_by(LANE_BYTES) {
        let counts = all(end - at).unwrap_or(ALL);
        if at > start && matches!(bytes[at - 1..=at], [b'/', b'.' | b'%']) {
            return None;
        }
        first = first.min(mark(target_lane(bytes, at, counts)?, at, end));
    }
    Some(first)
}

/// Returns the masks over `bytes[start..end]`. `None` for more than 16 bytes, and if fewer than 16 follow
/// `start`.
#[inline(always)]
pub(crate) fn name(bytes: &[u8], start: usize, end: usize) -> Option<NameMasks> {
    let all = all(end - start)?;
    let found = best::name(bytes.get(start..start + LANE_BYTES)?.first_chunk()?);
    Some(NameMasks { plain: found.plain & all, digits: found.digits & all, colons: found.colons & all })
}

/// Returns one bit for each of up to 16 bytes.
#[inline(always)]
pub(crate) fn all(len: usize) -> Option<u32> {
    (len <= LANE_BYTES).then(|| ALL >> (LANE_BYTES - len))
}
