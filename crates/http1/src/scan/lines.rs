//! Splits a head into lines: reads every byte once, in blocks, and takes the ends and first colons of all
//! lines from the block's masks. Lines and their parts are offsets, which remain valid when the bytes move.

use super::masks::{BLOCK_BYTES, BlockMasks, Scanner};
use super::words;
use crate::KnownField;

/// A half-open range of offsets into a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadSpan {
    start: u32,
    end: u32,
}

impl HeadSpan {
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

    /// Returns the text of a span that the parser found to be UTF-8. Panics if `bytes` is not the head that
    /// was parsed.
    #[inline]
    pub(crate) fn text(self, bytes: &[u8]) -> &str {
        let bytes = self.bytes(bytes);
        ascii(bytes).or_else(|| std::str::from_utf8(bytes).ok()).expect("spans of text are UTF-8")
    }
}

/// Returns `bytes` as text; `None` if one of them is above 0x7F.
#[inline]
pub(super) fn ascii(bytes: &[u8]) -> Option<&str> {
    if !words::all(bytes, words::is_ascii) && !bytes.is_ascii() {
        return None;
    }
    // SAFETY: all bytes are ASCII, and ASCII is UTF-8.
    Some(unsafe { std::str::from_utf8_unchecked(bytes) })
}

/// Spans of a field's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldSpans {
    pub(crate) name: HeadSpan,
    pub(crate) value: HeadSpan,
    pub(crate) known: Option<KnownField>,
}

impl FieldSpans {
    pub(crate) const NONE: Self = Self { name: HeadSpan::EMPTY, value: HeadSpan::EMPTY, known: None };

    /// Stores the unparsed line `start..end`. `colon` is the offset of its first colon, or the line's end.
    #[inline(always)]
    pub(crate) fn cut(&mut self, start: usize, colon: usize, end: usize) {
        self.name = HeadSpan::new(start, colon);
        self.value.set_end(end);
    }

    /// Returns the arguments of [`FieldSpans::cut`].
    #[cfg(test)]
    pub(crate) fn as_cut(&self) -> (usize, usize, usize) {
        (self.name.start(), self.name.end(), self.value.end())
    }

    /// Returns the whole line, as long as it is unparsed.
    pub(crate) fn line(&self) -> HeadSpan {
        HeadSpan::new(self.name.start(), self.value.end())
    }
}

/// Position to resume at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineProgress {
    /// Start of the incomplete line.
    pub(crate) line_start: usize,
    /// End of its part without a line end.
    pub(crate) scanned: usize,
    /// Number of lines found.
    pub(crate) lines: usize,
}

impl LineProgress {
    /// The position before the first byte.
    pub(crate) const START: Self = Self { line_start: 0, scanned: 0, lines: 0 };
}

/// The reason for stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanStop {
    /// All bytes have been scanned.
    Starved,
    /// The current line is empty and complete.
    EmptyLine,
    /// A control byte other than HTAB at this offset, which is not known to be the CR of a CRLF.
    Control(usize),
    /// The table is full.
    Full,
}

/// Value of `colon`: no colon in the earlier blocks of the line.
const NONE: usize = usize::MAX;
/// Value of `colon`: the line began in an earlier call, which did not store its colon.
const UNKNOWN: usize = usize::MAX - 1;

/// Splits the complete lines into `table`, up to the empty line.
#[inline(always)]
pub(super) fn lines(
    scanner: impl Scanner,
    bytes: &[u8],
    progress: &mut LineProgress,
    table: &mut [FieldSpans],
) -> ScanStop {
    let LineProgress { line_start: mut start, scanned, lines: mut count } = *progress;
    let mut place = scanned.max(start);
    let mut colon = if scanned > start { UNKNOWN } else { NONE };
    let stop = 'blocks: loop {
        let Some(BlockMasks { mut controls, mut colons }) = BlockMasks::at(scanner, bytes, place) else {
            break ScanStop::Starved;
        };
        while controls != 0 {
            let end = place + controls.trailing_zeros() as usize;
            if bytes.get(end..end + 2) != Some(b"\r\n") {
                break 'blocks ScanStop::Control(end);
            }
            if end == start {
                break 'blocks ScanStop::EmptyLine;
            }
            let Some(line) = table.get_mut(count) else { break 'blocks ScanStop::Full };
            let up_to_end = controls ^ (controls - 1);
            if colon == NONE {
                let found = colons & up_to_end;
                colon = if found == 0 { end } else { place + found.trailing_zeros() as usize };
            } else if colon == UNKNOWN {
                colon = find_colon(bytes, start, end);
            }
            line.cut(start, colon, end);
            count += 1;
            start = end + b"\r\n".len();
            colon = NONE;
            colons &= !up_to_end;
            controls &= controls - 1;
            controls &= controls.wrapping_sub(1);
        }
        if colon == NONE && colons != 0 {
            colon = place + colons.trailing_zeros() as usize;
        }
        // The LF of the last line may be the first byte after the block.
        place = (place + BLOCK_BYTES).max(start);
    };
    (progress.line_start, progress.lines) = (start, count);
    stop
}

#[cold]
fn find_colon(bytes: &[u8], start: usize, end: usize) -> usize {
    words::colon(&bytes[start..end]).map_or(end, |offset| start + offset)
}
