//! The path of a route: `/a` for this very path, `/a/*` for it and all beneath it.

use shearwater_files::resolve::{BadPath, resolve};

use crate::limits::ROUTE_SEGMENTS_MAX;

/// The paths that a route has, by the names that files are looked up by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// This one; a directory's ends with a slash, and the root's is empty.
    Exact(Vec<u8>),
    /// This one without a slash at the end, and all beneath it.
    Beneath(Vec<u8>),
}

impl Pattern {
    /// Reads the path of a route.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let is_beneath = text.ends_with("/*");
        let path = if is_beneath { &text[..text.len() - 1] } else { text };
        if !text.starts_with('/') {
            return Err("it does not begin with a slash".to_owned());
        }
        if let Some(sign) = path.chars().find(|sign| matches!(sign, '*' | '?' | '#')) {
            return Err(wrong_sign(sign));
        }
        let mut name = Vec::new();
        resolve(path, &mut name).map_err(why)?;
        if !is_beneath {
            return Ok(Self::Exact(name));
        }
        name.truncate(name.len() - usize::from(name.ends_with(b"/")));
        match segments(&name) {
            0..=ROUTE_SEGMENTS_MAX => Ok(Self::Beneath(name)),
            _ => Err(format!("a route for all beneath a path has {ROUTE_SEGMENTS_MAX} segments at most")),
        }
    }
}

/// Segments of a name without a slash at its end.
pub(crate) fn segments(name: &[u8]) -> usize {
    if name.is_empty() { 0 } else { 1 + name.iter().filter(|&&byte| byte == b'/').count() }
}

fn wrong_sign(sign: char) -> String {
    match sign {
        '*' => "a star stands at the end, alone, behind a slash (a real one is written %2A)".to_owned(),
        _ => format!("a route is a path: {sign} is no part of it (a real one is written %{:X})", sign as u32),
    }
}

fn why(bad: BadPath) -> String {
    match bad {
        BadPath::Escape => "a percent sign is followed by two hexadecimal digits (a real one is written %25)",
        BadPath::Dots => "no request has a path with . or .. in it",
        BadPath::NoName => "no request's path has a slash or a NUL within a segment",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use crate::limits::ROUTE_SEGMENTS_MAX;

    #[test]
    fn paths_are_read_as_those_of_requests() {
        let exact = |name: &str| Ok(Pattern::Exact(name.into()));
        let beneath = |name: &str| Ok(Pattern::Beneath(name.into()));
        for (text, pattern) in [
            ("/", exact("")),
            ("/a", exact("a")),
            ("/a/", exact("a/")),
            ("//a///%62", exact("a/b")),
            ("/a%2Ab", exact("a*b")),
            ("/caf\u{e9}", exact("caf\u{e9}")),
            ("/*", beneath("")),
            ("/a/*", beneath("a")),
            ("/a/b//*", beneath("a/b")),
        ] {
            assert_eq!(Pattern::parse(text), pattern, "{text}");
        }
    }

    #[test]
    fn what_no_request_can_have_is_refused() {
        for (text, why) in [
            ("", "begin with a slash"),
            ("a", "begin with a slash"),
            ("*", "begin with a slash"),
            ("/a*", "alone, behind a slash"),
            ("/*/a", "alone, behind a slash"),
            ("/a/**", "alone, behind a slash"),
            ("/a?b=c", "no part of it"),
            ("/a#b", "%23"),
            ("/a/../b", ".."),
            ("/%2e/*", "."),
            ("/a%2fb", "within a segment"),
            ("/100%", "%25"),
        ] {
            let error = Pattern::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_route_beneath_has_so_many_segments() {
        assert!(Pattern::parse(&format!("{}/*", "/a".repeat(ROUTE_SEGMENTS_MAX))).is_ok());
        assert!(Pattern::parse(&format!("{}/*", "/a".repeat(ROUTE_SEGMENTS_MAX + 1))).is_err());
        assert!(Pattern::parse(&"/a".repeat(ROUTE_SEGMENTS_MAX + 1)).is_ok());
    }
}
