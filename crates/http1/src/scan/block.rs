//! Sixty-four bytes at once: where lines may end, and where names may.

/// How many bytes one mask covers.
pub(super) const BLOCK_BYTES: usize = u64::BITS as usize;
/// What a scanner looks at together.
pub(super) const HALF_BYTES: usize = BLOCK_BYTES / 2;

/// What stands in up to 64 bytes, one bit for each, the first byte's lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Control bytes other than HTAB: the ends of lines, and faults.
    pub(super) controls: u64,
    pub(super) colons: u64,
}

/// Looks at many bytes at once. The masks have no bits beyond them.
pub(super) trait Scanner: Copy {
    fn half(self, bytes: &[u8; HALF_BYTES]) -> Block;
}

impl Block {
    /// The 64 bytes of `bytes` that begin at `at`, or all from there if there are fewer. `None` if there are none.
    #[inline(always)]
    pub(super) fn at(scanner: impl Scanner, bytes: &[u8], at: usize) -> Option<Self> {
        let rest = bytes.get(at..)?;
        if let Some((first, rest)) = rest.split_first_chunk() {
            let first = scanner.half(first);
            return match (rest.first_chunk(), bytes.last_chunk()) {
                (Some(second), _) => Some(first.with(scanner.half(second), HALF_BYTES)),
                // What the last bytes share with the first is found twice.
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

    /// Spaces are in no mask.
    #[cold]
    fn of_few(scanner: impl Scanner, bytes: &[u8]) -> Self {
        let mut half = [b' '; HALF_BYTES];
        half[..bytes.len()].copy_from_slice(bytes);
        scanner.half(&half)
    }
}
