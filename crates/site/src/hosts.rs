//! Host names: of sites, and the table that finds the site of a request.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::limits::HOST_BYTES_MAX;
use crate::options::{InvalidValue, invalid};
use crate::table::{LetterCase, TextTable};

/// Maximum bytes of a label (RFC 1035 section 2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// Host names of a site.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HostPattern<'a> {
    /// This name.
    Exact(&'a str),
    /// All names with one or more labels before this one.
    Beneath(&'a str),
}

/// Parses a host name of a site.
pub(crate) fn parse_host(text: &str) -> Result<HostPattern<'_>, InvalidValue> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.len() > HOST_BYTES_MAX {
        return Err(invalid(format!("host name is longer than {HOST_BYTES_MAX} bytes"), ""));
    }
    if let Some(literal) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return match literal.parse::<Ipv6Addr>() {
            Ok(_) => Ok(HostPattern::Exact(name)),
            Err(_) => Err(invalid("invalid IPv6 address in brackets", "")),
        };
    }
    match name.strip_prefix("*.") {
        Some(rest) => check_labels(rest).map(|()| HostPattern::Beneath(rest)),
        None => check_labels(name).map(|()| HostPattern::Exact(name)),
    }
}

fn check_labels(name: &str) -> Result<(), InvalidValue> {
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(is_allowed)
    };
    if name.parse::<Ipv4Addr>().is_ok() || name.split('.').all(is_label) {
        return Ok(());
    }
    Err(if name.contains('/') {
        invalid("expected a host name, found a URL", "write the host name alone, such as \"example.org\"")
    } else if name.contains(':') {
        invalid("host name with a port", "a site serves all ports; write an IPv6 address in brackets")
    } else if name.contains('*') {
        invalid("misplaced `*` in a host name", "`*` stands for labels before a name: \"*.example.org\"")
    } else if !name.is_ascii() {
        invalid("host name is not ASCII", "write it as clients send it (xn--…)")
    } else {
        invalid("invalid host name", "write labels of 1 to 63 letters, digits, `-` or `_`, separated by dots")
    })
}

/// Strips the port and a final dot from the host of a request.
#[inline]
pub(crate) fn bare(host: &[u8]) -> &[u8] {
    let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = &host[..host.len() - digits];
    let name = before.strip_suffix(b":").unwrap_or(host);
    name.strip_suffix(b".").unwrap_or(name)
}

/// Table of sites by host name.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    exact: TextTable,
    beneath: TextTable,
    default: u32,
}

impl Hosts {
    pub(crate) fn new() -> Self {
        Self {
            exact: TextTable::new(LetterCase::Same),
            beneath: TextTable::new(LetterCase::Same),
            default: 0,
        }
    }

    /// Sets the site for all other hosts; by default the first one.
    pub(crate) const fn set_default(&mut self, site: u32) {
        self.default = site;
    }

    /// Adds a host of a site. Returns the site that has it already and changes nothing, if there is one.
    pub(crate) fn insert(&mut self, host: &HostPattern<'_>, site: u32) -> Option<u32> {
        match host {
            HostPattern::Exact(name) => self.exact.insert(name.as_bytes(), site),
            HostPattern::Beneath(name) => self.beneath.insert(name.as_bytes(), site),
        }
    }

    /// Returns the site for the host of a request, with or without a port, case-insensitively.
    #[inline]
    pub(crate) fn find(&self, host: &[u8]) -> u32 {
        self.find_known(host).unwrap_or(self.default)
    }

    /// Returns the site that has the host of a request among its own.
    #[inline]
    pub(crate) fn find_known(&self, host: &[u8]) -> Option<u32> {
        if self.exact.is_empty() && self.beneath.is_empty() {
            return None;
        }
        let name = bare(host);
        if name.len() > HOST_BYTES_MAX {
            return None;
        }
        if let Some(site) = self.exact.get(name) {
            return Some(site);
        }
        if self.beneath.is_empty() { None } else { self.find_beneath(name) }
    }

    /// Tries the suffix after each dot; the first match is the longest.
    fn find_beneath(&self, name: &[u8]) -> Option<u32> {
        let dots = name.iter().enumerate().skip(1).filter(|&(_, &byte)| byte == b'.');
        let rests = dots.map(|(at, _)| &name[at + 1..]);
        let mut may_be = rests.filter(|rest| self.beneath.may_have(rest.len()));
        may_be.find_map(|rest| self.beneath.get(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::{HostPattern, Hosts, bare, parse_host};
    use crate::limits::HOST_BYTES_MAX;

    #[test]
    fn an_overlong_host_gets_the_default_site() {
        let mut hosts = Hosts::new();
        assert_eq!(hosts.insert(&HostPattern::Beneath("example.org"), 1), None);
        let host =
            |len: usize| "a.".repeat(200)[400 - (len - "xexample.org".len())..].to_owned() + "xexample.org";
        let beneath = |len: usize| host(len).replace("xexample", ".example").replace("..", "a.");
        assert_eq!(beneath(HOST_BYTES_MAX).len(), HOST_BYTES_MAX);
        assert_eq!(hosts.find(beneath(HOST_BYTES_MAX).as_bytes()), 1);
        assert_eq!(hosts.find(beneath(HOST_BYTES_MAX + 1).as_bytes()), 0);
    }

    #[test]
    fn strips_port_and_final_dot() {
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
    fn parses_names_addresses_and_stars() {
        for text in
            ["example.org", "EXAMPLE.org.", "localhost", "a_b.x", "127.0.0.1", "[::1]", "xn--bcher-kva.de"]
        {
            let name = text.strip_suffix('.').unwrap_or(text);
            assert_eq!(parse_host(text), Ok(HostPattern::Exact(name)), "{text}");
        }
        assert_eq!(parse_host("*.example.org"), Ok(HostPattern::Beneath("example.org")));
        assert_eq!(parse_host("*.org"), Ok(HostPattern::Beneath("org")));
        let long = "a.".repeat(130) + "b";
        let label = "a".repeat(64);
        for (text, why) in [
            ("", "invalid host name"),
            ("*", "misplaced"),
            ("*.", "misplaced"),
            ("*.*.org", "misplaced"),
            ("a*.org", "misplaced"),
            ("*example.org", "misplaced"),
            ("a..b", "invalid host name"),
            (".org", "invalid host name"),
            ("a b", "invalid host name"),
            ("example.org:80", "with a port"),
            ("::1", "with a port"),
            ("[::1", "with a port"),
            ("[x]", "IPv6"),
            ("bücher.de", "not ASCII"),
            ("http://a", "a URL"),
            ("a/b", "a URL"),
            (long.as_str(), "253"),
            (label.as_str(), "invalid host name"),
        ] {
            let error = parse_host(text).expect_err(text);
            assert!(error.message.contains(why), "{text}: {error:?}");
        }
    }
}
