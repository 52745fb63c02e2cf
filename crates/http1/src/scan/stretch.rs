//! Short ranges of a head that are checked by byte class: a request target, a host.

use super::best;

/// Bytes that are processed at once.
pub(super) const LANE_BYTES: usize = 16;
/// One bit for each byte of a lane.
const ALL: u32 = (1 << LANE_BYTES) - 1;

/// Masks over a part of a request target, with the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TargetBits {
    /// Visible ASCII characters other than `#`.
    pub(super) allowed: u32,
    /// `?`
    pub(super) marks: u32,
}

/// Masks over a host and port, with the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameBits {
    /// Letters, digits, `-` and `.`.
    pub(crate) plain: u32,
    pub(crate) digits: u32,
    pub(crate) colons: u32,
}

/// Returns the offset of the first `?` in `bytes[start..end]`, or `end`. `None` if a byte is invalid in a
/// target, or if fewer than 16 bytes follow `start` or the last lane.
#[inline(always)]
pub(crate) fn target(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    match all(end - start) {
        Some(all) => target_lane(bytes, start, all).map(|marks| mark(marks, start, end)),
        None => long_target(bytes, start, end),
    }
}

/// Returns the mask of `?` in the lane at `at`. `None` if a byte with its bit in `counts` is invalid in a
/// target.
#[inline(always)]
fn target_lane(bytes: &[u8], at: usize, counts: u32) -> Option<u32> {
    let found = best::target(bytes.get(at..at + LANE_BYTES)?.first_chunk()?);
    (!found.allowed & counts == 0).then_some(found.marks & counts)
}

#[inline(always)]
fn mark(marks: u32, at: usize, end: usize) -> usize {
    if marks == 0 { end } else { at + marks.trailing_zeros() as usize }
}

fn long_target(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let mut first = end;
    for at in (start..end).step_by(LANE_BYTES) {
        let counts = all(end - at).unwrap_or(ALL);
        first = first.min(mark(target_lane(bytes, at, counts)?, at, end));
    }
    Some(first)
}

/// Returns the masks over `bytes[start..end]`. `None` for more than 16 bytes, and if fewer than 16 follow
/// `start`.
#[inline(always)]
pub(crate) fn name(bytes: &[u8], start: usize, end: usize) -> Option<NameBits> {
    let all = all(end - start)?;
    let found = best::name(bytes.get(start..start + LANE_BYTES)?.first_chunk()?);
    Some(NameBits { plain: found.plain & all, digits: found.digits & all, colons: found.colons & all })
}

/// Returns one bit for each of up to 16 bytes.
#[inline(always)]
pub(crate) fn all(len: usize) -> Option<u32> {
    (len <= LANE_BYTES).then(|| ALL >> (LANE_BYTES - len))
}
