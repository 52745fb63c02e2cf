//! The byte scanner: all searches over more than a few bytes of a head, so that a faster implementation
//! replaces one folder.
#![expect(unsafe_code, reason = "vector intrinsics are unsafe")]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod block;
mod cut;
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;
mod stretch;
mod swar;
#[cfg(test)]
mod tests;
mod text;

#[cfg(not(target_arch = "x86_64"))]
use portable as best;
#[cfg(target_arch = "x86_64")]
use sse2 as best;

use crate::class;
use crate::fields::FieldSpans;
use block::{HALF_BYTES, Scanner};
pub(crate) use cut::{Progress, Stop};
pub(crate) use stretch::{all, name, target};
pub(crate) use text::ascii;

/// The instruction set for splitting lines, chosen once when a parser is created.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cutter {
    /// The baseline of the architecture.
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
}

impl Cutter {
    /// Chooses the fastest one for this processor.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = avx2::Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::Baseline
    }

    /// Splits the complete lines into `table`, up to the empty line, and resumes at `progress`.
    #[inline(always)]
    pub(crate) fn lines(self, bytes: &[u8], progress: &mut Progress, table: &mut [FieldSpans]) -> Stop {
        match self {
            Self::Baseline => best::lines(bytes, progress, table),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.lines(bytes, progress, table),
        }
    }
}

/// Returns true if there is a control byte other than HTAB (`< 0x20` or `0x7F`).
#[inline]
pub(crate) fn has_control(bytes: &[u8]) -> bool {
    let is_clean = |half: &[u8; HALF_BYTES]| best::BASELINE.half(half).controls == 0;
    match bytes.last_chunk() {
        // The last half overlaps the one before.
        Some(last) => !(bytes.as_chunks().0.iter().all(is_clean) && is_clean(last)),
        None if bytes.len() < swar::WORD / 2 => !bytes.iter().all(|byte| class::is_field_value_byte(*byte)),
        None => !swar::all(bytes, |word| swar::controls(word) == 0),
    }
}

/// Returns the offset of the first `:`.
#[inline]
pub(crate) fn colon(bytes: &[u8]) -> Option<usize> {
    swar::position(bytes, |word| swar::equal(word, b':'))
}

/// Returns the offset of the first SP.
#[inline]
pub(crate) fn space(bytes: &[u8]) -> Option<usize> {
    swar::position(bytes, |word| swar::equal(word, b' '))
}

/// Returns the offset of the first `?`.
#[inline]
pub(crate) fn question_mark(bytes: &[u8]) -> Option<usize> {
    swar::position(bytes, |word| swar::equal(word, b'?'))
}

/// Returns true for four or more letters, digits and hyphens. `false` may also mean that a full check is
/// needed.
#[inline]
pub(crate) fn is_plain_name(bytes: &[u8]) -> bool {
    swar::all(bytes, swar::is_plain_name)
}
