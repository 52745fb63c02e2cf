//! A parsed request head, as a view of its bytes.

use crate::fields::FieldSpans;
use crate::target::Form;
use crate::{Expectation, Field, Framing, HeadParser, KnownField, Method, Target, Version, connection};

/// A request head. Text accessors return slices of the received bytes; nothing is copied or decoded.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    parser: &'a HeadParser,
    bytes: &'a [u8],
}

impl<'a> Head<'a> {
    pub(crate) fn new(parser: &'a HeadParser, bytes: &'a [u8]) -> Self {
        Self { parser, bytes }
    }

    pub(crate) fn parser(&self) -> &'a HeadParser {
        self.parser
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.parser.request.method
    }

    /// Returns the method as sent, which distinguishes methods that are [`Method::Other`].
    #[must_use]
    pub fn method_name(&self) -> &'a str {
        self.parser.request.method_name().text(self.bytes)
    }

    /// Returns the request target, parsed.
    #[must_use]
    pub fn target(&self) -> Target<'a> {
        self.parser.request.target.view(self.bytes)
    }

    /// Returns true for a target in origin form: a path, possibly with a query (RFC 9112 3.2.1).
    #[inline]
    #[must_use]
    pub fn is_origin_form(&self) -> bool {
        self.parser.request.target.form == Form::Origin
    }

    /// Returns the request target as sent.
    #[must_use]
    pub fn target_str(&self) -> &'a str {
        self.parser.request.target.whole.text(self.bytes)
    }

    /// Returns the target's path, still percent-encoded. It begins with `/`, is `*` for the server as a whole
    /// (OPTIONS with `*`, or with an absolute target without path and query, RFC 9112 3.2.4), and is empty
    /// for CONNECT.
    #[must_use]
    pub fn path(&self) -> &'a str {
        let target = &self.parser.request.target;
        let path = target.path.text(self.bytes);
        match target.form {
            Form::Absolute if path.is_empty() => {
                match self.method() == Method::Options && target.query().is_none() {
                    true => "*",
                    false => "/",
                }
            }
            _ => path,
        }
    }

    /// Returns the [`path`](Self::path) as bytes, for lookups.
    #[inline]
    #[must_use]
    pub fn path_bytes(&self) -> &'a [u8] {
        let target = &self.parser.request.target;
        match target.form {
            Form::Absolute => self.path().as_bytes(),
            _ => target.path.bytes(self.bytes),
        }
    }

    /// Returns the text after the target's first `?`, still percent-encoded, possibly empty. `None` without a
    /// `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.parser.request.target.query().map(|query| query.text(self.bytes))
    }

    /// Returns the version to interpret the request by.
    #[must_use]
    pub fn version(&self) -> Version {
        self.parser.request.version
    }

    /// Returns the requested host, with its port if one was sent: the target's authority if it has one, else
    /// the Host field. Empty if the client sent none.
    #[must_use]
    pub fn host(&self) -> &'a str {
        self.parser.summary.host.text(self.bytes)
    }

    /// Returns the [`host`](Self::host) as bytes, for lookups.
    #[inline]
    #[must_use]
    pub fn host_bytes(&self) -> &'a [u8] {
        self.parser.summary.host.bytes(self.bytes)
    }

    /// Iterates over all fields, in order. `Host` has the requested [`host`](Self::host): an absolute target
    /// replaces the sent one (RFC 9112 3.2.2).
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let bytes = self.bytes;
        self.parser.fields.fields().iter().map(move |field| field.view(bytes))
    }

    /// Returns the value of the first field with this name, in constant time.
    #[must_use]
    pub fn field(&self, known: KnownField) -> Option<&'a [u8]> {
        self.parser.fields.first(known).map(|field| field.value.bytes(self.bytes))
    }

    /// Returns true if there is a field with one of these names; a constant list costs a single test.
    #[inline]
    #[must_use]
    pub fn has_any(&self, known: &[KnownField]) -> bool {
        self.parser.fields.has_any(known)
    }

    /// Returns the value of the first field with this name, case-insensitively. In constant time for known
    /// names, else by search.
    #[must_use]
    pub fn field_named(&self, name: &str) -> Option<&'a [u8]> {
        if let Some(known) = KnownField::from_name(name.as_bytes()) {
            return self.field(known);
        }
        let has_name =
            |field: &&FieldSpans| field.name.bytes(self.bytes).eq_ignore_ascii_case(name.as_bytes());
        self.parser.fields.fields().iter().find(has_name).map(|field| field.value.bytes(self.bytes))
    }

    /// Iterates over the values of all fields with this name, in order.
    pub fn all(&self, known: KnownField) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.parser.fields.all(known).map(move |field| field.value.bytes(bytes))
    }

    /// Returns the framing of the body.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.parser.summary.framing
    }

    /// Returns true if the client lets the connection carry another request (RFC 9112 9.3).
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.parser.summary.keep_alive
    }

    /// Returns the client's expectation before it sends the body (RFC 9110 10.1.1).
    #[must_use]
    pub fn expectation(&self) -> Expectation {
        self.parser.summary.expectation
    }

    /// Iterates over the names of the protocols that the client offers to upgrade to, without their versions
    /// (RFC 9110 7.8). Compare them case-insensitively. Empty unless the version is HTTP/1.1 and `Connection`
    /// has the option `upgrade`.
    pub fn upgrades(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        connection::upgrades(self.bytes, &self.parser.fields, self.parser.request.version)
    }

    /// Returns the head's length in bytes, including its empty line.
    #[expect(clippy::len_without_is_empty, reason = "a head is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the head as received.
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
            .field("fields", &self.parser.fields.fields().len())
            .finish()
    }
}
