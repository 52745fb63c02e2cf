//! `X-Forwarded-For` and `Forwarded` (RFC 7239): the client's address as trusted proxies have written it.
//!
//! Each proxy appends the address that it was called from, so the list is read from its end: entries of trusted proxies
//! are skipped, and the first other one is the client. Entries before it may be forged and aren't read.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use shearwater_http1::KnownField;

use crate::limits::FORWARDED_ENTRIES_MAX;
use crate::proxies::header::port;
use crate::proxies::trusted::TrustedProxies;

/// The request header in which trusted proxies pass on the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientHeader {
    /// `X-Forwarded-For`: a list of addresses, each possibly with a port.
    XForwardedFor,
    /// `Forwarded` (RFC 7239): the parameter `for` of each element.
    Forwarded,
}

impl ClientHeader {
    pub(crate) const fn field(self) -> KnownField {
        match self {
            Self::XForwardedFor => KnownField::XForwardedFor,
            Self::Forwarded => KnownField::Forwarded,
        }
    }
}

/// A client as a header describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// The element of `Forwarded` that names it has `proto=https`.
    pub(crate) is_secure: bool,
}

/// Returns true if the last value of `X-Forwarded-Proto` is `https`: the one of the nearest proxy.
pub(crate) fn is_secure<'a>(mut lines: impl DoubleEndedIterator<Item = &'a [u8]>) -> bool {
    let last = lines.next_back().unwrap_or_default();
    let last = last.rsplit(|byte| *byte == b',').next().unwrap_or_default();
    last.trim_ascii().eq_ignore_ascii_case(b"https")
}

/// Returns the client from the lines of a header: the last address that isn't a trusted proxy's.
///
/// Each address that was read vouches for the entry before it. So the walk ends at an entry that is no address, at the
/// first entry, and after [`FORWARDED_ENTRIES_MAX`] entries, and the address that was read last is the client.
/// `None` if there is none: the peer itself, a trusted proxy, has written no address.
pub(crate) fn client<'a>(
    lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    header: ClientHeader,
    trusted: &TrustedProxies,
) -> Option<Client> {
    let mut entries_left = FORWARDED_ENTRIES_MAX;
    let mut client = None;
    for line in lines.rev() {
        let mut rest = Some(line);
        while let Some(line) = rest {
            let comma = match header {
                ClientHeader::XForwardedFor => line.iter().rposition(|byte| *byte == b','),
                ClientHeader::Forwarded => last_comma(line),
            };
            rest = comma.map(|at| &line[..at]);
            let entry = line[comma.map_or(0, |at| at + 1)..].trim_ascii();
            let named = match header {
                ClientHeader::XForwardedFor => {
                    address(entry, port).map(|address| Client { address, is_secure: false })
                }
                ClientHeader::Forwarded if entry.is_empty() => continue, // to be ignored: RFC 9110 section 5.6.1
                ClientHeader::Forwarded => node(entry),
            };
            let Some(named) = named.filter(|_| entries_left > 0) else { return client };
            (client, entries_left) = (Some(named), entries_left - 1);
            if !trusted.contains(named.address.ip()) {
                return client;
            }
        }
    }
    client
}

/// Finds the last comma that isn't in a quoted string of its element.
///
/// Read from the end, an element is found whatever its line begins with: a client's open quote can't reach into the
/// element that a proxy appends.
fn last_comma(line: &[u8]) -> Option<usize> {
    let mut is_quoted = false;
    for (at, byte) in line.iter().enumerate().rev() {
        match byte {
            b'"' if !is_quoted || !is_escaped(&line[..at]) => is_quoted = !is_quoted,
            b',' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns true if the byte after this is escaped: an odd number of backslashes comes before it.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Parses an address: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`. Without a port
/// it is 0.
fn address(text: &[u8], port: impl Fn(&str) -> Option<u16>) -> Option<SocketAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(bracketed) = text.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']')?;
        let port = match rest.strip_prefix(':') {
            Some(text) => port(text)?,
            None if rest.is_empty() => 0,
            None => return None,
        };
        return Some(SocketAddr::new(address.parse::<Ipv6Addr>().ok()?.into(), port));
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(address, 0));
    }
    let (address, number) = text.split_once(':')?;
    Some(SocketAddr::new(address.parse::<Ipv4Addr>().ok()?.into(), port(number)?))
}

/// Parses a port of `Forwarded`. An obfuscated one (RFC 7239 section 6), such as `_p`, is 0.
fn node_port(text: &str) -> Option<u16> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match text.strip_prefix('_') {
        Some(name) if !name.is_empty() && name.bytes().all(is_part) => Some(0),
        _ => port(text),
    }
}

/// Parses an element of `Forwarded`; returns its parameters `for` and `proto`. `None` if the element is malformed or names
/// no address.
fn node(mut rest: &[u8]) -> Option<Client> {
    let (mut found, mut is_named, mut is_secure) = (None, false, false);
    while !rest.is_empty() {
        if let Some(more) = rest.strip_prefix(b";") {
            rest = more.trim_ascii_start();
            continue;
        }
        let name = token(&mut rest)?;
        rest = rest.strip_prefix(b"=")?;
        let value = value(&mut rest)?;
        if name.eq_ignore_ascii_case(b"for") {
            // Of two addresses, neither counts.
            found = if is_named { None } else { address(value, node_port) };
            is_named = true;
        }
        if name.eq_ignore_ascii_case(b"proto") {
            is_secure = value.eq_ignore_ascii_case(b"https");
        }
        rest = rest.trim_ascii_start();
        if !matches!(rest.first(), None | Some(b';')) {
            return None;
        }
    }
    found.map(|address| Client { address, is_secure })
}

/// Takes a token (RFC 9110 section 5.6.2).
fn token<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let len = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
    let (token, more) = rest.split_at(len);
    *rest = more;
    (len > 0).then_some(token)
}

/// Takes a token or a quoted string. Escapes remain in it: no address has one.
fn value<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let Some(quoted) = rest.strip_prefix(b"\"") else { return token(rest) };
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    *rest = &quoted[at + 1..];
    Some(&quoted[..at])
}

#[cfg(test)]
mod tests;
