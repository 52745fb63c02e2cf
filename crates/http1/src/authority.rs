//! Hosts and ports: `uri-host [ ":" port ]` (RFC 9110 4.1 and 7.2, RFC 3986 3.2).

use crate::span::Span;
use crate::{class, scan};
use std::net::Ipv6Addr;

/// Digits of the largest port. Shorter numbers are never too large, nor are numbers of this length with a
/// smaller first digit.
const PORT_DIGITS_MAX: u32 = 5;
const PORT_FIRST_DIGIT_MAX: u8 = b'6';

/// Returns true for a non-empty host with an optional port. Typical hosts are checked many bytes at a time.
pub(crate) fn is_host_field(bytes: &[u8], place: Span) -> bool {
    is_plain_host(bytes, place) || is_host_and_optional_port(place.bytes(bytes))
}

/// Returns true for letters, digits, `-` and `.` with at most one port below 60,000, within one lane.
#[inline(always)]
fn is_plain_host(bytes: &[u8], place: Span) -> bool {
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
pub(crate) fn is_host_and_optional_port(authority: &[u8]) -> bool {
    match split(authority) {
        Some((host, None)) => is_host(host),
        Some((host, Some(port))) => is_host(host) && (port.is_empty() || port_number(port).is_some()),
        None => false,
    }
}

/// Returns true for a host and a port other than 0, as in a CONNECT target (RFC 9110 9.3.6).
pub(crate) fn is_host_and_port(authority: &[u8]) -> bool {
    match split(authority) {
        Some((host, Some(port))) => is_host(host) && port_number(port).is_some_and(|number| number != 0),
        _ => false,
    }
}

/// Splits a host from the port after its colon, if any. `None` if an IP literal is not closed or is followed
/// by anything else.
pub(crate) fn split(authority: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
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
                && address.iter().all(|&byte| byte == b':' || class::is_reg_name_byte(byte))
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
            [byte, rest @ ..] if class::is_reg_name_byte(*byte) => name = rest,
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
                    let place = Span::new(6, text.find('\r').expect("a line end"));
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
