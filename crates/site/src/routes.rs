//! Which route of a site a path has: the one for this very path, else the longest that it lies beneath.
//!
//! Paths are given by the names that files are looked up by, so that no other spelling leads around a route.

use crate::hash::Case;
use crate::pattern::{Pattern, segments};
use crate::table::Table;

/// Routes of a site, by number.
#[derive(Debug, Clone)]
pub struct Routes {
    exact: Table,
    beneath: Table,
    /// Whether there are routes beneath paths of so many segments: a bit for each number.
    depths: u64,
    /// The route beneath the root.
    root: u32,
}

impl Routes {
    /// Without routes: every path has this number.
    #[must_use]
    pub fn new(root: u32) -> Self {
        Self { exact: Table::new(Case::Differs), beneath: Table::new(Case::Differs), depths: 0, root }
    }

    /// Adds a route; gives the one that has this path already, if there is one, and changes nothing then.
    pub(crate) fn insert(&mut self, pattern: &Pattern, route: u32) -> Option<u32> {
        match pattern {
            Pattern::Exact(name) => self.exact.insert(name, route),
            Pattern::Beneath(name) => {
                let known = self.beneath.insert(name, route);
                if known.is_none() {
                    self.depths |= 1 << segments(name);
                }
                if known.is_none() && name.is_empty() {
                    self.root = route;
                }
                known
            }
        }
    }

    /// Adds a route by its path, for tests and fuzzers.
    ///
    /// # Errors
    /// What is wrong with the path, or that it has a route.
    pub fn add(&mut self, path: &str, route: u32) -> Result<(), String> {
        match self.insert(&Pattern::parse(path)?, route) {
            Some(known) => Err(format!("it is that of route {known}")),
            None => Ok(()),
        }
    }

    /// The route of a name.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &[u8]) -> u32 {
        if self.exact.may_have(name.len())
            && let Some(route) = self.exact.get(name)
        {
            return route;
        }
        // The bit of the root says nothing here: it needs no look.
        if self.depths > 1 { self.find_beneath(name) } else { self.root }
    }

    /// Behind each segment there may be a route: the last one that is found is the longest. There are no more looks than depths.
    fn find_beneath(&self, name: &[u8]) -> u32 {
        let mut found = self.root;
        let mut depths = self.depths >> 1;
        let mut end = 0;
        while end < name.len() && depths != 0 {
            let segment = &name[end..];
            end += segment.iter().position(|&byte| byte == b'/').unwrap_or(segment.len());
            if !self.beneath.may_have(end) {
                break;
            }
            if depths & 1 != 0
                && let Some(route) = self.beneath.get(&name[..end])
            {
                found = route;
            }
            depths >>= 1;
            end += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Routes;

    const PATHS: [&str; 9] =
        ["/*", "/a/*", "/a/b/*", "/a/b", "/a/b/", "/", "/a/b/c/d/*", "/x%20y/*", "/index.html"];

    #[test]
    fn this_very_path_goes_first_then_the_longest() {
        let mut routes = Routes::new(99);
        for (route, path) in PATHS.iter().enumerate() {
            routes.add(path, route as u32).expect("a route");
        }
        for (name, path) in [
            ("", "/"),
            ("index.html", "/index.html"),
            ("index.htm", "/*"),
            ("index.html/", "/*"),
            ("a", "/a/*"),
            ("a/", "/a/*"),
            ("a/x", "/a/*"),
            ("ab", "/*"),
            ("ab/c", "/*"),
            ("a/b", "/a/b"),
            ("a/b/", "/a/b/"),
            ("a/b/c", "/a/b/*"),
            ("a/bc", "/a/*"),
            ("a/b/c/d", "/a/b/c/d/*"),
            ("a/b/c/d/e/f/g", "/a/b/c/d/*"),
            ("a/b/c/de", "/a/b/*"),
            ("x y", "/x%20y/*"),
            ("x%20y", "/*"),
            ("A/x", "/*"),
        ] {
            assert_eq!(PATHS[routes.find(name.as_bytes()) as usize], path, "{name}");
        }
    }

    #[test]
    fn without_a_route_it_is_the_sites_own() {
        let mut routes = Routes::new(7);
        assert_eq!(routes.find(b""), 7);
        assert_eq!(routes.find(b"a/b"), 7);
        routes.add("/a/*", 1).expect("a route");
        assert_eq!((routes.find(b"a/b"), routes.find(b"b"), routes.find(b"")), (1, 7, 7));
        assert!(routes.add("//%61//*", 2).is_err());
        assert_eq!(routes.find(b"a"), 1);
    }
}
