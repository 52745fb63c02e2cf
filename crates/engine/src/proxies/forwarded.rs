//! `X-Forwarded-For` and `Forwarded` (RFC 7239): the client's address as trusted proxies have written it.
//!
//! Each proxy appends the address that it was called from, so the list is read from its end: entries of trusted proxies
//! are passed over, and the first other one is the client. What is left of it may be forged and isn't read.

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

/// Values that are kept until they are read from their end; `None` beyond the limit.
struct Last<T, const N: usize> {
    items: [T; N],
    len: usize,
}

impl<T: Copy, const N: usize> Last<T, N> {
    fn new(filler: T) -> Self {
        Self { items: [filler; N], len: 0 }
    }

    fn push(&mut self, item: T) -> Option<()> {
        *self.items.get_mut(self.len)? = item;
        self.len += 1;
        Some(())
    }

    fn reversed(&self) -> impl Iterator<Item = T> + '_ {
        self.items[..self.len].iter().rev().copied()
    }
}

/// Returns the client's address from the lines of a header, in their order. `None` if there is none, or if an entry on
/// the way to it is no address, or if more entries than [`FORWARDED_ENTRIES_MAX`] would have to be read. If all are
/// trusted proxies, the first one is the client.
pub(crate) fn client<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    header: ClientHeader,
    trusted: &TrustedProxies,
) -> Option<SocketAddr> {
    let mut kept = Last::<&[u8], FORWARDED_ENTRIES_MAX>::new(b"");
    for line in lines {
        kept.push(line)?;
    }
    let mut search = Search { trusted, left: FORWARDED_ENTRIES_MAX, farthest: None };
    for line in kept.reversed() {
        let is_found = match header {
            ClientHeader::XForwardedFor => search.addresses(line),
            ClientHeader::Forwarded => search.elements(line),
        };
        if is_found? {
            break;
        }
    }
    search.farthest
}

/// A walk from the end of the list.
struct Search<'a> {
    trusted: &'a TrustedProxies,
    /// Entries that may still be read.
    left: usize,
    /// Entry that was read last.
    farthest: Option<SocketAddr>,
}

impl Search<'_> {
    /// Reads an entry; returns true if it is the client, and `None` if the header is unusable.
    fn entry(&mut self, address: Option<SocketAddr>) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        let address = address?;
        self.farthest = Some(address);
        Some(!self.trusted.contains(address.ip()))
    }

    /// Reads a line of `X-Forwarded-For`.
    fn addresses(&mut self, line: &[u8]) -> Option<bool> {
        for entry in line.rsplit(|byte| *byte == b',') {
            if self.entry(address(entry.trim_ascii()))? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Reads a line of `Forwarded`. It must be well-formed as a whole: an open quote hides where elements begin.
    fn elements(&mut self, line: &[u8]) -> Option<bool> {
        let mut entries = Last::<Option<SocketAddr>, FORWARDED_ENTRIES_MAX>::new(None);
        let mut rest = line;
        while let Element::Entry(found) = element(&mut rest)? {
            entries.push(found)?;
        }
        for entry in entries.reversed() {
            if self.entry(entry)? {
                return Some(true);
            }
        }
        Some(false)
    }
}

/// Parses an address: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`. Without a port
/// it is 0.
fn address(text: &[u8]) -> Option<SocketAddr> {
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

/// A step through a line of `Forwarded`.
enum Element {
    /// The end of the line.
    End,
    /// An element, and its address if it has one.
    Entry(Option<SocketAddr>),
}

/// Takes the next element of `Forwarded` off the line, with the commas before it. `None` if the line is malformed.
fn element(rest: &mut &[u8]) -> Option<Element> {
    skip(rest, b" \t,");
    if rest.is_empty() {
        return Some(Element::End);
    }
    let (mut found, mut is_named) = (None, false);
    loop {
        skip(rest, b" \t");
        match rest.first() {
            None | Some(b',') => return Some(Element::Entry(found)),
            Some(b';') => *rest = &rest[1..],
            Some(_) => {
                let name = token(rest)?;
                *rest = rest.strip_prefix(b"=")?;
                let value = value(rest)?;
                if name.eq_ignore_ascii_case(b"for") {
                    // A second one would be a second opinion.
                    found = if is_named { None } else { address(value) };
                    is_named = true;
                }
                skip(rest, b" \t");
                if !matches!(rest.first(), None | Some(b',' | b';')) {
                    return None;
                }
            }
        }
    }
}

fn skip(rest: &mut &[u8], skipped: &[u8]) {
    while let Some((first, more)) = rest.split_first()
        && skipped.contains(first)
    {
        *rest = more;
    }
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
