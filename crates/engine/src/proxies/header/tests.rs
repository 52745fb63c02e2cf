//! A corpus of headers, each whole, in every part and followed by other bytes; generated headers.

use std::net::{IpAddr, SocketAddr};

use super::ProxyHeader::{Complete, Partial};
use super::ProxyHeaderError::{Malformed, Missing, TooLarge};
use super::{PROXY_HEADER_BYTES_MAX, PROXY_LINE_BYTES_MAX, ProxyHeader, ProxyHeaderError, SIGNATURE, parse};

type Parsed = Result<ProxyHeader, ProxyHeaderError>;

/// Returns a header of version 2.
fn binary(command: u8, kind: u8, rest: &[u8]) -> Vec<u8> {
    let len = u16::try_from(rest.len()).expect("a short header");
    [&SIGNATURE[..], &[command, kind], &len.to_be_bytes(), rest].concat()
}

const V4: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0xDB, 0xC4, 0x01, 0xBB];

fn v6() -> [u8; 36] {
    let mut bytes = [0; 36];
    (bytes[0], bytes[1], bytes[15], bytes[31]) = (0x20, 0x01, 7, 8);
    (bytes[32], bytes[33], bytes[35]) = (0x04, 0x00, 80);
    bytes
}

fn complete(bytes: &[u8], source: &str) -> Parsed {
    Ok(Complete {
        len: bytes.len(),
        source: (!source.is_empty()).then(|| source.parse().expect("an address")),
        is_secure: false,
    })
}

fn is_partial(parsed: &Parsed) -> bool {
    *parsed == Ok(Partial)
}

/// Asserts the result of an input, and that no part of it and no further byte changes a decision.
#[track_caller]
fn assert_parsed(input: &[u8], expected: &Parsed) {
    let shown = input[..input.len().min(200)].escape_ascii();
    assert_eq!(parse(input), *expected, "{shown}");
    let parts: Vec<Parsed> = (0..=input.len()).map(|len| parse(&input[..len])).collect();
    let decided = parts.iter().position(|parsed| !is_partial(parsed)).unwrap_or(input.len());
    assert!(
        parts[decided..].iter().all(|parsed| parsed == expected),
        "{shown}: decided after {decided} bytes"
    );
    if let Ok(Complete { len, .. }) = expected {
        assert_eq!(decided, *len, "{shown}: not before its last byte");
    }
    for more in [&b"\r\n"[..], b"GET / HTTP/1.1\r\n\r\n", b"PROXY ", &[0; 9]] {
        if !is_partial(expected) {
            assert_eq!(parse(&[input, more].concat()), *expected, "{shown} and more");
        }
    }
}

#[test]
fn parses_lines() {
    for (line, source) in [
        ("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n", "192.0.2.1:56324"),
        ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535"),
        ("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0:0"),
        ("PROXY TCP6 2001:db8::1 ::1 1024 80\r\n", "[2001:db8::1]:1024"),
        ("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", "[::ffff:192.0.2.1]:1"),
        ("PROXY UNKNOWN\r\n", ""),
        ("PROXY UNKNOWN anything, which is ignored\r\n", ""),
        (
            "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            "",
        ),
    ] {
        assert_parsed(line.as_bytes(), &complete(line.as_bytes(), source));
    }
}

#[test]
fn rejects_malformed_lines() {
    for line in [
        "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\rX",
        "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443 \r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443 1\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 56324\r\n",
        "PROXY TCP4  192.0.2.1 198.51.100.2 56324 443\r\n",
        "PROXY  TCP4 192.0.2.1 198.51.100.2 56324 443\r\n",
        "PROXY TCP4\t192.0.2.1 198.51.100.2 56324 443\r\n",
        "PROXY TCP4 192.0.2.01 198.51.100.2 56324 443\r\n",
        "PROXY TCP4 192.0.2.256 198.51.100.2 56324 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100 56324 443\r\n",
        "PROXY TCP4 2001:db8::1 ::1 1024 80\r\n",
        "PROXY TCP6 192.0.2.1 198.51.100.2 56324 443\r\n",
        "PROXY TCP6 2001:db8::1 198.51.100.2 56324 443\r\n",
        "PROXY TCP6 fe80::1%1 ::1 1024 80\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 056 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 +56 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 -1 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2  443\r\n",
        "PROXY tcp4 192.0.2.1 198.51.100.2 56324 443\r\n",
        "PROXY UDP4 192.0.2.1 198.51.100.2 56324 443\r\n",
        "PROXY UNKNOWNS\r\n",
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 192.0.2.1\0",
        "PROXY UNKNOWN \u{e4}\r\n",
    ] {
        assert_parsed(line.as_bytes(), &Err(Malformed));
    }
}

#[test]
fn a_connection_without_a_header_is_recognized_by_its_first_bytes() {
    for (input, decided) in [
        ("GET / HTTP/1.1\r\n", 1),
        ("POST / HTTP/1.1\r\n", 2),
        ("PROPFIND / HTTP/1.1\r\n", 4),
        ("PROXY/1", 6),
        ("PROXY\r\n", 6),
        ("proxy TCP4", 1),
        (" PROXY TCP4", 1),
        ("\r\nPROXY TCP4", 3),
        ("\r\n\r\nGET / HTTP/1.1\r\n", 5),
        ("\r\n\r\n\0\r\nQUIT\r", 12),
        ("\x16\x03\x01", 1),
    ] {
        assert_parsed(input.as_bytes(), &Err(Missing));
        let first = (1..=input.len()).find(|len| parse(&input.as_bytes()[..*len]).is_err());
        assert_eq!(first, Some(decided), "{input:?}");
    }
    assert_parsed(b"", &Ok(Partial));
}

#[test]
fn limits_the_length_of_a_line() {
    let line =
        |len: usize| format!("PROXY UNKNOWN{}\r\n", " ".repeat(len - "PROXY UNKNOWN\r\n".len())).into_bytes();
    assert_parsed(&line(PROXY_LINE_BYTES_MAX), &complete(&line(PROXY_LINE_BYTES_MAX), ""));
    assert_parsed(&line(PROXY_LINE_BYTES_MAX + 1), &Err(TooLarge));
    assert_parsed(&[b"PROXY ", &[b'x'; 1000][..]].concat(), &Err(TooLarge));
}

#[test]
fn parses_binary_headers() {
    let values = [0x04, 0, 3, b'a', b'b', b'c'];
    for (header, source) in [
        (binary(0x21, 0x11, &V4), "192.0.2.1:56260"),
        (binary(0x21, 0x12, &V4), "192.0.2.1:56260"),
        (binary(0x21, 0x11, &[&V4[..], &values].concat()), "192.0.2.1:56260"),
        (binary(0x21, 0x21, &v6()), "[2001::7]:1024"),
        (binary(0x21, 0x22, &[&v6()[..], &values].concat()), "[2001::7]:1024"),
        (binary(0x21, 0x31, &[b'/'; 216]), ""),
        (binary(0x21, 0x32, &[b'/'; 300]), ""),
        (binary(0x21, 0x00, &[]), ""),
        (binary(0x21, 0x00, &V4), ""),
        (binary(0x21, 0x10, &V4), ""),
        (binary(0x21, 0x01, &V4), ""),
        // The proxy's own connections: family and addresses are ignored.
        (binary(0x20, 0x00, &[]), ""),
        (binary(0x20, 0x11, &V4), ""),
        (binary(0x20, 0xFF, &[9; 5]), ""),
        // Further values aren't parsed: they only have a length.
        (binary(0x21, 0x11, &[&V4[..], &[0xFF; 40]].concat()), "192.0.2.1:56260"),
    ] {
        assert_parsed(&header, &complete(&header, source));
    }
}

/// Values: those of TLS have a type, bits, the result of a check and further values within.
#[test]
fn reads_that_the_client_has_connected_by_tls() {
    let by_tls = [0x20, 0, 13, 0x01, 0, 0, 0, 0, 0x21, 0, 5, b'T', b'L', b'S', b'v', b'1'];
    let other = [0x04, 0, 1, 0];
    for (command, values, is_secure) in [
        (0x21, &by_tls[..], true),
        (0x21, &[&other[..], &by_tls].concat(), true),
        (0x21, &[&by_tls[..], &other].concat(), true),
        (0x21, &[0x20, 0, 1, 0x07], true),
        (0x21, &[0x20, 0, 1, 0x06], false),
        (0x21, &[0x20, 0, 0], false),
        (0x21, &[&[0x20, 0, 1, 0][..], &by_tls].concat(), false),
        (0x21, &[&[0x04, 0xFF, 0xFF][..], &by_tls].concat(), false),
        (0x21, &by_tls[..15], false),
        (0x21, &[0x20, 0], false),
        (0x20, &by_tls, false),
    ] {
        let header = binary(command, 0x11, &[&V4[..], values].concat());
        let Ok(Complete { is_secure: found, .. }) = parse(&header) else { panic!("{values:?}") };
        assert_eq!(found, is_secure, "{command} {values:?}");
    }
}

#[test]
fn rejects_malformed_binary_headers() {
    for header in [
        binary(0x11, 0x11, &V4),
        binary(0x31, 0x11, &V4),
        binary(0x22, 0x11, &V4),
        binary(0x2F, 0x11, &V4),
        binary(0x01, 0x11, &V4),
        binary(0x21, 0x41, &V4),
        binary(0x21, 0x13, &V4),
        binary(0x21, 0xF0, &V4),
        binary(0x21, 0x11, &V4[..11]),
        binary(0x21, 0x11, &[]),
        binary(0x21, 0x21, &v6()[..35]),
        binary(0x21, 0x21, &V4),
        binary(0x21, 0x31, &[b'/'; 215]),
    ] {
        assert_parsed(&header, &Err(Malformed));
    }
}

#[test]
fn limits_the_length_of_a_binary_header() {
    let header = |len: usize| binary(0x21, 0x11, &[&V4[..], &vec![1; len - 16 - V4.len()]].concat());
    let largest = header(PROXY_HEADER_BYTES_MAX);
    assert_parsed(&largest, &complete(&largest, "192.0.2.1:56260"));
    let larger = header(PROXY_HEADER_BYTES_MAX + 1);
    assert_parsed(&larger, &Err(TooLarge));
    assert_eq!(parse(&larger[..16]), Err(TooLarge), "known from its length, before it is received");
    assert_parsed(&binary(0x20, 0x00, &vec![0; 65_535]), &Err(TooLarge));
}

/// Any address comes through either version as it was written.
#[test]
fn generated_headers_have_their_addresses() {
    let mut random = fastrand::Rng::with_seed(24);
    for _ in 0..2000 {
        let ip = |random: &mut fastrand::Rng, is_v4: bool| match is_v4 {
            true => IpAddr::from(random.u32(..).to_be_bytes()),
            // Zeros have a form of their own.
            false => IpAddr::from((random.u128(..) & random.u128(..) & random.u128(..)).to_be_bytes()),
        };
        let is_v4 = random.bool();
        let (source, destination) = (ip(&mut random, is_v4), ip(&mut random, is_v4));
        let ports = [random.u16(..) >> random.u8(..16), random.u16(..)];
        let expected = SocketAddr::new(source, ports[0]).to_string();
        let family = if is_v4 { "TCP4" } else { "TCP6" };
        let line = format!("PROXY {family} {source} {destination} {} {}\r\n", ports[0], ports[1]);
        assert_parsed(line.as_bytes(), &complete(line.as_bytes(), &expected));
        let octets = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let ports = [ports[0].to_be_bytes(), ports[1].to_be_bytes()].concat();
        let values = vec![random.u8(..); random.usize(..30)];
        let rest = [octets(source), octets(destination), ports, values].concat();
        let header = binary(0x21, if is_v4 { 0x11 } else { 0x21 }, &rest);
        assert_parsed(&header, &complete(&header, &expected));
    }
}
