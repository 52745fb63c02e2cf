//! Bodies: the same content, trailers and end however the bytes are cut, never more than was sent, and accepted exactly where a plain
//! reading of the grammar accepts them.

use shearwater_http1::{BodyDecoder, BodyEvent, Framing, Reject};

use crate::input::{DEFAULT, Stage};
use crate::plain_chunks;

/// What a body was found to be.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    content: Vec<u8>,
    trailers: Vec<u8>,
    /// Where the body ends, if it is whole.
    end: Option<usize>,
    refused: Option<Reject>,
}

/// Decodes the body in `input`: behind the stage, one byte that is `-` for chunks or else a length, then the body.
///
/// # Panics
/// Where two ways of splitting differ, or the plain reading differs, or a limit is passed.
pub fn run(input: &[u8]) {
    let Some((stage, rest)) = Stage::of(input) else { return };
    let Some((&kind, bytes)) = rest.split_first() else { return };
    let framing = if kind == DEFAULT { Framing::Chunked } else { Framing::Length(u64::from(kind)) };
    let decoder = BodyDecoder::new(framing, stage.body_limits);
    let whole = decode(decoder, std::iter::once(bytes));
    assert_eq!(decode(decoder, bytes.chunks(1)), whole, "byte by byte");
    assert_eq!(decode(decoder, stage.pieces(bytes)), whole, "in pieces");

    assert!(whole.content.len() + whole.trailers.len() <= bytes.len(), "more was decoded than sent");
    assert!(whole.end.is_none_or(|end| end <= bytes.len()), "the end lies beyond the input");
    assert!(
        whole.trailers.len() <= stage.body_limits.trailer_bytes_max as usize,
        "trailers beyond their limit"
    );
    let plain = match framing {
        Framing::Length(len) => plain_chunks::by_length(bytes, len as usize),
        Framing::None | Framing::Chunked => plain_chunks::chunked(bytes, &stage.body_limits),
    };
    let told = whole.end.map(|end| (whole.content, whole.trailers, end));
    assert_eq!(told, plain, "the plain reading says otherwise");
}

/// Decodes all pieces, up to the end or the first refusal.
fn decode<'a>(mut decoder: BodyDecoder, pieces: impl Iterator<Item = &'a [u8]>) -> Found {
    let mut found = Found::default();
    let mut consumed = 0;
    if decoder.is_done() {
        return Found { end: Some(0), ..found };
    }
    for piece in pieces {
        let mut rest = piece;
        loop {
            let step = match decoder.decode(rest) {
                Ok(step) => step,
                Err(reject) => return Found { refused: Some(reject), ..found },
            };
            consumed += step.consumed;
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::Data(bytes) | BodyEvent::Trailer(bytes) if bytes.is_empty() => {
                    panic!("an event of no bytes")
                }
                BodyEvent::Data(bytes) => found.content.extend_from_slice(bytes),
                BodyEvent::Trailer(bytes) => found.trailers.extend_from_slice(bytes),
                BodyEvent::More => break,
                BodyEvent::Done => return Found { end: Some(consumed), ..found },
            }
            if decoder.is_done() {
                return Found { end: Some(consumed), ..found };
            }
        }
        assert!(rest.is_empty(), "more is asked for while there is some");
    }
    found
}
