//! Layout of an input: bytes that set limits and ways of splitting, then the peer's bytes; and the grammar of messages (RFC 9110, 9112).

use regex::bytes::{Regex, RegexBuilder};
use shearwater_http1::{BodyLimits, HeadLimits};

/// The value of a byte that leaves a limit at its default.
pub(crate) const DEFAULT: u8 = b'-';
/// Longest piece of a split input, in bytes.
const PIECE_BYTES_MAX: usize = 24;

/// Limits and a way of splitting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FuzzStage {
    pub(crate) head_limits: HeadLimits,
    pub(crate) body_limits: BodyLimits,
    split_seed: u64,
}

impl FuzzStage {
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

/// `token`.
pub(crate) const TOKEN: &str = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+";
/// A byte of `field-content`, tabs and spaces included.
pub(crate) const CONTENT: &str = r"[\t -~\x80-\xFF]";
/// `quoted-string`.
pub(crate) const QUOTED: &str = r#""(?:[\t -!#-\[\]-~\x80-\xFF]|\\[\t -~\x80-\xFF])*""#;

/// Compiles a pattern in which `.` and classes are bytes.
pub(crate) fn pattern(text: &str) -> Regex {
    RegexBuilder::new(text).unicode(false).build().expect("the patterns are constants")
}

/// Returns true for bytes that the parser accepts in a field's value.
pub(crate) fn is_content(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7F))
}
