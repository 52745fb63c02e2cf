//! Which site a request is for.

use crate::hash::Case;
use crate::host::{Pattern, bare};
use crate::limits::HOST_BYTES_MAX;
use crate::table::Table;

/// Sites, by number, by the hosts that they have.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    exact: Table,
    beneath: Table,
    default: u32,
}

impl Hosts {
    pub(crate) fn new() -> Self {
        Self { exact: Table::new(Case::Same), beneath: Table::new(Case::Same), default: 0 }
    }

    /// The site for hosts that none has. Unless it is said, the first.
    pub(crate) const fn set_default(&mut self, site: u32) {
        self.default = site;
    }

    /// Gives a host to a site; gives the site that has it already, if there is one.
    pub(crate) fn insert(&mut self, host: &Pattern<'_>, site: u32) -> Option<u32> {
        match host {
            Pattern::Exact(name) => self.exact.insert(name.as_bytes(), site),
            Pattern::Beneath(name) => self.beneath.insert(name.as_bytes(), site),
        }
    }

    /// The site for a host as it is sent: with or without a port, in any case.
    #[inline]
    pub(crate) fn find(&self, host: &[u8]) -> u32 {
        if self.exact.is_empty() && self.beneath.is_empty() {
            return self.default;
        }
        let name = bare(host);
        if name.len() > HOST_BYTES_MAX {
            return self.default;
        }
        if let Some(site) = self.exact.get(name) {
            return site;
        }
        if self.beneath.is_empty() { self.default } else { self.find_beneath(name) }
    }

    /// Behind each dot there may be the rest that a star stands before: the longest one is the first.
    fn find_beneath(&self, name: &[u8]) -> u32 {
        let dots = name.iter().enumerate().skip(1).filter(|&(_, &byte)| byte == b'.');
        let rests = dots.map(|(at, _)| &name[at + 1..]);
        let mut may_be = rests.filter(|rest| self.beneath.may_have(rest.len()));
        may_be.find_map(|rest| self.beneath.get(rest)).unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::Hosts;
    use crate::host::pattern;
    use crate::limits::HOST_BYTES_MAX;

    fn hosts(names: &[&str]) -> Hosts {
        let mut hosts = Hosts::new();
        for (site, name) in names.iter().enumerate() {
            assert_eq!(hosts.insert(&pattern(name).expect("a host"), site as u32 + 1), None);
        }
        hosts
    }

    #[test]
    fn the_host_itself_goes_before_a_star_and_the_longer_one_before_the_shorter() {
        let mut hosts =
            hosts(&["example.org", "*.example.org", "*.a.example.org", "x.a.example.org", "[::1]"]);
        for (host, site) in [
            ("example.org", 1),
            ("EXAMPLE.Org.:8080", 1),
            ("b.example.org", 2),
            ("c.b.example.org", 2),
            ("a.example.org", 2),
            ("b.A.example.ORG:1", 3),
            ("c.b.a.example.org", 3),
            ("x.a.example.org", 4),
            ("y.x.a.example.org", 3),
            ("[::1]:80", 5),
            ("xexample.org", 0),
            (".example.org", 0),
            ("example.org.evil", 0),
            ("org", 0),
            ("", 0),
        ] {
            assert_eq!(hosts.find(host.as_bytes()), site, "{host}");
        }
        hosts.set_default(9);
        assert_eq!(hosts.find(b"other"), 9);
        assert_eq!(hosts.insert(&pattern("EXAMPLE.org").expect("a host"), 7), Some(1));
        assert_eq!(hosts.insert(&pattern("*.EXAMPLE.org").expect("a host"), 7), Some(2));
    }

    #[test]
    fn a_host_that_is_too_long_is_of_no_site() {
        let hosts = hosts(&["*.example.org"]);
        let host =
            |len: usize| "a.".repeat(200)[400 - (len - "xexample.org".len())..].to_owned() + "xexample.org";
        let beneath = |len: usize| host(len).replace("xexample", ".example").replace("..", "a.");
        assert_eq!(beneath(HOST_BYTES_MAX).len(), HOST_BYTES_MAX);
        assert_eq!(hosts.find(beneath(HOST_BYTES_MAX).as_bytes()), 1);
        assert_eq!(hosts.find(beneath(HOST_BYTES_MAX + 1).as_bytes()), 0);
    }
}
