//! Options of a request for its connection: keep-alive, `Expect: 100-continue` and upgrades (RFC 9112 9.3, RFC 9110 10.1.1 and
//! 7.8).

use crate::fields::FieldTable;
use crate::{KnownField, Version, class};

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

/// Returns true if the connection may carry another request. `close` overrides `keep-alive`.
#[inline]
pub(crate) fn keep_alive(bytes: &[u8], fields: &FieldTable, version: Version) -> bool {
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
pub(crate) fn expectation(bytes: &[u8], fields: &FieldTable, version: Version) -> Expectation {
    match fields.first(KnownField::Expect) {
        Some(_) if version == Version::Http11 => listed_expectation(bytes, fields),
        _ => Expectation::None,
    }
}

fn listed_expectation(bytes: &[u8], fields: &FieldTable) -> Expectation {
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
pub(crate) fn upgrades<'a>(
    bytes: &'a [u8],
    fields: &'a FieldTable,
    version: Version,
) -> impl Iterator<Item = &'a [u8]> {
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
    class::is_token(name) && (version.is_empty() || class::is_token(&version[1..]))
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
        .map(class::trim_blanks)
        .filter(|element| !element.is_empty())
}
