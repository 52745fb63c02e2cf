//! Layout of an input: bytes that set limits and ways of splitting, then the peer's bytes.

use shearwater_http1::{BodyLimits, HeadLimits};

/// The value of a byte that leaves a limit at its default.
pub(crate) const DEFAULT: u8 = b'-';
/// Longest piece of a split input, in bytes.
const PIECE_BYTES_MAX: usize = 24;

/// Limits and a way of splitting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage {
    pub(crate) head_limits: HeadLimits,
    pub(crate) body_limits: BodyLimits,
    split_seed: u64,
}

impl Stage {
    /// Returns the stage and the bytes after it, unless the input is too short.
    pub(crate) fn of(input: &[u8]) -> Option<(Self, &[u8])> {
        let (stage, rest) = input.split_first_chunk::<8>()?;
        let [head, target, fields, chunk_line, trailer, trailers, split @ ..] = *stage;
        let (mut head_limits, mut body_limits) = (HeadLimits::default(), BodyLimits::default());
        set(&mut head_limits.head_bytes_max, usize::from(head) * 2, head);
        set(&mut head_limits.target_bytes_max, target.into(), target);
        set(&mut head_limits.fields_max, fields.into(), fields);
        set(&mut body_limits.chunk_line_bytes_max, chunk_line.into(), chunk_line);
        set(&mut body_limits.trailer_bytes_max, trailer.into(), trailer);
        set(&mut body_limits.trailers_max, trailers.into(), trailers);
        Some((Self { head_limits, body_limits, split_seed: u64::from(u16::from_be_bytes(split)) }, rest))
    }

    /// Splits `bytes` in pieces of pseudorandom lengths.
    pub(crate) fn pieces<'a>(&self, mut rest: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut random = fastrand::Rng::with_seed(self.split_seed);
        std::iter::from_fn(move || {
            let (piece, after) = rest.split_at(random.usize(1..=PIECE_BYTES_MAX).min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

fn set<T>(limit: &mut T, value: T, byte: u8) {
    if byte != DEFAULT {
        *limit = value;
    }
}
