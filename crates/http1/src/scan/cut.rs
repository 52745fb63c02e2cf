//! Splits a head into lines: reads every byte once, in blocks, and takes the ends and first colons of all
//! lines from the block's masks.

use super::block::{BLOCK_BYTES, Block, Scanner};
use crate::fields::FieldSpans;

/// Position to resume at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Start of the incomplete line.
    pub(crate) line_start: usize,
    /// End of its part without a line end.
    pub(crate) scanned: usize,
    /// Number of lines found.
    pub(crate) lines: usize,
}

impl Progress {
    /// The position before the first byte.
    pub(crate) const START: Self = Self { line_start: 0, scanned: 0, lines: 0 };
}

/// The reason for stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
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
        // The LF of the last line may be the first byte after the block.
        place = (place + BLOCK_BYTES).max(start);
    };
    (progress.line_start, progress.lines) = (start, count);
    stop
}

#[cold]
fn find_colon(bytes: &[u8], start: usize, end: usize) -> usize {
    super::colon(&bytes[start..end]).map_or(end, |offset| start + offset)
}
