//! The header of the PROXY protocol, versions 1 and 2: the client's address that a proxy sends before all other bytes.
//!
//! `https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt` is the specification. The parser is a function of the
//! bytes so far. A header is complete, can still become one, or is invalid as soon as a byte shows it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::{PROXY_HEADER_BYTES_MAX, PROXY_LINE_BYTES_MAX};

/// First bytes of version 2 (section 2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// First bytes of version 1 (section 2.1).
const PREFIX: &[u8; 6] = b"PROXY ";

/// Length of the fixed part of version 2: signature, command, family and length.
const FIXED_BYTES: usize = SIGNATURE.len() + 4;

/// Result of parsing the first bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeader {
    /// More bytes are needed.
    Partial,
    /// The header is complete.
    Complete {
        /// Its length in bytes; the rest belongs to the client.
        len: usize,
        /// The client's address. `None`: the proxy itself has connected (`LOCAL`), or it doesn't know an IP address.
        source: Option<SocketAddr>,
        /// The client's connection to the proxy is encrypted. Only version 2 can say so (section 2.2.6).
        is_secure: bool,
    },
}

/// The reason why a header is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeaderError {
    /// The connection begins with other bytes.
    Missing,
    /// The header violates the specification.
    Malformed,
    /// The header is longer than allowed here.
    TooLarge,
}

impl fmt::Display for ProxyHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "it doesn't begin with a PROXY header",
            Self::Malformed => "its PROXY header is malformed",
            Self::TooLarge => "its PROXY header is too large",
        })
    }
}

impl std::error::Error for ProxyHeaderError {}

/// Parses the first bytes of a connection, however many there are.
///
/// # Errors
/// See [`ProxyHeaderError`]. Further bytes wouldn't change the result.
pub fn parse(input: &[u8]) -> Result<ProxyHeader, ProxyHeaderError> {
    if is_begun(input, SIGNATURE) {
        binary(input)
    } else if is_begun(input, PREFIX) {
        line(input)
    } else {
        Err(ProxyHeaderError::Missing)
    }
}

/// Returns true if the input begins with `start`, or is a part of it.
fn is_begun(input: &[u8], start: &[u8]) -> bool {
    let len = input.len().min(start.len());
    input[..len] == start[..len]
}

/// Parses version 1: a line of text.
fn line(input: &[u8]) -> Result<ProxyHeader, ProxyHeaderError> {
    let bounded = &input[..input.len().min(PROXY_LINE_BYTES_MAX)];
    let Some(end) = bounded.iter().position(|byte| !matches!(byte, b' '..=b'~')) else {
        return match bounded.len() {
            PROXY_LINE_BYTES_MAX => Err(ProxyHeaderError::TooLarge),
            _ => Ok(ProxyHeader::Partial),
        };
    };
    match &bounded[end..] {
        [b'\r', b'\n', ..] => {}
        [b'\r'] if bounded.len() < PROXY_LINE_BYTES_MAX => return Ok(ProxyHeader::Partial),
        [b'\r'] => return Err(ProxyHeaderError::TooLarge),
        _ => return Err(ProxyHeaderError::Malformed),
    }
    let text = bounded.get(PREFIX.len()..end).and_then(|text| std::str::from_utf8(text).ok());
    let source = text.and_then(source_of_line).ok_or(ProxyHeaderError::Malformed)?;
    Ok(ProxyHeader::Complete { len: end + b"\r\n".len(), source, is_secure: false })
}

/// Returns the source address of a line after its prefix; `None` if it is malformed.
fn source_of_line(text: &str) -> Option<Option<SocketAddr>> {
    let (family, rest) = text.split_once(' ').unwrap_or((text, ""));
    if family == "UNKNOWN" {
        return Some(None); // the rest must be ignored
    }
    let mut words = rest.split(' ');
    let mut word = || words.next();
    let (source, destination) = (word()?, word()?);
    let source: IpAddr = match family {
        "TCP4" => destination.parse::<Ipv4Addr>().and_then(|_| source.parse::<Ipv4Addr>()).ok()?.into(),
        "TCP6" => destination.parse::<Ipv6Addr>().and_then(|_| source.parse::<Ipv6Addr>()).ok()?.into(),
        _ => return None,
    };
    let (source_port, _) = (port(word()?)?, port(word()?)?);
    word().is_none().then_some(Some(SocketAddr::new(source, source_port)))
}

/// Parses a port without a sign or leading zeros.
pub(crate) fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

/// Parses version 2: a fixed part, addresses, and further values, of which only that on TLS is read.
fn binary(input: &[u8]) -> Result<ProxyHeader, ProxyHeaderError> {
    let Some(&command) = input.get(SIGNATURE.len()) else { return Ok(ProxyHeader::Partial) };
    let is_local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(ProxyHeaderError::Malformed),
    };
    let Some(&kind) = input.get(SIGNATURE.len() + 1) else { return Ok(ProxyHeader::Partial) };
    let (family, transport) = (kind >> 4, kind & 0x0F);
    // The family of `LOCAL` is to be ignored.
    if !is_local && (family > 3 || transport > 2) {
        return Err(ProxyHeaderError::Malformed);
    }
    let Some(&[high, low]) = input.get(FIXED_BYTES - 2..FIXED_BYTES) else { return Ok(ProxyHeader::Partial) };
    let len = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if len > PROXY_HEADER_BYTES_MAX {
        return Err(ProxyHeaderError::TooLarge);
    }
    let addresses_len = match family {
        _ if is_local || transport == 0 => 0,
        1 => 2 * (4 + 2),
        2 => 2 * (16 + 2),
        3 => 2 * 108,
        _ => 0,
    };
    if len < FIXED_BYTES + addresses_len {
        return Err(ProxyHeaderError::Malformed);
    }
    let Some(addresses) = input.get(FIXED_BYTES..len) else { return Ok(ProxyHeader::Partial) };
    let source = match addresses_len {
        12 => source_of::<4>(addresses),
        36 => source_of::<16>(addresses),
        _ => None, // a Unix-domain socket has no IP address
    };
    let is_secure = !is_local && is_encrypted(&addresses[addresses_len..]);
    Ok(ProxyHeader::Complete { len, source, is_secure })
}

/// The type of the value on TLS (`PP2_TYPE_SSL`).
const TLS: u8 = 0x20;

/// The bit of a connection by TLS (`PP2_CLIENT_SSL`).
const BY_TLS: u8 = 0x01;

/// Returns true if one of the values says that the client has connected by TLS. A malformed value ends the search.
fn is_encrypted(mut values: &[u8]) -> bool {
    while let [kind, high, low, rest @ ..] = values {
        let Some((value, more)) = rest.split_at_checked(u16::from_be_bytes([*high, *low]).into()) else {
            return false;
        };
        if *kind == TLS {
            return value.first().is_some_and(|bits| bits & BY_TLS != 0);
        }
        values = more;
    }
    false
}

/// Reads source and destination address, then source and destination port; returns the source.
fn source_of<const N: usize>(addresses: &[u8]) -> Option<SocketAddr>
where
    IpAddr: From<[u8; N]>,
{
    let (source, rest) = addresses.split_first_chunk::<N>()?;
    let port = rest.get(N..)?.first_chunk::<2>()?;
    Some(SocketAddr::new(IpAddr::from(*source), u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests;
