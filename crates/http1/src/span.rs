//! A range of a head, as offsets that remain valid when the bytes move to another buffer.

use crate::scan;

/// A half-open range of offsets into a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) const EMPTY: Self = Self { start: 0, end: 0 };

    /// Returns the range `start..end`. Heads are shorter than 2^30 bytes (`HeadLimits::usable`), so nothing
    /// is truncated.
    #[inline]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && u32::try_from(end).is_ok());
        Self { start: start as u32, end: end as u32 }
    }

    #[inline]
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    #[inline]
    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    #[inline]
    pub(crate) fn set_end(&mut self, end: usize) {
        self.end = end as u32;
    }

    /// Returns the bytes of the span. Panics if `bytes` is shorter than the head that was parsed.
    #[inline]
    pub(crate) fn bytes(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start()..self.end()]
    }

    /// Returns the text of a span that the parser found to be ASCII. Panics if `bytes` is not the head that
    /// was parsed.
    #[inline]
    pub(crate) fn text(self, bytes: &[u8]) -> &str {
        scan::ascii(self.bytes(bytes)).expect("spans of text are ASCII")
    }
}
