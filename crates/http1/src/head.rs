//! A parsed request head, as a view of the bytes it was parsed from.

use crate::fields::FieldSpans;
use crate::target::Form;
use crate::{Expectation, Field, Framing, HeadParser, Known, Method, Target, Version, connection};

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

    /// The method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.parser.request.method
    }

    /// The method as sent; this is how to tell the ones that are [`Method::Other`] apart.
    #[must_use]
    pub fn method_name(&self) -> &'a str {
        self.parser.request.method_name().text(self.bytes)
    }

    /// The request target, taken apart.
    #[must_use]
    pub fn target(&self) -> Target<'a> {
        self.parser.request.target.view(self.bytes)
    }

    /// Returns true for a target in its usual form: a path, perhaps with a query (RFC 9112 3.2.1).
    #[inline]
    #[must_use]
    pub fn is_origin_form(&self) -> bool {
        self.parser.request.target.form == Form::Origin
    }

    /// The request target as sent.
    #[must_use]
    pub fn target_str(&self) -> &'a str {
        self.parser.request.target.whole.text(self.bytes)
    }

    /// The target's path, still percent-encoded: begins with `/`, or is `*` for a request about the server as a whole (OPTIONS with
    /// `*`, or with an absolute target without path and query, RFC 9112 3.2.4), or is empty for CONNECT.
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

    /// The [`path`](Self::path) as bytes: for who looks it up and doesn't show it.
    #[inline]
    #[must_use]
    pub fn path_bytes(&self) -> &'a [u8] {
        let target = &self.parser.request.target;
        match target.form {
            Form::Absolute => self.path().as_bytes(),
            _ => target.path.bytes(self.bytes),
        }
    }

    /// What follows the target's first `?`, still percent-encoded, possibly empty. `None` without a `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.parser.request.target.query().map(|query| query.text(self.bytes))
    }

    /// The version to read the request as.
    #[must_use]
    pub fn version(&self) -> Version {
        self.parser.request.version
    }

    /// The host that is asked for, with its port if one was sent: the target's authority if it has one, else the Host field. Empty
    /// if the client sent none.
    #[must_use]
    pub fn host(&self) -> &'a str {
        self.parser.summary.host.text(self.bytes)
    }

    /// The [`host`](Self::host) as bytes: for who looks it up and doesn't show it.
    #[inline]
    #[must_use]
    pub fn host_bytes(&self) -> &'a [u8] {
        self.parser.summary.host.bytes(self.bytes)
    }

    /// All fields, in order. `Host` has the [`host`](Self::host) that is asked for: an absolute target replaces what was sent
    /// (RFC 9112 3.2.2).
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let bytes = self.bytes;
        self.parser.fields.fields().iter().map(move |field| field.view(bytes))
    }

    /// The value of the first field with this name, in constant time.
    #[must_use]
    pub fn field(&self, known: Known) -> Option<&'a [u8]> {
        self.parser.fields.first(known).map(|field| field.value.bytes(self.bytes))
    }

    /// Whether there is a field with one of these names; for a constant list, one look for all of them.
    #[inline]
    #[must_use]
    pub fn has_any(&self, known: &[Known]) -> bool {
        self.parser.fields.has_any(known)
    }

    /// The value of the first field with this name, in any case. In constant time for known names, else by search.
    #[must_use]
    pub fn field_named(&self, name: &str) -> Option<&'a [u8]> {
        if let Some(known) = Known::from_name(name.as_bytes()) {
            return self.field(known);
        }
        let has_name =
            |field: &&FieldSpans| field.name.bytes(self.bytes).eq_ignore_ascii_case(name.as_bytes());
        self.parser.fields.fields().iter().find(has_name).map(|field| field.value.bytes(self.bytes))
    }

    /// The values of all fields with this name, in order.
    pub fn all(&self, known: Known) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.parser.fields.all(known).map(move |field| field.value.bytes(bytes))
    }

    /// How the body is delimited.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.parser.summary.framing
    }

    /// Whether the client lets the connection carry another request (RFC 9112 9.3).
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.parser.summary.keep_alive
    }

    /// What the client expects before it sends the body (RFC 9110 10.1.1).
    #[must_use]
    pub fn expectation(&self) -> Expectation {
        self.parser.summary.expectation
    }

    /// The names of the protocols that the client offers to upgrade to, without their versions (RFC 9110 7.8). They are compared in
    /// any case. Empty unless the version is HTTP/1.1 and `Connection` has the option `upgrade`.
    pub fn upgrades(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        connection::upgrades(self.bytes, &self.parser.fields, self.parser.request.version)
    }

    /// The head's length in bytes, its empty line included.
    #[expect(clippy::len_without_is_empty, reason = "a head is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The head as received.
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
