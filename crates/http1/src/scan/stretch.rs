//! Short stretches of a head that are judged byte by byte: a request target, a host.

use super::best;

/// How many bytes are looked at together.
pub(super) const LANE_BYTES: usize = 16;
/// A bit for each byte of a lane.
const ALL: u32 = (1 << LANE_BYTES) - 1;

/// What a request target is cut by, one bit for each byte, the first byte's lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TargetBits {
    /// Visible ASCII characters other than `#`.
    pub(super) allowed: u32,
    /// `?`
    pub(super) marks: u32,
}

/// What most hosts are made of, one bit for each byte, the first byte's lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameBits {
    /// Letters, digits, `-` and `.`.
    pub(crate) plain: u32,
    pub(crate) digits: u32,
    pub(crate) colons: u32,
}

/// The first byte of `bytes[start..end]` that is a `?`, or `end`. `None` if a byte may not stand in a target, and where
/// fewer than 16 bytes follow `start`, or the last lane.
#[inline(always)]
pub(crate) fn target(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    match all(end - start) {
        Some(all) => target_lane(bytes, start, all).map(|marks| mark(marks, start, end)),
        None => long_target(bytes, start, end),
    }
}

/// The `?` in the lane at `at`. `None` if a byte that has its bit in `counts` may not stand in a target.
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

/// What stands in `bytes[start..end]`. `None` for more than 16 bytes, and where fewer than 16 follow `start`.
#[inline(always)]
pub(crate) fn name(bytes: &[u8], start: usize, end: usize) -> Option<NameBits> {
    let all = all(end - start)?;
    let found = best::name(bytes.get(start..start + LANE_BYTES)?.first_chunk()?);
    Some(NameBits { plain: found.plain & all, digits: found.digits & all, colons: found.colons & all })
}

/// A bit for each of up to 16 bytes.
#[inline(always)]
pub(crate) fn all(len: usize) -> Option<u32> {
    (len <= LANE_BYTES).then(|| ALL >> (LANE_BYTES - len))
}
