//! Masks over the bytes of a head: possible line ends and colons of 64 bytes, byte classes of short ranges.

/// Bytes that one mask covers.
pub(super) const BLOCK_BYTES: usize = u64::BITS as usize;
/// Bytes that a scanner processes at once.
pub(super) const HALF_BYTES: usize = BLOCK_BYTES / 2;

/// Masks over up to 64 bytes, with the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockMasks {
    /// Control bytes other than HTAB: line ends and invalid bytes.
    pub(super) controls: u64,
    pub(super) colons: u64,
}

/// Scans `HALF_BYTES` bytes. The masks have no bits beyond them.
pub(super) trait Scanner: Copy {
    fn half(self, bytes: &[u8; HALF_BYTES]) -> BlockMasks;
}

impl BlockMasks {
    /// Scans the 64 bytes from `at` on, or fewer at the end of `bytes`. `None` if there are none.
    #[inline(always)]
    pub(super) fn at(scanner: impl Scanner, bytes: &[u8], at: usize) -> Option<Self> {
        let rest = bytes.get(at..)?;
        if let Some((first, rest)) = rest.split_first_chunk() {
            let first = scanner.half(first);
            return match (rest.first_chunk(), bytes.last_chunk()) {
                (Some(second), _) => Some(first.with(scanner.half(second), HALF_BYTES)),
                // Bytes that the last half shares with the first are found twice.
                (None, Some(last)) => Some(first.with(scanner.half(last), rest.len())),
                (None, None) => None,
            };
        }
        match bytes.last_chunk() {
            _ if rest.is_empty() => None,
            Some(last) => Some(scanner.half(last).without(HALF_BYTES - rest.len())),
            None => Some(Self::of_few(scanner, rest)),
        }
    }

    #[inline(always)]
    fn with(self, other: Self, place: usize) -> Self {
        Self {
            controls: self.controls | other.controls << place,
            colons: self.colons | other.colons << place,
        }
    }

    #[inline(always)]
    fn without(self, places: usize) -> Self {
        Self { controls: self.controls >> places, colons: self.colons >> places }
    }

    /// Pads with spaces, which are in no mask.
    #[cold]
    fn of_few(scanner: impl Scanner, bytes: &[u8]) -> Self {
        let mut half = [b' '; HALF_BYTES];
        half[..bytes.len()].copy_from_slice(bytes);
        scanner.half(&half)
    }
}

/// Bytes of a lane: a short range of a head.
pub(super) const LANE_BYTES: usize = 16;

/// Masks over a part of a request target, with the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TargetMasks {
    /// Visible ASCII characters other than `#`, and than `.` and `%` after a `/` of the same lane: a dot segment may begin
    /// there.
    pub(super) plain: u32,
    /// `?`
    pub(super) marks: u32,
}

/// Masks over a host and port, with the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameMasks {
    /// Letters, digits, `-` and `.`.
    pub(crate) plain: u32,
    pub(crate) digits: u32,
    pub(crate) colons: u32,
}
