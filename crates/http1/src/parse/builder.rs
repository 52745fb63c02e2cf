//! Builds heads from parts that arrive one by one: an HTTP/2 head is no text (RFC 9113 8.3).
//!
//! The parts are written as an HTTP/1 head with their spans beside it, so a [`Head`] is the same for both versions.

use super::head::{self, Head, HeadSummary, ParsedHead};
use super::path;
use super::request_line::{self, RequestLine};
use super::target::{self, TargetForm, TargetSpans};
use crate::scan::{self, FieldSpans, HeadSpan};
use crate::{Expectation, Framing, HeadLimits, KnownField, Method, ParseError, Version};

/// Size of a field beside its name and value, by which header lists are measured (RFC 9113 6.5.2).
const FIELD_OVERHEAD_BYTES: usize = 32;
/// Bytes that the buffer of a head keeps for the next one.
const HEAD_BYTES_KEPT_MAX: usize = 4096;

/// Parts of a request before its fields: the pseudo-fields of HTTP/2 (RFC 9113 8.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts<'a> {
    /// Method, of any name.
    pub method: &'a [u8],
    /// Scheme, if the target is to be in absolute form; else empty.
    pub scheme: &'a [u8],
    /// Path and query, or `*`; unused in a CONNECT without `protocol`.
    pub path: &'a [u8],
    /// Host with an optional port; empty if only a `Host` field has it.
    pub authority: &'a [u8],
    /// Protocol of an extended CONNECT, or empty (RFC 8441 4).
    pub protocol: &'a [u8],
}

/// Builds one HTTP/2 request head at a time: [`begin`](Self::begin), any number of [`field`](Self::field)s,
/// [`finish`](Self::finish).
///
/// Its buffers are reused for each head: up to 4 KiB of text, and 20 bytes per field that the limits allow.
#[derive(Debug)]
pub struct HeadBuilder {
    limits: HeadLimits,
    bytes: Vec<u8>,
    /// Value of the one `Cookie` that all crumbs become.
    cookie: Vec<u8>,
    /// Size and number of the fields, crumbs included (RFC 9113 6.5.2).
    list_bytes: usize,
    list_fields: usize,
    head: ParsedHead,
    is_complete: bool,
}

impl HeadBuilder {
    /// Creates a builder for heads within `limits`. `head_bytes_max` bounds the sum of all names and values,
    /// and 32 bytes a field.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        let limits = limits.usable();
        let mut head = ParsedHead::empty();
        head.fields.make_room(limits.fields_max);
        Self {
            limits,
            bytes: Vec::new(),
            cookie: Vec::new(),
            list_bytes: 0,
            list_fields: 0,
            head,
            is_complete: false,
        }
    }

    /// Returns its allocated memory in bytes, used or not.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.cookie.capacity()
            + self.head.fields.held_bytes()
            + self.head.path.capacity()
    }

    /// Begins another head.
    ///
    /// # Errors
    /// The reason why a part is invalid, or exceeds its limit.
    pub fn begin(&mut self, parts: &RequestParts<'_>) -> Result<(), ParseError> {
        self.is_complete = false;
        (self.list_bytes, self.list_fields) = (0, 0);
        self.head.path.clear();
        self.head.fields.clear();
        self.head.summary = HeadSummary::NONE;
        for buffer in [&mut self.bytes, &mut self.cookie] {
            buffer.clear();
            buffer.shrink_to(HEAD_BYTES_KEPT_MAX);
        }
        let method = request_line::parse_method(parts.method)?;
        let is_authority_form = method == Method::Connect && parts.protocol.is_empty();
        let target = if is_authority_form { parts.authority } else { parts.path };
        request_line::check_target_bytes(target, &self.limits)?;
        self.bytes.extend_from_slice(parts.method);
        self.bytes.push(b' ');
        let start = self.bytes.len();
        let is_absolute = !parts.scheme.is_empty() && !is_authority_form;
        if is_absolute {
            for part in [parts.scheme, b"://", parts.authority] {
                self.bytes.extend_from_slice(part);
            }
        }
        // In absolute form it is the absence of a path that means the whole server.
        self.bytes.extend_from_slice(if is_absolute && target == b"*" { b"" } else { target });
        let whole = HeadSpan::new(start, self.bytes.len());
        self.bytes.extend_from_slice(b" HTTP/2\r\n");
        if !parts.authority.is_empty() {
            self.field(Some(KnownField::Host), b"host", parts.authority)?;
        }
        if !parts.protocol.is_empty() {
            self.head.summary.protocol = self.append_protocol(parts.protocol)?;
        }
        // The method decides the target's form in HTTP/1, where CONNECT has no path.
        let form_of = if is_authority_form || method != Method::Connect { method } else { Method::Get };
        let target = self.target(whole, form_of, is_absolute)?;
        self.head.request = RequestLine { method, start: 0, target, version: Version::Http2 };
        // So far, only an authority has become a Host field.
        if let Some(host) = self.head.fields.first(KnownField::Host)
            && target.authority == HeadSpan::EMPTY
        {
            self.head.request.target.authority = host.value;
        }
        Ok(())
    }

    /// Parses the target, and sets the path if that isn't the target's.
    fn target(
        &mut self,
        whole: HeadSpan,
        method: Method,
        is_absolute: bool,
    ) -> Result<TargetSpans, ParseError> {
        let (start, end) = (whole.start(), whole.end());
        if self.bytes[start] == b'/'
            && method != Method::Connect
            && let Some(path_end) = scan::target(&self.bytes, start, end)
        {
            let path = HeadSpan::new(start, path_end);
            return Ok(TargetSpans { form: TargetForm::Origin, whole, authority: HeadSpan::EMPTY, path });
        }
        let target = TargetSpans::parse(&self.bytes, whole, method)?;
        // RFC 9113 8.3.1: scheme and authority have fields of their own.
        if target.form == TargetForm::Absolute && !is_absolute {
            return Err(ParseError::InvalidTarget);
        }
        path::find(&mut self.head.path, &target, &self.bytes, method)?;
        Ok(target)
    }

    /// Appends the protocol as a line of its own, which is no field.
    fn append_protocol(&mut self, protocol: &[u8]) -> Result<HeadSpan, ParseError> {
        if !head::is_protocol(protocol) {
            return Err(ParseError::InvalidFieldName);
        }
        self.bytes.extend_from_slice(b":protocol: ");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(protocol);
        let span = HeadSpan::new(start, self.bytes.len());
        self.bytes.extend_from_slice(b"\r\n");
        Ok(span)
    }

    /// Appends a field. `known` is [`KnownField::from_name`] of its name. Several `Cookie` fields become one
    /// (RFC 9113 8.2.3).
    ///
    /// # Errors
    /// The reason why the field is invalid, or exceeds a limit; it isn't part of the head then.
    #[inline]
    pub fn field(&mut self, known: Option<KnownField>, name: &[u8], value: &[u8]) -> Result<(), ParseError> {
        debug_assert_eq!(known, KnownField::from_name(name));
        self.list_bytes = self.list_bytes.saturating_add(name.len() + value.len() + FIELD_OVERHEAD_BYTES);
        if self.list_bytes > self.limits.head_bytes_max {
            return Err(ParseError::HeadTooLarge);
        }
        self.list_fields += 1;
        if self.list_fields > self.limits.fields_max {
            return Err(ParseError::TooManyFields);
        }
        if known.is_none() && !scan::is_token(name) {
            return Err(ParseError::InvalidFieldName);
        }
        if scan::has_control(value) {
            return Err(ParseError::ControlInField);
        }
        if known == Some(KnownField::Cookie) {
            if !self.cookie.is_empty() {
                self.cookie.extend_from_slice(b"; ");
            }
            self.cookie.extend_from_slice(value);
            return Ok(());
        }
        self.append(known, name, value);
        Ok(())
    }

    fn append(&mut self, known: Option<KnownField>, name: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.reserve(name.len() + value.len() + b": \r\n".len());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        let name = HeadSpan::new(start, start + name.len());
        let value = HeadSpan::new(self.bytes.len() - value.len(), self.bytes.len());
        self.bytes.extend_from_slice(b"\r\n");
        self.head.fields.push(FieldSpans { name, value, known });
    }

    /// Checks the head as a whole. `is_ended`: the stream ends with it.
    ///
    /// # Errors
    /// The reason why the fields don't fit together: host, length.
    pub fn finish(&mut self, is_ended: bool) -> Result<(), ParseError> {
        if !self.cookie.is_empty() {
            let cookie = std::mem::take(&mut self.cookie);
            self.append(Some(KnownField::Cookie), b"cookie", &cookie);
            self.cookie = cookie;
        }
        self.bytes.extend_from_slice(b"\r\n");
        let host = match self.head.fields.first(KnownField::Host) {
            None => return Err(ParseError::MissingHost),
            Some(_) if self.head.fields.is_repeated(KnownField::Host) => {
                return Err(ParseError::DuplicateHost);
            }
            Some(field) => field.value,
        };
        if !target::is_host_field(&self.bytes, host) {
            return Err(ParseError::InvalidHost);
        }
        let fields = &self.head.fields;
        self.head.summary = HeadSummary {
            host,
            framing: Framing::of_stream(&self.bytes, fields, is_ended)?,
            keep_alive: true,
            expectation: match fields.first(KnownField::Expect) {
                Some(_) => head::listed_expectation(&self.bytes, fields),
                None => Expectation::None,
            },
            protocol: self.head.summary.protocol,
        };
        self.is_complete = true;
        Ok(())
    }

    /// Returns the host of the request that has begun: its authority, or else its `Host` field so far.
    #[must_use]
    pub fn host(&self) -> Option<&[u8]> {
        self.head.fields.first(KnownField::Host).map(|field| field.value.bytes(&self.bytes))
    }

    /// Returns the head that was built last. [`HeadParser::adopt`](crate::HeadParser::adopt) keeps it.
    ///
    /// # Panics
    /// If the last call wasn't a successful [`finish`](Self::finish).
    #[inline]
    #[must_use]
    pub fn head(&self) -> Head<'_> {
        assert!(self.is_complete, "no complete head has been built");
        Head::new(&self.head, &self.bytes)
    }
}
