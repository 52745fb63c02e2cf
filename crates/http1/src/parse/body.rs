//! The body decoder: finds content, chunks and trailers in the bytes after a head.
//!
//! Each byte is read once and consumed at once; the decoder never needs a byte again. Errors depend on the
//! bytes alone, never on how they were split.

use crate::{BodyLimits, Framing, ParseError, scan};

/// The state of one body, small enough to be kept per connection.
#[derive(Clone, Copy, Debug)]
pub struct BodyDecoder {
    /// Bytes left of the content or of the current chunk; the size so far while a chunk size is read.
    remaining: u64,
    trailer_bytes: u32,
    trailer_bytes_max: u32,
    /// Bytes of the current chunk's size line.
    line_bytes: u16,
    chunk_line_bytes_max: u16,
    trailers: u16,
    trailers_max: u16,
    state: BodyState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    /// Content of known length.
    Length,
    /// Before a chunk size's first digit.
    SizeStart,
    /// Within a chunk size.
    Size,
    /// Whitespace after a chunk size or an extension: another extension must follow.
    BeforeExtension,
    /// After a semicolon: the extension's name must follow.
    ExtensionStart,
    ExtensionName,
    /// Whitespace after an extension's name: a value or another extension must follow.
    AfterName,
    /// After an equals sign: the extension's value must follow.
    ValueStart,
    Value,
    Quoted,
    /// After a backslash in a quoted string.
    QuotedPair,
    /// After the closing quote.
    AfterQuoted,
    /// Before the LF of a size line.
    SizeLf,
    ChunkData,
    /// Before the CR after a chunk's data, then its LF.
    ChunkCr,
    ChunkLf,
    /// Before a trailer line's first byte, or the CR of the empty line.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    /// Before the LF of the empty line.
    EndLf,
    Done,
}

/// Result of one decoding step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyStep<'a> {
    /// Bytes of the input that were consumed, including those in the event.
    pub consumed: usize,
    /// The part of the body that was found.
    pub event: BodyEvent<'a>,
}

/// A part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEvent<'a> {
    /// Content, never empty. The division of content into events has no meaning.
    Data(&'a [u8]),
    /// Bytes of the trailer section in order, never empty: field lines with their CRLFs, without the final
    /// empty line. An event may end anywhere in a line; the section is complete at [`BodyEvent::Done`], and
    /// [`Trailers`](crate::Trailers) reads it. They aren't merged into the head's fields (RFC 9110 6.5.1).
    Trailer(&'a [u8]),
    /// All input is consumed, and the body is incomplete.
    More,
    /// The body has ended. Unconsumed input belongs to the next request.
    Done,
}

impl BodyDecoder {
    /// Creates a decoder for one body.
    #[must_use]
    pub fn new(framing: Framing, limits: BodyLimits) -> Self {
        let (state, remaining) = match framing {
            Framing::None | Framing::Length(0) => (BodyState::Done, 0),
            Framing::Length(length) => (BodyState::Length, length),
            Framing::Chunked => (BodyState::SizeStart, 0),
            Framing::Open => (BodyState::Length, u64::MAX),
        };
        Self {
            remaining,
            trailer_bytes: 0,
            trailer_bytes_max: limits.trailer_bytes_max,
            line_bytes: 0,
            chunk_line_bytes_max: limits.chunk_line_bytes_max,
            trailers: 0,
            trailers_max: limits.trailers_max,
            state,
        }
    }

    /// Returns true if the body has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == BodyState::Done
    }

    /// Decodes the next part. Call again with the unconsumed input until the event is [`BodyEvent::More`] or
    /// [`BodyEvent::Done`].
    ///
    /// # Errors
    /// The reason why the body is invalid. Everything before the invalid byte has been returned by then.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<BodyStep<'a>, ParseError> {
        let mut consumed = 0;
        while let Some(&byte) = input.get(consumed) {
            match self.state {
                BodyState::Done => break,
                BodyState::Length | BodyState::ChunkData => return Ok(self.take_data(input, consumed)),
                BodyState::TrailerStart if byte != b'\r' => return self.take_trailers(input, consumed),
                BodyState::TrailerName | BodyState::TrailerValue | BodyState::TrailerLf => {
                    return self.take_trailers(input, consumed);
                }
                _ => self.state = self.after_framing_byte(byte)?,
            }
            consumed += 1;
        }
        let event = if self.is_done() { BodyEvent::Done } else { BodyEvent::More };
        Ok(BodyStep { consumed, event })
    }

    /// Takes the available content from `start` on.
    fn take_data<'a>(&mut self, input: &'a [u8], start: usize) -> BodyStep<'a> {
        let available = &input[start..];
        let length =
            usize::try_from(self.remaining).map_or(available.len(), |left| left.min(available.len()));
        self.remaining -= length as u64;
        if self.remaining == 0 {
            self.state = if self.state == BodyState::Length { BodyState::Done } else { BodyState::ChunkCr };
        }
        BodyStep { consumed: start + length, event: BodyEvent::Data(&available[..length]) }
    }

    /// Returns the state after a byte of the chunked framing (RFC 9112 7.1).
    fn after_framing_byte(&mut self, byte: u8) -> Result<BodyState, ParseError> {
        match (self.state, byte) {
            (BodyState::SizeStart | BodyState::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.after_size_digit(byte)
            }
            (BodyState::SizeStart, b'\n') => Err(ParseError::BareLf),
            (BodyState::SizeStart, _) => Err(ParseError::InvalidChunkSize),
            (BodyState::SizeLf, b'\n') => Ok(self.after_size_line()),
            (BodyState::ChunkCr, b'\r') => Ok(BodyState::ChunkLf),
            (BodyState::ChunkLf, b'\n') => Ok(BodyState::SizeStart),
            (BodyState::ChunkCr | BodyState::ChunkLf, _) => Err(ParseError::MissingChunkEnd),
            (BodyState::TrailerStart, _) => Ok(BodyState::EndLf),
            (BodyState::EndLf, b'\n') => Ok(BodyState::Done),
            (BodyState::SizeLf | BodyState::EndLf, _) => Err(ParseError::BareCr),
            (BodyState::Length | BodyState::ChunkData | BodyState::Done, _)
            | (BodyState::TrailerName | BodyState::TrailerValue | BodyState::TrailerLf, _) => {
                unreachable!("data, trailers and the end are taken by decode")
            }
            _ => self.after_extension_byte(byte),
        }
    }

    /// Returns the state after a byte that follows a chunk's size, possibly in extensions (RFC 9112 7.1.1):
    /// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`.
    fn after_extension_byte(&mut self, byte: u8) -> Result<BodyState, ParseError> {
        let next = match (self.state, byte) {
            (_, b'\n') => return Err(ParseError::BareLf),
            (
                BodyState::Size | BodyState::ExtensionName | BodyState::Value | BodyState::AfterQuoted,
                b'\r',
            ) => {
                return Ok(BodyState::SizeLf);
            }
            (BodyState::Size | BodyState::BeforeExtension | BodyState::ExtensionName, b';')
            | (BodyState::AfterName | BodyState::Value | BodyState::AfterQuoted, b';') => {
                BodyState::ExtensionStart
            }
            (
                BodyState::Size | BodyState::BeforeExtension | BodyState::Value | BodyState::AfterQuoted,
                b' ' | b'\t',
            ) => BodyState::BeforeExtension,
            (BodyState::Size, _) => return Err(ParseError::InvalidChunkSize),
            (BodyState::ExtensionStart | BodyState::ValueStart | BodyState::AfterName, b' ' | b'\t') => {
                self.state
            }
            (BodyState::ExtensionName, b' ' | b'\t') => BodyState::AfterName,
            (BodyState::ExtensionName | BodyState::AfterName, b'=') => BodyState::ValueStart,
            (BodyState::ValueStart, b'"') => BodyState::Quoted,
            (BodyState::Quoted, b'"') => BodyState::AfterQuoted,
            (BodyState::Quoted, b'\\') => BodyState::QuotedPair,
            (BodyState::Quoted | BodyState::QuotedPair, _) if scan::is_field_value_byte(byte) => {
                BodyState::Quoted
            }
            (BodyState::ExtensionStart | BodyState::ExtensionName, _) if scan::is_token_byte(byte) => {
                BodyState::ExtensionName
            }
            (BodyState::ValueStart | BodyState::Value, _) if scan::is_token_byte(byte) => BodyState::Value,
            _ => return Err(ParseError::InvalidChunkExtension),
        };
        self.within_line(next)
    }

    /// Counts one more byte of a size line.
    fn within_line(&mut self, next: BodyState) -> Result<BodyState, ParseError> {
        if self.line_bytes >= self.chunk_line_bytes_max {
            return Err(ParseError::ChunkLineTooLong);
        }
        self.line_bytes += 1;
        Ok(next)
    }

    fn after_size_digit(&mut self, byte: u8) -> Result<BodyState, ParseError> {
        let next = self.within_line(BodyState::Size)?;
        if self.remaining > u64::MAX >> 4 {
            return Err(ParseError::ChunkSizeOverflow);
        }
        self.remaining = self.remaining << 4 | u64::from(hex_value(byte));
        Ok(next)
    }

    fn after_size_line(&mut self) -> BodyState {
        self.line_bytes = 0;
        if self.remaining == 0 { BodyState::TrailerStart } else { BodyState::ChunkData }
    }

    /// Takes the available trailer bytes from `start` on. Bytes before an invalid one are returned first.
    fn take_trailers<'a>(&mut self, input: &'a [u8], start: usize) -> Result<BodyStep<'a>, ParseError> {
        let mut end = start;
        while let Some(&byte) = input.get(end) {
            if self.state == BodyState::TrailerStart && byte == b'\r' {
                break;
            }
            match self.after_trailer_byte(byte) {
                Ok(state) => self.state = state,
                Err(reject) if end == start => return Err(reject),
                Err(_) => break,
            }
            self.trailer_bytes += 1;
            end += 1;
        }
        Ok(BodyStep { consumed: end, event: BodyEvent::Trailer(&input[start..end]) })
    }

    /// Returns the state after a byte of a trailer line (RFC 9112 7.1.2). Only the line count changes, and
    /// only if the byte is valid.
    fn after_trailer_byte(&mut self, byte: u8) -> Result<BodyState, ParseError> {
        if self.trailer_bytes >= self.trailer_bytes_max {
            return Err(ParseError::TrailersTooLarge);
        }
        match (self.state, byte) {
            (BodyState::TrailerStart, _) if self.trailers >= self.trailers_max => {
                Err(ParseError::TooManyTrailers)
            }
            (BodyState::TrailerStart, b' ' | b'\t') => Err(ParseError::ObsFold),
            (BodyState::TrailerStart, _) if scan::is_token_byte(byte) => {
                self.trailers += 1;
                Ok(BodyState::TrailerName)
            }
            (BodyState::TrailerName, b':') => Ok(BodyState::TrailerValue),
            (BodyState::TrailerName, _) if scan::is_token_byte(byte) => Ok(BodyState::TrailerName),
            (BodyState::TrailerName, b' ' | b'\t') => Err(ParseError::SpaceBeforeColon),
            (BodyState::TrailerValue, b'\r') => Ok(BodyState::TrailerLf),
            (BodyState::TrailerValue, _) if scan::is_field_value_byte(byte) => Ok(BodyState::TrailerValue),
            (BodyState::TrailerLf, b'\n') => Ok(BodyState::TrailerStart),
            (BodyState::TrailerLf, _) => Err(ParseError::BareCr),
            (_, b'\n') => Err(ParseError::BareLf),
            _ => Err(ParseError::InvalidTrailer),
        }
    }
}

/// Returns the value of a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
