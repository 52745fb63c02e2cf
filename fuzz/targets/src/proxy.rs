//! PROXY headers: no further byte changes a decision, and each decision agrees with a simple reference parser.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use shearwater_engine::limits::{PROXY_HEADER_BYTES_MAX, PROXY_LINE_BYTES_MAX};
use shearwater_engine::{ProxyHeader, ProxyHeaderError, parse_proxy_header as parse};

/// Parses the first bytes of a connection, in each of their parts.
pub fn run(input: &[u8]) {
    let whole = parse(input);
    let mut decided = None;
    for len in 0..=input.len() {
        let parsed = parse(&input[..len]);
        match decided {
            Some(before) => assert_eq!(parsed, before, "after {len} bytes"),
            None if parsed != Ok(ProxyHeader::Partial) => decided = Some(parsed),
            None => {}
        }
    }
    assert_eq!(decided.unwrap_or(Ok(ProxyHeader::Partial)), whole);
    match whole {
        Ok(ProxyHeader::Complete { len, source, .. }) => {
            assert_eq!(reference(&input[..len]), Some(source), "the source");
            assert!((1..len).all(|shorter| parse(&input[..shorter]) == Ok(ProxyHeader::Partial)));
        }
        Ok(ProxyHeader::Partial) => assert!(input.len() < PROXY_HEADER_BYTES_MAX),
        Err(ProxyHeaderError::Missing | ProxyHeaderError::Malformed | ProxyHeaderError::TooLarge) => {
            let is_header = |len: usize| reference(&input[..len]).is_some();
            assert!(!(1..=input.len()).any(is_header), "a header that the reference parser accepts");
        }
    }
}

/// Returns the source of a whole header; `None` if it isn't one.
fn reference(header: &[u8]) -> Option<Option<SocketAddr>> {
    match header.strip_prefix(b"\r\n\r\n\0\r\nQUIT\n") {
        Some([0x20, _, high, low, rest @ ..]) => is_length(*high, *low, rest).then_some(None),
        Some([0x21, kind, high, low, rest @ ..]) if is_length(*high, *low, rest) => match (kind, rest) {
            (0x11 | 0x12, [a, b, c, d, _, _, _, _, high, low, _, _, ..]) => {
                Some(Some(SocketAddr::from(([*a, *b, *c, *d], u16::from_be_bytes([*high, *low])))))
            }
            (0x21 | 0x22, rest) if rest.len() >= 36 => {
                let address = <[u8; 16]>::try_from(&rest[..16]).ok()?;
                Some(Some(SocketAddr::from((address, u16::from_be_bytes([rest[32], rest[33]])))))
            }
            (0x31 | 0x32, rest) => (rest.len() >= 216).then_some(None),
            (0x00 | 0x01 | 0x02 | 0x10 | 0x20 | 0x30, _) => Some(None),
            _ => None,
        },
        Some(_) => None,
        None => {
            let line = std::str::from_utf8(header).ok()?.strip_suffix("\r\n")?;
            let is_text = line.chars().all(|letter| (' '..='~').contains(&letter));
            if !is_text || header.len() > PROXY_LINE_BYTES_MAX {
                return None;
            }
            if line == "PROXY UNKNOWN" || line.starts_with("PROXY UNKNOWN ") {
                return Some(None);
            }
            let words: Vec<&str> = line.split(' ').collect();
            let ["PROXY", family, source, destination, source_port, destination_port] = words[..] else {
                return None;
            };
            let source: IpAddr = source.parse().ok()?;
            let destination: IpAddr = destination.parse().ok()?;
            let port = |text: &str| text.parse::<u16>().ok().filter(|port| port.to_string() == text);
            let _ = port(destination_port)?;
            let is_family = match family {
                "TCP4" => (source, destination) == (IpAddr::V4(v4(source)?), IpAddr::V4(v4(destination)?)),
                "TCP6" => (source, destination) == (IpAddr::V6(v6(source)?), IpAddr::V6(v6(destination)?)),
                _ => false,
            };
            is_family.then_some(Some(SocketAddr::new(source, port(source_port)?)))
        }
    }
}

fn is_length(high: u8, low: u8, rest: &[u8]) -> bool {
    rest.len() == usize::from(u16::from_be_bytes([high, low])) && rest.len() + 16 <= PROXY_HEADER_BYTES_MAX
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(address) = address { Some(address) } else { None }
}

fn v6(address: IpAddr) -> Option<Ipv6Addr> {
    if let IpAddr::V6(address) = address { Some(address) } else { None }
}
