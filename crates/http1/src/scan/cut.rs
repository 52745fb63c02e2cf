//! Cuts a head into lines: every byte is looked at once, many together, and the ends and first colons of all lines in a block are
//! taken from its masks.

use super::block::{BLOCK_BYTES, Block, Scanner};
use crate::fields::FieldSpans;

/// Where cutting goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Where the unfinished line begins.
    pub(crate) line_start: usize,
    /// Up to here no line end was found in it.
    pub(crate) scanned: usize,
    /// How many lines have been cut.
    pub(crate) lines: usize,
}

impl Progress {
    /// Before the first byte.
    pub(crate) const START: Self = Self { line_start: 0, scanned: 0, lines: 0 };
}

/// Why no further line was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All bytes have been looked at.
    Starved,
    /// The unfinished line is empty, and its end is there.
    EmptyLine,
    /// A control byte stands here, other than HTAB, which is not the CR of a CRLF, or not as far as can be seen.
    Control(usize),
    /// There is no room for another line.
    Full,
}

/// In the place of a colon: the unfinished line has none in the blocks before the one at hand.
const NONE: usize = usize::MAX;
/// In the place of a colon: the line was begun in an earlier call, which did not keep it.
const UNKNOWN: usize = usize::MAX - 1;

/// Cuts the lines that are complete, into `table`, up to the empty line.
#[inline(always)]
pub(super) fn lines(
    scanner: impl Scanner,
    bytes: &[u8],
    progress: &mut Progress,
    table: &mut [FieldSpans],
) -> Stop {
    let Progress { line_start: mut start, scanned, lines: mut count } = *progress;
    let mut place = scanned.max(start);
    let mut colon = if scanned > start { UNKNOWN } else { NONE };
    let stop = 'blocks: loop {
        let Some(Block { mut controls, mut colons }) = Block::at(scanner, bytes, place) else {
            break Stop::Starved;
        };
        while controls != 0 {
            let end = place + controls.trailing_zeros() as usize;
            if bytes.get(end..end + 2) != Some(b"\r\n") {
                break 'blocks Stop::Control(end);
            }
            if end == start {
                break 'blocks Stop::EmptyLine;
            }
            let Some(line) = table.get_mut(count) else { break 'blocks Stop::Full };
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
        // The LF of the last line may be the first byte behind the block.
        place = (place + BLOCK_BYTES).max(start);
    };
    (progress.line_start, progress.lines) = (start, count);
    stop
}

#[cold]
fn find_colon(bytes: &[u8], start: usize, end: usize) -> usize {
    super::colon(&bytes[start..end]).map_or(end, |offset| start + offset)
}
