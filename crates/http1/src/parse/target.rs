//! The request target and its four forms (RFC 9112 3.2), and hosts with ports: `uri-host [ ":" port ]`
//! (RFC 9110 4.1 and 7.2, RFC 3986 3.2).

use crate::scan::{self, HeadSpan};
use crate::{Method, ParseError};
use std::net::Ipv6Addr;

/// Digits of the largest port. Shorter numbers are never too large, nor are numbers of this length with a
/// smaller first digit.
const PORT_DIGITS_MAX: u32 = 5;
const PORT_FIRST_DIGIT_MAX: u8 = b'6';

/// A parsed request target, as it was sent: still percent-encoded, and with the dot segments of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// `/path?query`: the origin form.
    Origin {
        /// Begins with `/`.
        path: &'a str,
        /// Text after the first `?`, possibly empty.
        query: Option<&'a str>,
    },
    /// `scheme://authority/path?query`: the absolute form, which is sent to proxies and must be accepted by
    /// every server.
    Absolute {
        /// Any valid scheme, in the sender's case.
        scheme: &'a str,
        /// A host, with an optional port.
        authority: &'a str,
        /// Begins with `/`, or is empty.
        path: &'a str,
        /// Text after the first `?`, possibly empty.
        query: Option<&'a str>,
    },
    /// `host:port`: with CONNECT only.
    Authority {
        /// A name, an IPv4 address, or an IP literal in brackets.
        host: &'a str,
        /// Decimal digits, 1 to 65,535.
        port: &'a str,
    },
    /// `*`: with OPTIONS only, the server as a whole.
    Asterisk,
}

/// A target's form and the spans of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetSpans {
    pub(crate) form: TargetForm,
    pub(crate) whole: HeadSpan,
    /// Empty if the form has none.
    pub(crate) authority: HeadSpan,
    /// Ends with the target, or before its first `?`.
    pub(crate) path: HeadSpan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetForm {
    Origin,
    Absolute,
    Authority,
    Asterisk,
}

impl TargetSpans {
    pub(crate) const NONE: Self = Self {
        form: TargetForm::Asterisk,
        whole: HeadSpan::EMPTY,
        authority: HeadSpan::EMPTY,
        path: HeadSpan::EMPTY,
    };

    /// Parses a target whose bytes have been checked.
    pub(crate) fn parse(bytes: &[u8], whole: HeadSpan, method: Method) -> Result<Self, ParseError> {
        let target = whole.bytes(bytes);
        if method == Method::Connect {
            return match is_host_and_port(target) {
                true => {
                    let path = HeadSpan::new(whole.end(), whole.end());
                    Ok(Self { form: TargetForm::Authority, whole, authority: whole, path })
                }
                false => Err(ParseError::InvalidConnectTarget),
            };
        }
        match target {
            [b'/', ..] => {
                let path = path(bytes, whole.start(), whole.end());
                Ok(Self { form: TargetForm::Origin, whole, authority: HeadSpan::EMPTY, path })
            }
            b"*" if method == Method::Options => {
                Ok(Self { form: TargetForm::Asterisk, whole, authority: HeadSpan::EMPTY, path: whole })
            }
            b"*" => Err(ParseError::AsteriskWithoutOptions),
            _ => Self::absolute(bytes, whole),
        }
    }

    fn absolute(bytes: &[u8], whole: HeadSpan) -> Result<Self, ParseError> {
        let target = whole.bytes(bytes);
        let scheme_len = scan::colon(target).ok_or(ParseError::InvalidTarget)?;
        let rest = target[scheme_len..].strip_prefix(b"://").ok_or(ParseError::InvalidTarget)?;
        if !is_scheme(&target[..scheme_len]) {
            return Err(ParseError::InvalidTarget);
        }
        let authority_len = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        if !is_host_and_optional_port(&rest[..authority_len]) {
            return Err(ParseError::InvalidTargetAuthority);
        }
        let authority_start = whole.end() - rest.len();
        let authority = HeadSpan::new(authority_start, authority_start + authority_len);
        let path = path(bytes, authority.end(), whole.end());
        Ok(Self { form: TargetForm::Absolute, whole, authority, path })
    }

    /// Returns the span after the path and its `?`.
    pub(crate) fn query(&self) -> Option<HeadSpan> {
        let (mark, end) = (self.path.end(), self.whole.end());
        (mark < end).then(|| HeadSpan::new(mark + 1, end))
    }

    /// Returns the public view.
    pub(crate) fn view<'a>(&self, bytes: &'a [u8]) -> Target<'a> {
        let path = self.path.text(bytes);
        let query = self.query().map(|query| query.text(bytes));
        match self.form {
            TargetForm::Origin => Target::Origin { path, query },
            TargetForm::Absolute => {
                let scheme = HeadSpan::new(self.whole.start(), self.authority.start() - b"://".len());
                let authority = self.authority.text(bytes);
                Target::Absolute { scheme: scheme.text(bytes), authority, path, query }
            }
            TargetForm::Authority => {
                let (host, port) =
                    self.whole.text(bytes).rsplit_once(':').expect("checked by is_host_and_port");
                Target::Authority { host, port }
            }
            TargetForm::Asterisk => Target::Asterisk,
        }
    }
}

/// Returns the span from `start` to the first `?` or the target's end.
fn path(bytes: &[u8], start: usize, end: usize) -> HeadSpan {
    let mark = scan::question_mark(&bytes[start..end]).map(|offset| start + offset);
    HeadSpan::new(start, mark.unwrap_or(end))
}

/// Returns true for a `scheme` (RFC 3986 3.1).
fn is_scheme(scheme: &[u8]) -> bool {
    let is_later = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_later)
}

/// Returns true for a non-empty host with an optional port. Typical hosts are checked many bytes at a time.
pub(crate) fn is_host_field(bytes: &[u8], place: HeadSpan) -> bool {
    is_plain_host(bytes, place) || is_host_and_optional_port(place.bytes(bytes))
}

/// Returns true for letters, digits, `-` and `.` with at most one port below 60,000, within one lane.
#[inline(always)]
fn is_plain_host(bytes: &[u8], place: HeadSpan) -> bool {
    let (start, end) = (place.start(), place.end());
    let (Some(found), Some(all)) = (scan::name(bytes, start, end), scan::all(end - start)) else {
        return false;
    };
    // A second colon is invalid; it isn't in `plain`.
    let colon = found.colons & found.colons.wrapping_neg();
    if found.plain != all ^ colon || colon == 1 {
        return false;
    }
    let port = all & !(colon | colon.wrapping_sub(1));
    colon == 0
        || (port & !found.digits == 0
            && (port < colon << PORT_DIGITS_MAX
                || (port < colon << (PORT_DIGITS_MAX + 1)
                    && bytes[start + colon.trailing_zeros() as usize + 1] < PORT_FIRST_DIGIT_MAX)))
}

/// Returns true for a non-empty host with an optional port, without user information: `@` is invalid (RFC
/// 9110 4.2.4).
fn is_host_and_optional_port(authority: &[u8]) -> bool {
    match split(authority) {
        Some((host, None)) => is_host(host),
        Some((host, Some(port))) => is_host(host) && (port.is_empty() || port_number(port).is_some()),
        None => false,
    }
}

/// Returns true for a host and a port other than 0, as in a CONNECT target (RFC 9110 9.3.6).
fn is_host_and_port(authority: &[u8]) -> bool {
    match split(authority) {
        Some((host, Some(port))) => is_host(host) && port_number(port).is_some_and(|number| number != 0),
        _ => false,
    }
}

/// Splits a host from the port after its colon, if any. `None` if an IP literal is not closed or is followed
/// by anything else.
fn split(authority: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let host_len = match authority.first() {
        Some(b'[') => authority.iter().position(|&byte| byte == b']')? + 1,
        _ => authority.iter().position(|&byte| byte == b':').unwrap_or(authority.len()),
    };
    match authority[host_len..].split_first() {
        None => Some((authority, None)),
        Some((b':', port)) => Some((&authority[..host_len], Some(port))),
        Some(_) => None,
    }
}

fn is_host(host: &[u8]) -> bool {
    match host {
        [b'[', literal @ .., b']'] => is_ip_literal(literal),
        _ => !host.is_empty() && is_reg_name(host),
    }
}

/// Returns true for `IPv6address` or `IPvFuture`.
fn is_ip_literal(literal: &[u8]) -> bool {
    match literal {
        [b'v' | b'V', future @ ..] => is_ip_future(future),
        _ => std::str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    }
}

/// Returns true for `IPvFuture` after its `v`: 1*HEXDIG "." 1*( unreserved / sub-delims / ":" ).
fn is_ip_future(future: &[u8]) -> bool {
    let digits = future.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    match &future[digits..] {
        [b'.', address @ ..] => {
            digits > 0
                && !address.is_empty()
                && address.iter().all(|&byte| byte == b':' || scan::is_reg_name_byte(byte))
        }
        _ => false,
    }
}

/// Returns true for a `reg-name`, which includes IPv4 addresses.
fn is_reg_name(mut name: &[u8]) -> bool {
    loop {
        match name {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                name = rest;
            }
            [byte, rest @ ..] if scan::is_reg_name_byte(*byte) => name = rest,
            _ => return false,
        }
    }
}

/// Parses a port: decimal digits, at most 65,535.
fn port_number(port: &[u8]) -> Option<u16> {
    if port.is_empty() {
        return None;
    }
    port.iter().try_fold(0u16, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_host_is_judged_as_any_host_is() {
        let pieces = [
            "", "a", "Z9", ".", "-", ":", "0", "80", "8080", "59999", "60000", "65535", "65536", "99999",
            "_", "%41", "[::1]", "@", "/", "\u{e9}",
        ];
        let mut usual = 0;
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let text = format!("Host: {first}{second}{third}\r\nAccept: */*\r\n\r\n");
                    let place = HeadSpan::new(6, text.find('\r').expect("a line end"));
                    let host = &text.as_bytes()[place.start()..place.end()];
                    if !host.is_empty() {
                        assert_eq!(
                            is_host_field(text.as_bytes(), place),
                            is_host_and_optional_port(host),
                            "{text:?}"
                        );
                        usual += usize::from(is_plain_host(text.as_bytes(), place));
                    }
                }
            }
        }
        assert!(usual > 500, "{usual}");
    }
}
