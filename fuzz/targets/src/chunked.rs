//! Bodies: content, trailers and end don't depend on how the bytes are split, and match the grammar of RFC 9112 section 7.1.

use std::sync::LazyLock;

use regex::bytes::Regex;
use shearwater_http1::{BodyDecoder, BodyEvent, BodyLimits, Framing, ParseError, Trailers, may_be_trailer};

use crate::input::{CONTENT, DEFAULT, FuzzStage, QUOTED, TOKEN, pattern};

/// `chunk-size [ chunk-ext ] CRLF`.
static CHUNK_LINE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(r"\A([0-9A-Fa-f]+)(?:[\t ]*;[\t ]*{TOKEN}(?:[\t ]*=[\t ]*(?:{TOKEN}|{QUOTED}))?)*\r\n"))
});
/// A line of the trailer section.
static TRAILER: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"\A{TOKEN}:{CONTENT}*\r\n")));

/// The result of decoding a body.
#[derive(Debug, Default, PartialEq, Eq)]
struct Decoded {
    content: Vec<u8>,
    trailers: Vec<u8>,
    /// Offset of the body's end, if it is complete.
    end: Option<usize>,
    rejected: Option<ParseError>,
}

/// Decodes the body in `input`: after the stage, a byte that is `-` for chunks or else a length, then the body.
pub fn run(input: &[u8]) {
    let Some((stage, rest)) = FuzzStage::of(input) else { return };
    let Some((&kind, bytes)) = rest.split_first() else { return };
    let framing = if kind == DEFAULT { Framing::Chunked } else { Framing::Length(u64::from(kind)) };
    let decoder = BodyDecoder::new(framing, stage.body_limits);
    let whole = decode(decoder, std::iter::once(bytes));
    assert_eq!(decode(decoder, bytes.chunks(1)), whole, "byte by byte");
    assert_eq!(decode(decoder, stage.pieces(bytes)), whole, "in pieces");

    assert!(whole.content.len() + whole.trailers.len() <= bytes.len(), "more was decoded than sent");
    assert!(whole.end.is_none_or(|end| end <= bytes.len()), "the end is beyond the input");
    let trailer_bytes_max = stage.body_limits.trailer_bytes_max as usize;
    assert!(whole.trailers.len() <= trailer_bytes_max, "trailers exceed their limit");
    if whole.end.is_some() {
        check_trailers(&whole.trailers);
    }
    let expected = match framing {
        Framing::Length(len) => {
            bytes.get(..len as usize).map(|content| (content.to_vec(), Vec::new(), len as usize))
        }
        Framing::None | Framing::Chunked | Framing::Open => read_chunks(bytes, &stage.body_limits),
    };
    assert_eq!(whole.end.map(|end| (whole.content, whole.trailers, end)), expected, "the grammar differs");
}

/// Compares the fields of a complete trailer section with its lines.
fn check_trailers(section: &[u8]) {
    let mut fields = Trailers::new(section);
    for line in section.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':').expect("a valid line has a colon");
        let name = str::from_utf8(&line[..colon]).expect("a token is ASCII");
        if may_be_trailer(name) {
            let field = fields.next().expect("each line is a field");
            assert_eq!((field.name, field.value), (name, line[colon + 1..].trim_ascii()));
        }
    }
    assert!(fields.next().is_none(), "more fields than lines");
}

/// Decodes all pieces, up to the end or the first rejection.
fn decode<'a>(mut decoder: BodyDecoder, pieces: impl Iterator<Item = &'a [u8]>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut consumed = 0;
    if decoder.is_done() {
        return Decoded { end: Some(0), ..decoded };
    }
    for piece in pieces {
        let mut rest = piece;
        loop {
            let step = match decoder.decode(rest) {
                Ok(step) => step,
                Err(reject) => return Decoded { rejected: Some(reject), ..decoded },
            };
            consumed += step.consumed;
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::Data([]) | BodyEvent::Trailer([]) => panic!("an event without bytes"),
                BodyEvent::Data(bytes) => decoded.content.extend_from_slice(bytes),
                BodyEvent::Trailer(bytes) => decoded.trailers.extend_from_slice(bytes),
                BodyEvent::More => break,
                BodyEvent::Done => return Decoded { end: Some(consumed), ..decoded },
            }
            if decoder.is_done() {
                return Decoded { end: Some(consumed), ..decoded };
            }
        }
        assert!(rest.is_empty(), "asks for more with input left");
    }
    decoded
}

/// Reads a chunked body by the grammar: content, trailers and length, if it is complete, valid and within `limits`.
fn read_chunks(bytes: &[u8], limits: &BodyLimits) -> Option<(Vec<u8>, Vec<u8>, usize)> {
    let (mut content, mut rest) = (Vec::new(), bytes);
    loop {
        let line = CHUNK_LINE.captures(rest)?;
        let size = u64::from_str_radix(std::str::from_utf8(&line[1]).ok()?, 16).ok()?;
        if line[0].len() > usize::from(limits.chunk_line_bytes_max) + 2 {
            return None;
        }
        rest = &rest[line[0].len()..];
        if size == 0 {
            break;
        }
        let data = rest.get(..usize::try_from(size).ok()?)?;
        content.extend_from_slice(data);
        rest = rest[data.len()..].strip_prefix(b"\r\n")?;
    }
    let (mut trailers, mut count) = (Vec::new(), 0);
    loop {
        if let Some(after) = rest.strip_prefix(b"\r\n") {
            return Some((content, trailers, bytes.len() - after.len()));
        }
        let line = TRAILER.find(rest)?.as_bytes();
        trailers.extend_from_slice(line);
        count += 1;
        if count > limits.trailers_max || trailers.len() > limits.trailer_bytes_max as usize {
            return None;
        }
        rest = &rest[line.len()..];
    }
}
