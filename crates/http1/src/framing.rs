//! Message framing (RFC 9112 6). Only this file decides where requests and responses end.

use crate::parse::fields::FieldTable;
use crate::{KnownField, Method, ParseError, Version, encode, scan};

/// Framing of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// This many bytes follow (`Content-Length`); may be 0.
    Length(u64),
    /// Chunks follow (`Transfer-Encoding: chunked`).
    Chunked,
    /// Content of unknown length follows until the stream ends: HTTP/2 only.
    Open,
}

impl Framing {
    /// Returns the framing of the request with these fields. Anything ambiguous is rejected.
    #[inline]
    pub(crate) fn of_request(
        bytes: &[u8],
        fields: &FieldTable,
        version: Version,
    ) -> Result<Self, ParseError> {
        let length = fields.first(KnownField::ContentLength);
        if fields.first(KnownField::TransferEncoding).is_some() {
            // RFC 9112 6.1: both at once may be an attempt at request smuggling.
            if length.is_some() {
                return Err(ParseError::TransferEncodingAndContentLength);
            }
            return Self::of_transfer_encoding(bytes, fields, version);
        }
        match length {
            None => Ok(Self::None),
            // RFC 9112 6.3 allows equal lengths; a client or proxy that sends two is already confused.
            Some(_) if fields.is_repeated(KnownField::ContentLength) => {
                Err(ParseError::DuplicateContentLength)
            }
            Some(field) => {
                decimal(field.value.bytes(bytes)).map(Self::Length).ok_or(ParseError::InvalidContentLength)
            }
        }
    }

    /// Returns the framing of an HTTP/2 request with these fields: its frames say where the content ends, and
    /// `Content-Length` must agree (RFC 9113 8.1.1). `is_ended`: no content follows.
    pub(crate) fn of_stream(bytes: &[u8], fields: &FieldTable, is_ended: bool) -> Result<Self, ParseError> {
        match (Self::of_request(bytes, fields, Version::Http2)?, is_ended) {
            (Self::Length(length), true) if length > 0 => Err(ParseError::InvalidContentLength),
            (Self::None, false) => Ok(Self::Open),
            (framing, _) => Ok(framing),
        }
    }

    /// Accepts `chunked` and nothing else, over all `Transfer-Encoding` lines together.
    fn of_transfer_encoding(bytes: &[u8], fields: &FieldTable, version: Version) -> Result<Self, ParseError> {
        if version == Version::Http10 {
            return Err(ParseError::TransferEncodingInHttp10);
        }
        let mut other = false;
        let mut chunked = false;
        for line in fields.all(KnownField::TransferEncoding) {
            for element in line.value.bytes(bytes).split(|&byte| byte == b',') {
                let (name, has_parameters) = coding(element.trim_ascii())?;
                let is_chunked = name.eq_ignore_ascii_case(b"chunked");
                if is_chunked && (chunked || has_parameters) {
                    return Err(ParseError::InvalidTransferEncoding);
                }
                if chunked {
                    return Err(ParseError::ChunkedNotLast);
                }
                chunked |= is_chunked;
                other |= !is_chunked;
            }
        }
        // Without a final chunked the end of the body is unknown, which outweighs an unknown coding (RFC 9112
        // 6.3).
        match (chunked, other) {
            (false, _) => Err(ParseError::ChunkedNotLast),
            (true, true) => Err(ParseError::UnknownTransferCoding),
            (true, false) => Ok(Self::Chunked),
        }
    }
}

impl KnownField {
    /// Returns true for a field of a connection rather than of a message, which HTTP/2 forbids (RFC 9113 8.2.2).
    #[must_use]
    pub fn is_connection_specific(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::KeepAlive
                | Self::ProxyConnection
                | Self::TransferEncoding
                | Self::Upgrade
        )
    }
}

/// Returns the name of a transfer coding, and whether parameters follow it.
fn coding(element: &[u8]) -> Result<(&[u8], bool), ParseError> {
    let semicolon = element.iter().position(|&byte| byte == b';');
    let name = element[..semicolon.unwrap_or(element.len())].trim_ascii();
    match scan::is_token(name) {
        true => Ok((name, semicolon.is_some())),
        false => Err(ParseError::InvalidTransferEncoding),
    }
}

/// Parses 1*DIGIT below 2^64: no sign, no space, no list (RFC 9110 8.6).
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The part of its content that a response carries, by method and status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseContent {
    /// All of it.
    Whole,
    /// Only its length, if known: responses to HEAD (RFC 9110 9.3.2).
    LengthOnly,
    /// Nothing, with a length of 0: 205 (RFC 9110 15.3.6).
    Empty,
    /// Nothing, and no length: 1xx, 204 and 304, and a 2xx to CONNECT (RFC 9110 8.6, RFC 9112 6.1). A 304 may
    /// repeat the 200's length; it is omitted.
    None,
}

impl ResponseContent {
    /// Decides for a response with this status to a request with this method.
    #[inline(always)]
    #[must_use]
    pub fn of(method: Method, status: u16) -> Self {
        let content = match status {
            // The most common statuses.
            200 => Self::Whole,
            _ => Self::of_status(status),
        };
        match method {
            Method::Head if content == Self::Whole => Self::LengthOnly,
            Method::Connect if matches!(status, 200..=299) => Self::None,
            _ => content,
        }
    }

    fn of_status(status: u16) -> Self {
        match status {
            100..=199 | 204 | 304 => Self::None,
            205 => Self::Empty,
            _ => Self::Whole,
        }
    }

    /// Returns true if content follows the head.
    #[inline(always)]
    #[must_use]
    pub fn is_whole(self) -> bool {
        self == Self::Whole
    }
}

/// Framing of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseFraming {
    /// By its length in bytes.
    Length(u64),
    /// In chunks (RFC 9112 7.1).
    Chunked,
    /// By the end of the connection.
    Close,
}

impl ResponseFraming {
    /// Decides by the length, if known, and the version of the request: HTTP/1.0 has no chunks (RFC 9112
    /// 6.1).
    #[must_use]
    pub fn of(length: Option<u64>, version: Version) -> Self {
        match (length, version) {
            (Some(length), _) => Self::Length(length),
            // HTTP/2 writes frames in place of chunks: trailers may follow those too.
            (None, Version::Http11 | Version::Http2) => Self::Chunked,
            (None, Version::Http10) => Self::Close,
        }
    }

    /// Appends the field that announces the body, if `content` has one, and the end of the head.
    #[inline(always)]
    pub fn append_end_of_head(self, out: &mut Vec<u8>, content: ResponseContent) {
        match (content, self) {
            (ResponseContent::Whole | ResponseContent::LengthOnly, Self::Length(length)) => {
                encode::content_length_and_end(out, length);
            }
            (ResponseContent::Empty, _) => encode::content_length_and_end(out, 0),
            (ResponseContent::Whole, Self::Chunked) => {
                encode::chunked(out);
                encode::end_of_head(out);
            }
            _ => encode::end_of_head(out),
        }
    }

    /// Appends a piece of the body.
    pub fn append_piece(self, out: &mut Vec<u8>, bytes: &[u8]) {
        match self {
            Self::Chunked => encode::chunk(out, bytes),
            Self::Length(_) | Self::Close => out.extend_from_slice(bytes),
        }
    }

    /// Appends what follows the last piece. Trailers are dropped unless the body is in chunks.
    #[inline]
    pub fn append_end(self, out: &mut Vec<u8>, trailers: &[u8]) {
        match self {
            Self::Chunked if trailers.is_empty() => encode::last_chunk(out),
            Self::Chunked => encode::last_chunk_and_trailers(out, trailers),
            Self::Length(_) | Self::Close => {}
        }
    }
}
