//! Routes: paths and prefixes, and the table that finds the most specific one.
//!
//! Paths are compared as the names that files are looked up by, so that no other spelling of a path avoids its route.

use shearwater_files::resolve::path::{BadPath, resolve_setting};

use crate::limits::ROUTE_SEGMENTS_MAX;
use crate::options::{InvalidValue, invalid};
use crate::table::{LetterCase, TextTable};

/// A path or prefix, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathPattern {
    /// This path. A folder's ends with a slash; the root's is empty.
    Exact(Vec<u8>),
    /// This path without a final slash, and everything beneath it.
    Beneath(Vec<u8>),
}

impl PathPattern {
    /// Parses `/path` or `/prefix/*`.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidValue> {
        if let Some(prefix) = parameter(text) {
            let help = format!("{prefix:?} matches everything beneath it");
            return Err(invalid("paths can't have parameters", help));
        }
        let is_beneath = text.ends_with("/*");
        let path = if is_beneath { &text[..text.len() - 1] } else { text };
        if !text.starts_with('/') {
            return Err(invalid("path doesn't start with `/`", ""));
        }
        if path.contains('*') {
            let help =
                "`*` stands for everything beneath a path: \"/assets/*\"; a literal star is written %2A";
            return Err(invalid("misplaced `*` in a path", help));
        }
        if path.contains(['?', '#']) {
            return Err(invalid(
                "path with a query or fragment",
                "a literal ? is written %3F, a literal # %23",
            ));
        }
        if path.contains("//") {
            return Err(invalid("path with an empty segment", "write one slash between segments"));
        }
        if path.chars().any(char::is_control) {
            return Err(invalid("path with a control character", ""));
        }
        let mut name = Vec::new();
        resolve_setting(path, &mut name).map_err(bad_path)?;
        if !is_beneath {
            return Ok(Self::Exact(name));
        }
        name.truncate(name.len() - usize::from(name.ends_with(b"/")));
        match segments(&name) {
            0..=ROUTE_SEGMENTS_MAX => Ok(Self::Beneath(name)),
            _ => Err(invalid(format!("prefix with more than {ROUTE_SEGMENTS_MAX} segments"), "")),
        }
    }
}

/// Returns the number of segments of a name without a final slash.
pub(crate) fn segments(name: &[u8]) -> usize {
    if name.is_empty() { 0 } else { 1 + name.iter().filter(|&&byte| byte == b'/').count() }
}

/// Returns the prefix to suggest for a path with a parameter (`/user/{id}`: `/user/*`).
fn parameter(path: &str) -> Option<String> {
    let is_between = |segment: &str, open, close| {
        segment.split_once(open).is_some_and(|(_, behind): (&str, &str)| behind.contains(close))
    };
    let is_parameter = |segment: &str| {
        let name = segment.strip_prefix(':').filter(|name| name.starts_with(char::is_alphabetic));
        name.is_some() || is_between(segment, '{', '}') || is_between(segment, '<', '>')
    };
    let before: Vec<_> = path.split('/').take_while(|segment| !is_parameter(segment)).collect();
    (before.len() < path.split('/').count()).then(|| format!("{}/*", before.join("/")))
}

/// Returns the error for a path that can't be resolved.
pub(crate) fn bad_path(bad: BadPath) -> InvalidValue {
    match bad {
        BadPath::Escape => invalid("`%` without two hexadecimal digits", "a literal % is written %25"),
        BadPath::Dots => invalid("path with . or .. in it", "write the path without them"),
        BadPath::NoName => invalid("path with an encoded slash or a NUL", ""),
    }
}

/// Table of routes of a site, by path.
#[derive(Debug, Clone)]
pub struct RouteTable {
    exact: TextTable,
    beneath: TextTable,
    /// A bit for each number of segments that a prefix has.
    depths: u64,
    /// The route of the prefix `/*`.
    root: u32,
}

impl RouteTable {
    /// Returns a table without routes, in which every path has the route `root`.
    #[must_use]
    pub fn new(root: u32) -> Self {
        Self {
            exact: TextTable::new(LetterCase::Differs),
            beneath: TextTable::new(LetterCase::Differs),
            depths: 0,
            root,
        }
    }

    /// Adds a route. Returns the one that has this path already and changes nothing, if there is one.
    pub(crate) fn insert(&mut self, pattern: &PathPattern, route: u32) -> Option<u32> {
        match pattern {
            PathPattern::Exact(name) => self.exact.insert(name, route),
            PathPattern::Beneath(name) => {
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
    /// The path is invalid, or has a route already.
    pub fn add(&mut self, path: &str, route: u32) -> Result<(), String> {
        let pattern = PathPattern::parse(path).map_err(|invalid| invalid.message)?;
        match self.insert(&pattern, route) {
            Some(known) => Err(format!("duplicate path of route {known}")),
            None => Ok(()),
        }
    }

    /// Returns the route of a name.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &[u8]) -> u32 {
        if self.exact.may_have(name.len())
            && let Some(route) = self.exact.get(name)
        {
            return route;
        }
        // The bit of the root needs no lookup.
        if self.depths > 1 { self.find_beneath(name) } else { self.root }
    }

    /// Looks up the prefix at the end of each segment; the last match is the longest.
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
    use super::{PathPattern, RouteTable};
    use crate::limits::ROUTE_SEGMENTS_MAX;

    #[test]
    fn finds_the_root_without_routes() {
        let mut routes = RouteTable::new(7);
        assert_eq!(routes.find(b""), 7);
        assert_eq!(routes.find(b"a/b"), 7);
        routes.add("/a/*", 1).expect("a route");
        assert_eq!((routes.find(b"a/b"), routes.find(b"b"), routes.find(b"")), (1, 7, 7));
        assert!(routes.add("/%61/*", 2).is_err());
        assert_eq!(routes.find(b"a"), 1);
    }

    #[test]
    fn parses_paths_as_names() {
        let exact = |name: &str| Ok(PathPattern::Exact(name.into()));
        let beneath = |name: &str| Ok(PathPattern::Beneath(name.into()));
        for (text, pattern) in [
            ("/", exact("")),
            ("/a", exact("a")),
            ("/a/", exact("a/")),
            ("/a/%62", exact("a/b")),
            ("/a%2Ab", exact("a*b")),
            ("/caf\u{e9}", exact("caf\u{e9}")),
            ("/*", beneath("")),
            ("/a/*", beneath("a")),
            ("/a/b/*", beneath("a/b")),
        ] {
            assert_eq!(PathPattern::parse(text), pattern, "{text}");
        }
    }

    #[test]
    fn rejects_invalid_paths() {
        for (text, why) in [
            ("", "start with `/`"),
            ("a", "start with `/`"),
            ("*", "start with `/`"),
            ("/a*", "misplaced `*`"),
            ("/*/a", "misplaced `*`"),
            ("/a/**", "misplaced `*`"),
            ("/a?b=c", "query"),
            ("/a#b", "fragment"),
            ("/a/../b", ". or .."),
            ("/%2e/*", ". or .."),
            ("/a%2fb", "encoded slash"),
            ("/100%", "hexadecimal"),
            ("//a", "empty segment"),
            ("/a\n", "control character"),
            ("/user/{id}", "parameters"),
        ] {
            let error = PathPattern::parse(text).expect_err(text);
            assert!(error.message.contains(why), "{text}: {error:?}");
        }
    }

    #[test]
    fn limits_the_segments_of_a_prefix() {
        assert!(PathPattern::parse(&format!("{}/*", "/a".repeat(ROUTE_SEGMENTS_MAX))).is_ok());
        assert!(PathPattern::parse(&format!("{}/*", "/a".repeat(ROUTE_SEGMENTS_MAX + 1))).is_err());
        assert!(PathPattern::parse(&"/a".repeat(ROUTE_SEGMENTS_MAX + 1)).is_ok());
    }

    #[test]
    fn suggests_a_prefix_for_paths_with_parameters() {
        for (path, near) in [
            ("/user/{id}", "/user/*"),
            ("/user/:id/posts", "/user/*"),
            ("/<name>", "/*"),
            ("/files/{*rest}", "/files/*"),
            ("/a/{}/*", "/a/*"),
            ("/{id}.html", "/*"),
        ] {
            let help = PathPattern::parse(path).expect_err(path).help.expect("help");
            assert_eq!(help, format!("{near:?} matches everything beneath it"));
        }
        for path in ["/a:b", "/%7Bid%7D", "/:", "/<", "/a}b{c"] {
            assert!(PathPattern::parse(path).is_ok(), "{path}");
        }
    }
}
