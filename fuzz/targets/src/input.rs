//! The layout of an input: a few bytes that set limits and the ways of splitting, then what the peer sends.

use shearwater_http1::{BodyLimits, HeadLimits};

/// Bytes that set the stage.
pub const STAGE_BYTES: usize = 8;
/// The value of a stage byte that leaves a limit at its default. Any other is the limit, in steps that fit it.
pub const DEFAULT: u8 = b'-';
/// A stage of defaults.
pub const STAGE: [u8; STAGE_BYTES] = [DEFAULT; STAGE_BYTES];

/// The longest piece of a split input, in bytes.
const PIECE_BYTES_MAX: u64 = 24;

/// What the first bytes of an input say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage {
    pub(crate) head_limits: HeadLimits,
    pub(crate) body_limits: BodyLimits,
    split_seed: u64,
}

impl Stage {
    /// The stage, and what follows it. `None` where the input is too short for one.
    pub(crate) fn of(input: &[u8]) -> Option<(Self, &[u8])> {
        let (stage, rest) = input.split_first_chunk::<STAGE_BYTES>()?;
        let [head, target, fields, chunk_line, trailer, trailers, split @ ..] = *stage;
        let mut head_limits = HeadLimits::default();
        set(&mut head_limits.head_bytes_max, head, 2);
        set(&mut head_limits.target_bytes_max, target, 1);
        set(&mut head_limits.fields_max, fields, 1);
        let mut body_limits = BodyLimits::default();
        set(&mut body_limits.chunk_line_bytes_max, chunk_line, 1);
        set(&mut body_limits.trailer_bytes_max, trailer, 1);
        set(&mut body_limits.trailers_max, trailers, 1);
        let split_seed = u64::from(u16::from_be_bytes(split));
        Some((Self { head_limits, body_limits, split_seed }, rest))
    }

    /// `bytes` in pieces that the stage chooses.
    pub(crate) fn pieces<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut state = self.split_seed;
        let mut rest = bytes;
        std::iter::from_fn(move || {
            // A linear congruential generator (Knuth's MMIX constants): its high bits choose the length.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let len = 1 + (state >> 40) % PIECE_BYTES_MAX;
            let (piece, after) = rest.split_at((len as usize).min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

/// Sets `limit` to `byte` steps, unless the byte stands for the default.
fn set<T: From<u8> + std::ops::Mul<Output = T>>(limit: &mut T, byte: u8, step: u8) {
    if byte != DEFAULT {
        *limit = T::from(byte) * T::from(step);
    }
}
