//! The body decoder: finds content, chunks and trailers in the bytes after a head.
//!
//! Each byte is read once and consumed at once; the decoder never needs a byte again. Errors depend on the
//! bytes alone, never on how they were split.

use crate::{BodyLimits, Framing, ParseError, class};

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
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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
    /// empty line. An event may end anywhere in a line; the section is complete at [`BodyEvent::Done`].
    /// Trailers are not merged into the head's fields, and may be dropped (RFC 9110 6.5.1).
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
            Framing::None | Framing::Length(0) => (State::Done, 0),
            Framing::Length(length) => (State::Length, length),
            Framing::Chunked => (State::SizeStart, 0),
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
        self.state == State::Done
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
                State::Done => break,
                State::Length | State::ChunkData => return Ok(self.take_data(input, consumed)),
                State::TrailerStart if byte != b'\r' => return self.take_trailers(input, consumed),
                State::TrailerName | State::TrailerValue | State::TrailerLf => {
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
            self.state = if self.state == State::Length { State::Done } else { State::ChunkCr };
        }
        BodyStep { consumed: start + length, event: BodyEvent::Data(&available[..length]) }
    }

    /// Returns the state after a byte of the chunked framing (RFC 9112 7.1).
    fn after_framing_byte(&mut self, byte: u8) -> Result<State, ParseError> {
        match (self.state, byte) {
            (State::SizeStart | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.after_size_digit(byte)
            }
            (State::SizeStart, b'\n') => Err(ParseError::BareLf),
            (State::SizeStart, _) => Err(ParseError::InvalidChunkSize),
            (State::SizeLf, b'\n') => Ok(self.after_size_line()),
            (State::ChunkCr, b'\r') => Ok(State::ChunkLf),
            (State::ChunkLf, b'\n') => Ok(State::SizeStart),
            (State::ChunkCr | State::ChunkLf, _) => Err(ParseError::MissingChunkEnd),
            (State::TrailerStart, _) => Ok(State::EndLf),
            (State::EndLf, b'\n') => Ok(State::Done),
            (State::SizeLf | State::EndLf, _) => Err(ParseError::BareCr),
            (State::Length | State::ChunkData | State::Done, _)
            | (State::TrailerName | State::TrailerValue | State::TrailerLf, _) => {
                unreachable!("data, trailers and the end are taken by decode")
            }
            _ => self.after_extension_byte(byte),
        }
    }

    /// Returns the state after a byte that follows a chunk's size, possibly in extensions (RFC 9112 7.1.1):
    /// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`.
    fn after_extension_byte(&mut self, byte: u8) -> Result<State, ParseError> {
        let next = match (self.state, byte) {
            (_, b'\n') => return Err(ParseError::BareLf),
            (State::Size | State::ExtensionName | State::Value | State::AfterQuoted, b'\r') => {
                return Ok(State::SizeLf);
            }
            (State::Size | State::BeforeExtension | State::ExtensionName, b';')
            | (State::AfterName | State::Value | State::AfterQuoted, b';') => State::ExtensionStart,
            (State::Size | State::BeforeExtension | State::Value | State::AfterQuoted, b' ' | b'\t') => {
                State::BeforeExtension
            }
            (State::Size, _) => return Err(ParseError::InvalidChunkSize),
            (State::ExtensionStart | State::ValueStart | State::AfterName, b' ' | b'\t') => self.state,
            (State::ExtensionName, b' ' | b'\t') => State::AfterName,
            (State::ExtensionName | State::AfterName, b'=') => State::ValueStart,
            (State::ValueStart, b'"') => State::Quoted,
            (State::Quoted, b'"') => State::AfterQuoted,
            (State::Quoted, b'\\') => State::QuotedPair,
            (State::Quoted | State::QuotedPair, _) if class::is_field_value_byte(byte) => State::Quoted,
            (State::ExtensionStart | State::ExtensionName, _) if class::is_token_byte(byte) => {
                State::ExtensionName
            }
            (State::ValueStart | State::Value, _) if class::is_token_byte(byte) => State::Value,
            _ => return Err(ParseError::InvalidChunkExtension),
        };
        self.within_line(next)
    }

    /// Counts one more byte of a size line.
    fn within_line(&mut self, next: State) -> Result<State, ParseError> {
        if self.line_bytes >= self.chunk_line_bytes_max {
            return Err(ParseError::ChunkLineTooLong);
        }
        self.line_bytes += 1;
        Ok(next)
    }

    fn after_size_digit(&mut self, byte: u8) -> Result<State, ParseError> {
        let next = self.within_line(State::Size)?;
        if self.remaining > u64::MAX >> 4 {
            return Err(ParseError::ChunkSizeOverflow);
        }
        self.remaining = self.remaining << 4 | u64::from(hex_value(byte));
        Ok(next)
    }

    fn after_size_line(&mut self) -> State {
        self.line_bytes = 0;
        if self.remaining == 0 { State::TrailerStart } else { State::ChunkData }
    }

    /// Takes the available trailer bytes from `start` on. Bytes before an invalid one are returned first.
    fn take_trailers<'a>(&mut self, input: &'a [u8], start: usize) -> Result<BodyStep<'a>, ParseError> {
        let mut end = start;
        while let Some(&byte) = input.get(end) {
            if self.state == State::TrailerStart && byte == b'\r' {
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
    fn after_trailer_byte(&mut self, byte: u8) -> Result<State, ParseError> {
        if self.trailer_bytes >= self.trailer_bytes_max {
            return Err(ParseError::TrailersTooLarge);
        }
        match (self.state, byte) {
            (State::TrailerStart, _) if self.trailers >= self.trailers_max => {
                Err(ParseError::TooManyTrailers)
            }
            (State::TrailerStart, b' ' | b'\t') => Err(ParseError::ObsFold),
            (State::TrailerStart, _) if class::is_token_byte(byte) => {
                self.trailers += 1;
                Ok(State::TrailerName)
            }
            (State::TrailerName, b':') => Ok(State::TrailerValue),
            (State::TrailerName, _) if class::is_token_byte(byte) => Ok(State::TrailerName),
            (State::TrailerName, b' ' | b'\t') => Err(ParseError::SpaceBeforeColon),
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerValue, _) if class::is_field_value_byte(byte) => Ok(State::TrailerValue),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::TrailerLf, _) => Err(ParseError::BareCr),
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
