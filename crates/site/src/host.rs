//! Names of hosts: as clients send them, and as sites have them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::limits::HOST_BYTES_MAX;

/// Bytes of one label (RFC 1035 section 2.3.4).
const LABEL_BYTES: usize = 63;

/// A host as a request names it, without port and without a dot at the end.
#[inline]
pub(crate) fn bare(host: &[u8]) -> &[u8] {
    let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = &host[..host.len() - digits];
    let name = before.strip_suffix(b":").unwrap_or(host);
    name.strip_suffix(b".").unwrap_or(name)
}

/// The hosts that a site names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pattern<'a> {
    /// This one.
    Exact(&'a str),
    /// Each with labels in front of this.
    Beneath(&'a str),
}

/// Reads a host of a site.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn pattern(text: &str) -> Result<Pattern<'_>, String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.len() > HOST_BYTES_MAX {
        return Err(format!("a host has {HOST_BYTES_MAX} bytes at most"));
    }
    if let Some(literal) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return match literal.parse::<Ipv6Addr>() {
            Ok(_) => Ok(Pattern::Exact(name)),
            Err(_) => Err("there is no IPv6 address in the brackets".to_owned()),
        };
    }
    match name.strip_prefix("*.") {
        Some(rest) => check_labels(rest).map(|()| Pattern::Beneath(rest)),
        None => check_labels(name).map(|()| Pattern::Exact(name)),
    }
}

fn check_labels(name: &str) -> Result<(), String> {
    if name.parse::<Ipv4Addr>().is_ok() {
        return Ok(());
    }
    if name.contains(':') {
        return Err("a host is named without its port, and an IPv6 address in brackets".to_owned());
    }
    if name.contains('*') {
        return Err("a star stands at the start, alone, with a dot behind it".to_owned());
    }
    if !name.is_ascii() {
        return Err("write it as it is sent, in ASCII (xn--…)".to_owned());
    }
    let is_label = |label: &str| {
        let may_be = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=LABEL_BYTES).contains(&label.len()) && label.bytes().all(may_be)
    };
    match name.split('.').all(is_label) {
        true => Ok(()),
        false => {
            Err("a host is made of labels of 1 to 63 letters, digits, - and _, with dots between them"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pattern, bare, pattern};

    #[test]
    fn port_and_last_dot_are_no_part_of_the_name() {
        for (host, name) in [
            ("example.org", "example.org"),
            ("example.org.", "example.org"),
            ("example.org:80", "example.org"),
            ("example.org:", "example.org"),
            ("example.org.:8080", "example.org"),
            ("host1", "host1"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]"),
            ("[::1:80]", "[::1:80]"),
            ("", ""),
            (".", ""),
            ("80", "80"),
            (":80", ""),
        ] {
            assert_eq!(bare(host.as_bytes()), name.as_bytes(), "{host}");
        }
    }

    #[test]
    fn hosts_of_sites_are_names_addresses_and_stars() {
        for text in
            ["example.org", "EXAMPLE.org.", "localhost", "a_b.x", "127.0.0.1", "[::1]", "xn--bcher-kva.de"]
        {
            let name = text.strip_suffix('.').unwrap_or(text);
            assert_eq!(pattern(text), Ok(Pattern::Exact(name)), "{text}");
        }
        assert_eq!(pattern("*.example.org"), Ok(Pattern::Beneath("example.org")));
        assert_eq!(pattern("*.org"), Ok(Pattern::Beneath("org")));
        let long = "a.".repeat(130) + "b";
        let label = "a".repeat(64);
        for (text, why) in [
            ("", "labels"),
            ("*", "star"),
            ("*.", "star"),
            ("*.*.org", "star"),
            ("a*.org", "star"),
            ("*example.org", "star"),
            ("a..b", "labels"),
            (".org", "labels"),
            ("a b", "labels"),
            ("example.org:80", "without its port"),
            ("::1", "in brackets"),
            ("[::1", "without its port"),
            ("[x]", "brackets"),
            ("bücher.de", "xn--"),
            ("http://a", "without its port"),
            ("a/b", "labels"),
            (long.as_str(), "253"),
            (label.as_str(), "63"),
        ] {
            let error = pattern(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
