//! Requests from decoded fields (RFC 9113 8.2 and 8.3): what HTTP/2 adds to the rules of `http1`.

use std::ops::Range;

use shearwater_http1::{
    Head, HeadBuilder, HeadLimits, KnownField, ParseError, RequestParts, Trailers, encode,
};

use crate::hpack::Strings;
use crate::limits::{Limits, TRAILER_BYTES_MAX, TRAILERS_MAX};
use crate::stream_error::StreamError;

/// Buffers for one request head or trailer section. One per worker suffices for all connections.
#[derive(Debug)]
pub struct HeadBuffer {
    builder: HeadBuilder,
    head_bytes_max: usize,
    pub(crate) strings: Strings,
    pseudo: PseudoFields,
    /// Trailer lines with their ends.
    trailers: Vec<u8>,
}

impl HeadBuffer {
    /// Creates buffers for heads within `limits`: up to 4 KiB each between two heads, and 20 bytes per field
    /// that the limits allow.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            builder: HeadBuilder::new(limits),
            head_bytes_max: limits.head_bytes_max,
            strings: Strings::default(),
            pseudo: PseudoFields::default(),
            trailers: Vec::new(),
        }
    }

    /// Returns the head of the last [`StreamEvent::Request`](crate::StreamEvent::Request).
    ///
    /// # Panics
    /// If there was none since the last head that was invalid.
    #[inline]
    #[must_use]
    pub fn head(&self) -> Head<'_> {
        self.builder.head()
    }

    /// Returns the method and path of the last head that was rejected; empty if they hadn't been stored by then.
    #[must_use]
    pub fn rejected_target(&self) -> (&[u8], &[u8]) {
        let part = |field| self.pseudo.get(field).unwrap_or_default();
        (part(PseudoField::Method), part(PseudoField::Path))
    }

    /// Returns the fields of the last [`StreamEvent::Trailers`](crate::StreamEvent::Trailers), without those that can't be
    /// trailers.
    #[must_use]
    pub fn trailers(&self) -> Trailers<'_> {
        Trailers::new(&self.trailers)
    }

    /// Returns the lines of the last [`StreamEvent::Trailers`](crate::StreamEvent::Trailers), as in HTTP/1.
    #[must_use]
    pub fn trailer_section(&self) -> &[u8] {
        &self.trailers
    }

    /// Returns its allocated memory in bytes, used or not.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.builder.held_bytes()
            + self.strings.held_bytes()
            + self.pseudo.text.capacity()
            + self.trailers.capacity()
    }

    /// Begins a request; also returns the buffers that decoding needs.
    pub(crate) fn request(&mut self, limits: &Limits) -> (RequestFields<'_>, &mut Strings) {
        self.pseudo.clear();
        let fields = RequestFields {
            builder: &mut self.builder,
            pseudo: &mut self.pseudo,
            head_bytes_max: self.head_bytes_max,
            extended_connect: limits.extended_connect,
            own_scheme: if limits.is_secured { b"https" } else { b"http" },
            has_begun: false,
            result: Ok(()),
        };
        (fields, &mut self.strings)
    }

    /// Begins a trailer section; also returns the buffers that decoding needs.
    pub(crate) fn trailer_fields(&mut self) -> (TrailerFields<'_>, &mut Strings) {
        self.pseudo.clear();
        self.trailers.clear();
        (TrailerFields { lines: &mut self.trailers, count: 0, result: Ok(()) }, &mut self.strings)
    }
}

/// Reason why a request isn't served as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// The stream is reset.
    Malformed(StreamError),
    /// The response has a status that says why.
    Rejected(ParseError),
}

impl From<StreamError> for HeadError {
    fn from(error: StreamError) -> Self {
        Self::Malformed(error)
    }
}

impl From<ParseError> for HeadError {
    /// Limits have a status; so has a path above the root, which is well-formed.
    fn from(error: ParseError) -> Self {
        match error.status() {
            400 if error != ParseError::PathAboveRoot => Self::Malformed(StreamError::Head(error)),
            _ => Self::Rejected(error),
        }
    }
}

/// Values of the pseudo-fields, which come first, in any order.
#[derive(Debug, Default)]
struct PseudoFields {
    text: Vec<u8>,
    spans: [Option<(u32, u32)>; PseudoField::COUNT],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PseudoField {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
}

impl PseudoField {
    const COUNT: usize = 5;

    fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            b":protocol" => Self::Protocol,
            _ => return None,
        })
    }
}

impl PseudoFields {
    fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(4096);
        self.spans = [None; PseudoField::COUNT];
    }

    /// Stores a value, which must not be empty; each occurs once.
    fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), StreamError> {
        let field = PseudoField::from_name(name).ok_or(StreamError::PseudoFieldUnknown)?;
        if self.spans[field as usize].is_some() {
            return Err(StreamError::PseudoFieldRepeated);
        }
        if value.is_empty() {
            return Err(StreamError::PseudoFieldEmpty);
        }
        let start = self.text.len() as u32;
        self.text.extend_from_slice(value);
        self.spans[field as usize] = Some((start, self.text.len() as u32));
        Ok(())
    }

    fn get(&self, field: PseudoField) -> Option<&[u8]> {
        let (start, end) = self.spans[field as usize]?;
        self.text.get(Range { start: start as usize, end: end as usize })
    }

    /// Checks which fields there are, and returns them (RFC 9113 8.3.1 and 8.5, RFC 8441 4).
    fn parts(&self, extended_connect: bool, own_scheme: &[u8]) -> Result<RequestParts<'_>, StreamError> {
        let method = self.get(PseudoField::Method).ok_or(StreamError::PseudoFieldMissing)?;
        let (scheme, path) = (self.get(PseudoField::Scheme), self.get(PseudoField::Path));
        let authority = self.get(PseudoField::Authority).unwrap_or_default();
        let protocol = self.get(PseudoField::Protocol);
        let is_connect = method == b"CONNECT";
        if protocol.is_some() && !(is_connect && extended_connect) {
            return Err(StreamError::Protocol);
        }
        if is_connect && protocol.is_none() {
            return match (scheme, path, authority) {
                (None, None, [_, ..]) => Ok(RequestParts { method, authority, ..RequestParts::default() }),
                (None, None, _) => Err(StreamError::PseudoFieldMissing),
                _ => Err(StreamError::PseudoFieldForbidden),
            };
        }
        let (Some(scheme), Some(path)) = (scheme, path) else { return Err(StreamError::PseudoFieldMissing) };
        if !is_scheme(scheme) {
            return Err(StreamError::Scheme);
        }
        if path[0] != b'/' && !(path == b"*" && method == b"OPTIONS") {
            return Err(StreamError::Path);
        }
        // The target of another scheme says so, as in HTTP/1.
        let scheme = if scheme.eq_ignore_ascii_case(own_scheme) { b"" } else { scheme };
        Ok(RequestParts { method, scheme, path, authority, protocol: protocol.unwrap_or_default() })
    }
}

/// Returns true for a `scheme` (RFC 3986 3.1).
fn is_scheme(scheme: &[u8]) -> bool {
    let is_later = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_later)
}

/// Takes the fields of a request; after the first fault it takes no more.
pub(crate) struct RequestFields<'b> {
    builder: &'b mut HeadBuilder,
    pseudo: &'b mut PseudoFields,
    head_bytes_max: usize,
    extended_connect: bool,
    /// Scheme of the connection.
    own_scheme: &'static [u8],
    /// A field that isn't a pseudo-field has come.
    has_begun: bool,
    result: Result<(), HeadError>,
}

impl RequestFields<'_> {
    /// Takes the next field.
    #[inline]
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        if self.result.is_ok() {
            self.result = self.try_add(name, value);
        }
    }

    /// Checks the request as a whole. `ends`: no content follows.
    pub(crate) fn finish(mut self, ends: bool) -> Result<(), HeadError> {
        self.result?;
        self.begin()?;
        Ok(self.builder.finish(ends)?)
    }

    fn try_add(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        if let [b':', ..] = name {
            return self.add_pseudo(name, value);
        }
        self.begin()?;
        let known = check_field(name, value)?;
        if known == Some(KnownField::Host)
            && let Some(authority) = self.pseudo.get(PseudoField::Authority)
        {
            return match value.eq_ignore_ascii_case(authority) {
                true => Ok(()),
                false => Err(StreamError::HostDiffers.into()),
            };
        }
        Ok(self.builder.field(known, name, value)?)
    }

    fn add_pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        if self.has_begun {
            return Err(StreamError::PseudoFieldLate.into());
        }
        if value.len() > self.head_bytes_max {
            return Err(ParseError::HeadTooLarge.into());
        }
        Ok(self.pseudo.add(name, value)?)
    }

    /// Begins the head once all pseudo-fields are known.
    #[inline]
    fn begin(&mut self) -> Result<(), HeadError> {
        if !self.has_begun {
            self.has_begun = true;
            self.builder.begin(&self.pseudo.parts(self.extended_connect, self.own_scheme)?)?;
        }
        Ok(())
    }
}

/// Checks the rules of HTTP/2 for a field (RFC 9113 8.2.1 and 8.2.2); the grammar is checked where it is stored.
#[inline]
fn check_field(name: &[u8], value: &[u8]) -> Result<Option<KnownField>, StreamError> {
    if name.iter().any(u8::is_ascii_uppercase) {
        return Err(StreamError::UppercaseName);
    }
    if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value {
        return Err(StreamError::SurroundingSpace);
    }
    let known = KnownField::from_name(name);
    match known {
        Some(KnownField::Te) if !value.eq_ignore_ascii_case(b"trailers") => Err(StreamError::Te),
        Some(known) if known.is_connection_specific() => Err(StreamError::ConnectionSpecific),
        _ => Ok(known),
    }
}

/// Takes the fields of a trailer section; after the first fault it takes no more.
pub(crate) struct TrailerFields<'b> {
    lines: &'b mut Vec<u8>,
    count: usize,
    result: Result<(), HeadError>,
}

impl TrailerFields<'_> {
    /// Takes the next field.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        if self.result.is_ok() {
            self.result = self.try_add(name, value);
        }
    }

    pub(crate) fn finish(self) -> Result<(), HeadError> {
        self.result
    }

    fn try_add(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        if let [b':', ..] = name {
            return Err(StreamError::PseudoFieldForbidden.into());
        }
        check_field(name, value)?;
        self.count += 1;
        if self.count > TRAILERS_MAX {
            return Err(ParseError::TooManyTrailers.into());
        }
        if self.lines.len() + name.len() + value.len() + b": \r\n".len() > TRAILER_BYTES_MAX {
            return Err(ParseError::TrailersTooLarge.into());
        }
        encode::field(self.lines, name_text(name)?, value)
            .map_err(|_| StreamError::Head(ParseError::InvalidTrailer).into())
    }
}

/// Returns a name as text; a token is ASCII.
fn name_text(name: &[u8]) -> Result<&str, StreamError> {
    std::str::from_utf8(name).map_err(|_| StreamError::Head(ParseError::InvalidTrailer))
}

#[cfg(test)]
mod tests;
