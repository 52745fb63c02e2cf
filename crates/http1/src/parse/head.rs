//! A parsed request head, as a view of its bytes; and its options for the connection: keep-alive,
//! `Expect: 100-continue` and upgrades (RFC 9112 9.3, RFC 9110 10.1.1 and 7.8).

use super::fields::{Field, FieldTable};
use super::request_line::RequestLine;
use super::target::{Target, TargetForm};
use crate::scan::{self, HeadSpan};
use crate::{Framing, KnownField, Method, Version};

/// A parsed head as offsets into its bytes.
#[derive(Debug)]
pub(super) struct ParsedHead {
    pub(super) request: RequestLine,
    /// The path; empty if it is the target's own.
    pub(super) path: String,
    pub(super) fields: FieldTable,
    pub(super) summary: HeadSummary,
}

impl ParsedHead {
    /// A head without memory for fields.
    pub(super) fn empty() -> Self {
        Self {
            request: RequestLine::NONE,
            path: String::new(),
            fields: FieldTable::empty(),
            summary: HeadSummary::NONE,
        }
    }

    /// Copies the contents of `other`, and allocates memory for its fields if necessary.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.request = other.request;
        self.path.clone_from(&other.path);
        self.fields.copy_from(&other.fields);
        self.summary = other.summary;
    }
}

/// Results that need all fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadSummary {
    pub(super) host: HeadSpan,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
    pub(super) expectation: Expectation,
    /// Protocol of an extended CONNECT; only HTTP/2 heads set it.
    pub(super) protocol: HeadSpan,
}

impl HeadSummary {
    pub(super) const NONE: Self = Self {
        host: HeadSpan::EMPTY,
        framing: Framing::None,
        keep_alive: false,
        expectation: Expectation::None,
        protocol: HeadSpan::EMPTY,
    };
}

/// An expectation of the client before it sends the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Nothing.
    None,
    /// A `100 Continue`, or a final response.
    Continue,
    /// An unknown expectation; the response may be a 417.
    Unknown,
}

/// A request head. Text accessors return slices of the received bytes; nothing is copied or decoded.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    parsed: &'a ParsedHead,
    bytes: &'a [u8],
}

impl<'a> Head<'a> {
    pub(super) fn new(parsed: &'a ParsedHead, bytes: &'a [u8]) -> Self {
        Self { parsed, bytes }
    }

    pub(super) fn parsed(&self) -> &'a ParsedHead {
        self.parsed
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.parsed.request.method
    }

    /// Returns the method as sent, which distinguishes methods that are [`Method::Other`].
    #[must_use]
    pub fn method_name(&self) -> &'a str {
        self.parsed.request.method_name().text(self.bytes)
    }

    /// Returns the request target, parsed.
    #[must_use]
    pub fn target(&self) -> Target<'a> {
        self.parsed.request.target.view(self.bytes)
    }

    /// Returns true for a target in origin form: a path, possibly with a query (RFC 9112 3.2.1).
    #[inline]
    #[must_use]
    pub fn is_origin_form(&self) -> bool {
        self.parsed.request.target.form == TargetForm::Origin
    }

    /// Returns the request target as sent.
    #[must_use]
    pub fn target_str(&self) -> &'a str {
        self.parsed.request.target.whole.text(self.bytes)
    }

    /// Returns the authority of an absolute target or of CONNECT, or of an HTTP/2 request (RFC 9113 8.3.1): a host with an
    /// optional port. `None` if only the Host field has the host.
    #[must_use]
    pub fn authority(&self) -> Option<&'a str> {
        let authority = self.parsed.request.target.authority;
        (authority != HeadSpan::EMPTY).then(|| authority.text(self.bytes))
    }

    /// Returns the path, still percent-encoded, without the dot segments of the target's (RFC 3986 5.2.4). It
    /// begins with `/`, is `*` for the server as a whole (OPTIONS with `*`, or with an absolute target without
    /// path and query, RFC 9112 3.2.4), and is empty for CONNECT.
    #[must_use]
    pub fn path(&self) -> &'a str {
        match &*self.parsed.path {
            "" => self.parsed.request.target.path.text(self.bytes),
            path => path,
        }
    }

    /// Returns the [`path`](Self::path) as bytes, for lookups.
    #[inline]
    #[must_use]
    pub fn path_bytes(&self) -> &'a [u8] {
        match self.parsed.path.as_bytes() {
            [] => self.sent_path_bytes(),
            path => path,
        }
    }

    /// Returns the target's path as it was sent, with its dot segments.
    #[inline]
    #[must_use]
    pub fn sent_path_bytes(&self) -> &'a [u8] {
        self.parsed.request.target.path.bytes(self.bytes)
    }

    /// Returns the text after the target's first `?`, still percent-encoded, possibly empty. `None` without a
    /// `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.parsed.request.target.query().map(|query| query.text(self.bytes))
    }

    /// Returns the version to interpret the request by.
    #[must_use]
    pub fn version(&self) -> Version {
        self.parsed.request.version
    }

    /// Returns the requested host, with its port if one was sent: the target's authority if it has one, else
    /// the Host field. Empty if the client sent none.
    #[must_use]
    pub fn host(&self) -> &'a str {
        self.parsed.summary.host.text(self.bytes)
    }

    /// Returns the [`host`](Self::host) as bytes, for lookups.
    #[inline]
    #[must_use]
    pub fn host_bytes(&self) -> &'a [u8] {
        self.parsed.summary.host.bytes(self.bytes)
    }

    /// Iterates over all fields, in order. `Host` has the requested [`host`](Self::host): an absolute target
    /// replaces the sent one (RFC 9112 3.2.2).
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let bytes = self.bytes;
        self.parsed.fields.fields().iter().map(move |field| field.view(bytes))
    }

    /// Returns the value of the first field with this name, in constant time.
    #[must_use]
    pub fn field(&self, known: KnownField) -> Option<&'a [u8]> {
        self.parsed.fields.first(known).map(|field| field.value.bytes(self.bytes))
    }

    /// Returns true if there are several fields with this name, in constant time.
    #[inline]
    #[must_use]
    pub fn is_repeated(&self, known: KnownField) -> bool {
        self.parsed.fields.is_repeated(known)
    }

    /// Returns true if there is a field with one of these names; a constant list costs a single test.
    #[inline]
    #[must_use]
    pub fn has_any(&self, known: &[KnownField]) -> bool {
        self.parsed.fields.has_any(known)
    }

    /// Returns the value of the first field with this name, case-insensitively. In constant time for known
    /// names, else by search.
    #[must_use]
    pub fn field_named(&self, name: &str) -> Option<&'a [u8]> {
        match KnownField::from_name(name.as_bytes()) {
            Some(known) => self.field(known),
            None => self.all_named(name).next(),
        }
    }

    /// Iterates over the values of all fields with this name, case-insensitively, in order.
    pub fn all_named<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let bytes = self.bytes;
        let fields = self.parsed.fields.fields().iter();
        let named = fields.filter(move |field| field.name.bytes(bytes).eq_ignore_ascii_case(name.as_bytes()));
        named.map(move |field| field.value.bytes(bytes))
    }

    /// Iterates over the values of all fields with this name, in order.
    #[must_use]
    pub fn all(&self, known: KnownField) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.parsed.fields.all(known).map(move |field| field.value.bytes(bytes))
    }

    /// Returns the framing of the body.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.parsed.summary.framing
    }

    /// Returns true if the client lets the connection carry another request (RFC 9112 9.3).
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.parsed.summary.keep_alive
    }

    /// Returns the client's expectation before it sends the body (RFC 9110 10.1.1).
    #[must_use]
    pub fn expectation(&self) -> Expectation {
        self.parsed.summary.expectation
    }

    /// Iterates over the names of the protocols that the client offers to upgrade to, without their versions
    /// (RFC 9110 7.8). Compare them case-insensitively. Of HTTP/1.1, empty unless `Connection` has the option
    /// `upgrade`; of HTTP/2, the [protocol](Self::protocol) of an extended CONNECT.
    pub fn upgrades(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let of_connect = self.protocol().map(str::as_bytes).into_iter();
        upgrades(self.bytes, &self.parsed.fields, self.parsed.request.version).chain(of_connect)
    }

    /// Returns the protocol that an extended CONNECT asks for, such as `websocket` (RFC 8441 4). `None` for
    /// all other requests; always in HTTP/1.
    #[must_use]
    pub fn protocol(&self) -> Option<&'a str> {
        let span = self.parsed.summary.protocol;
        // A parser that was lent to an HTTP/2 head may still have its span.
        (self.version() == Version::Http2 && span != HeadSpan::EMPTY).then(|| span.text(self.bytes))
    }

    /// Returns the head's length in bytes, including its empty line.
    #[expect(clippy::len_without_is_empty, reason = "a head is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the head as received; of HTTP/2, as it would be in HTTP/1.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.bytes
    }
}

impl std::fmt::Debug for Head<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Head")
            .field("method", &self.method_name())
            .field("target", &self.target_str())
            .field("version", &self.version())
            .field("fields", &self.parsed.fields.fields().len())
            .finish()
    }
}

/// Returns true if the connection may carry another request. `close` overrides `keep-alive`.
#[inline]
pub(super) fn keep_alive(bytes: &[u8], fields: &FieldTable, version: Version) -> bool {
    let Some(field) = fields.first(KnownField::Connection) else { return version == Version::Http11 };
    match field.value.bytes(bytes) {
        _ if fields.is_repeated(KnownField::Connection) => options_keep_alive(bytes, fields, version),
        b"keep-alive" | b"Keep-Alive" => true,
        b"close" => false,
        _ => options_keep_alive(bytes, fields, version),
    }
}

fn options_keep_alive(bytes: &[u8], fields: &FieldTable, version: Version) -> bool {
    let mut keep_alive = version == Version::Http11;
    for option in elements(bytes, fields, KnownField::Connection) {
        if option.eq_ignore_ascii_case(b"close") {
            return false;
        }
        keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    }
    keep_alive
}

/// Returns the expectation. `Expect` is ignored in HTTP/1.0.
#[inline]
pub(super) fn expectation(bytes: &[u8], fields: &FieldTable, version: Version) -> Expectation {
    match fields.first(KnownField::Expect) {
        Some(_) if version == Version::Http11 => listed_expectation(bytes, fields),
        _ => Expectation::None,
    }
}

pub(super) fn listed_expectation(bytes: &[u8], fields: &FieldTable) -> Expectation {
    let mut expectation = Expectation::None;
    for element in elements(bytes, fields, KnownField::Expect) {
        if !element.eq_ignore_ascii_case(b"100-continue") {
            return Expectation::Unknown;
        }
        expectation = Expectation::Continue;
    }
    expectation
}

/// Returns the names of the protocols that the client offers to upgrade to, without their versions. The
/// `Upgrade` field is ignored in HTTP/1.0 and without the connection option `upgrade`.
fn upgrades<'a>(bytes: &'a [u8], fields: &'a FieldTable, version: Version) -> impl Iterator<Item = &'a [u8]> {
    let is_offer = fields.first(KnownField::Upgrade).is_some()
        && version == Version::Http11
        && elements(bytes, fields, KnownField::Connection)
            .any(|option| option.eq_ignore_ascii_case(b"upgrade"));
    let offered = is_offer.then(|| elements(bytes, fields, KnownField::Upgrade));
    offered.into_iter().flatten().map(protocol_name)
}

/// Returns true for a protocol to upgrade to: a name, or a name and a version as in `name/1.0` (RFC 9110 7.8).
#[must_use]
pub fn is_protocol(text: &[u8]) -> bool {
    let name = protocol_name(text);
    let version = &text[name.len()..];
    scan::is_token(name) && (version.is_empty() || scan::is_token(&version[1..]))
}

/// Compares the names of two protocols, case-insensitively and without versions (RFC 9110 7.8).
#[must_use]
pub fn is_same_protocol(one: &[u8], other: &[u8]) -> bool {
    protocol_name(one).eq_ignore_ascii_case(protocol_name(other))
}

/// Returns the name of a protocol, without its version.
fn protocol_name(protocol: &[u8]) -> &[u8] {
    protocol.split(|&byte| byte == b'/').next().unwrap_or(protocol)
}

/// Iterates over the elements of a list field in all its lines, without empty elements (RFC 9110 5.6.1).
fn elements<'a>(
    bytes: &'a [u8],
    fields: &'a FieldTable,
    known: KnownField,
) -> impl Iterator<Item = &'a [u8]> {
    fields
        .all(known)
        .flat_map(|field| field.value.bytes(bytes).split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}
