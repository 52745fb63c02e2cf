//! Paths of routes: exact or with parameters, prefixes, other routers' syntax, normalization.

/// A parsed path of a route.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// A path without parameters, as requests send it.
    Exact(String),
    /// A path with parameters.
    Pattern,
}

/// Parses a route's path: `{name}` and `{*name}` are parameters, `{{` and `}}` are braces.
///
/// # Errors
/// The reason why no request can have this path.
pub(crate) fn read(path: &str) -> Result<Path, String> {
    if let Some((why, right)) = corrected(path) {
        return Err(format!("{why}; help: write {right:?}"));
    }
    check(path)?;
    let mut exact = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(brace) = rest.find(['{', '}']) {
        let doubled = &rest[brace..];
        if !doubled.starts_with("{{") && !doubled.starts_with("}}") {
            return Ok(Path::Pattern);
        }
        exact.push_str(&rest[..=brace]);
        rest = &doubled[2..];
    }
    exact.push_str(rest);
    Ok(Path::Exact(exact))
}

/// Returns a parameter name that occurs twice in a pattern.
pub(crate) fn repeated_name(pattern: &str) -> Option<&str> {
    let plain = |text: &&str| !text.is_empty();
    let names: Vec<_> = pattern.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
    let names: Vec<_> = names.into_iter().map(|name| name.trim_start_matches('*')).filter(plain).collect();
    let repeated = names.iter().enumerate().find(|(number, name)| names[..*number].contains(name));
    repeated.map(|(_, name)| *name)
}

/// Parses the prefix of a scope or a mount; `/` becomes the empty one.
///
/// # Errors
/// The reason why no path can have this prefix.
pub(crate) fn prefix(path: &str) -> Result<String, String> {
    let without_rest = without_rest(path);
    let plain = without_rest.unwrap_or(path);
    if plain.contains(['{', '}']) || corrected(plain).is_some() {
        return Err("a prefix can't have parameters".to_owned());
    }
    if let Some(right) = without_rest {
        return Err(format!("a prefix includes all paths under it; help: write {right:?}"));
    }
    check(path)?;
    let prefix = path.strip_suffix('/').unwrap_or(path);
    match prefix {
        _ if prefix.ends_with('/') => Err("a prefix can't end with two slashes".to_owned()),
        _ => Ok(prefix.to_owned()),
    }
}

/// Returns a prefix without its trailing `*rest` or `{*rest}`.
fn without_rest(path: &str) -> Option<&str> {
    let (prefix, last) = path.rsplit_once('/')?;
    let is_rest = last.starts_with('*') || (last.starts_with("{*") && last.ends_with('}'));
    is_rest.then_some(if prefix.is_empty() { "/" } else { prefix })
}

/// Returns true if a path is the prefix itself or under it.
#[inline]
pub(crate) fn covers(prefix: &str, path: &[u8]) -> bool {
    path.strip_prefix(prefix.as_bytes())
        .is_some_and(|rest| prefix.is_empty() || matches!(rest, [] | [b'/', ..]))
}

fn check(path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err("a path must begin with a slash".to_owned());
    }
    let invalid = path.chars().find(|&letter| !letter.is_ascii_graphic() || matches!(letter, '#' | '?'));
    match invalid {
        Some(letter) => {
            Err(format!("{letter:?} can't occur in a request's path; help: write it percent-encoded"))
        }
        None => Ok(()),
    }
}

const BRACES: &str = "a parameter is written {name}";
const ALL: &str = "a parameter for the rest of the path is written {*name}";
const PATTERN: &str = "a parameter can't have a pattern";
const OPTIONAL: &str = "a parameter can't be optional: add a route for each path";

/// A parameter in the syntax of another router.
struct ForeignParameter<'a> {
    why: &'static str,
    /// The name; may be empty.
    name: &'a str,
    /// True if it matches the rest of the path.
    is_all: bool,
}

impl<'a> ForeignParameter<'a> {
    fn one(why: &'static str, name: &'a str) -> Option<Self> {
        Some(Self { why, name, is_all: false })
    }

    fn all(name: &'a str) -> Option<Self> {
        Some(Self { why: ALL, name, is_all: true })
    }

    fn append(&self, path: &mut String) {
        let (star, name) = if self.is_all { ("*", "rest") } else { ("", "name") };
        let name = if self.name.is_empty() { name } else { self.name };
        path.push_str(&format!("{{{star}{name}}}"));
    }
}

/// Returns the mistake in a route's path that uses another router's syntax, and the corrected path.
pub(crate) fn corrected(path: &str) -> Option<(&'static str, String)> {
    let (mut right, mut why) = (String::new(), None);
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let is_first = right.ends_with('/');
        let (found, len) = match first {
            ':' | '*' | '<' if is_first => whole_segment(rest),
            '{' | '}' if rest[1..].starts_with(first) => (None, 2),
            '{' => in_braces(rest),
            _ => (None, first.len_utf8()),
        };
        match found {
            Some(parameter) => {
                parameter.append(&mut right);
                why = why.or(Some(parameter.why));
            }
            None => right.push_str(&rest[..len]),
        }
        rest = &rest[len..];
    }
    Some((why?, right))
}

/// Parses a parameter that is a whole segment: `:name`, `*name`, `<name>`. Returns it with the segment's length.
fn whole_segment(rest: &str) -> (Option<ForeignParameter<'_>>, usize) {
    let segment = rest.split('/').next().unwrap_or_default();
    let inner = &segment[1..];
    let name_len =
        inner.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(inner.len());
    let (name, tail) = inner.split_at(name_len);
    let found = match (&segment[..1], tail) {
        (":", _) if name.is_empty() => None,
        (":", "") => ForeignParameter::one(BRACES, name),
        (":", "?") => ForeignParameter::one(OPTIONAL, name),
        (":", "*" | "+") => ForeignParameter::all(name),
        (":", _) if tail.starts_with('(') => ForeignParameter::one(PATTERN, name),
        ("*", "" | "*") => ForeignParameter::all(name),
        (":" | "*", _) => return (ForeignParameter::one(BRACES, name), 1 + name_len),
        _ => inner.strip_suffix('>').and_then(in_angles),
    };
    (found, segment.len())
}

/// Parses a parameter between `<` and `>`: `name`, `name..` or `kind:name`.
fn in_angles(inner: &str) -> Option<ForeignParameter<'_>> {
    match inner.split_once(':') {
        Some(("path", name)) => ForeignParameter::all(name),
        Some((_, name)) => ForeignParameter::one(BRACES, name),
        None => match inner.strip_suffix("..") {
            Some(name) => ForeignParameter::all(name),
            None => ForeignParameter::one(BRACES, inner),
        },
    }
}

/// Parses a parameter in braces. Returns it, if it needs correction, with its length including the braces.
fn in_braces(rest: &str) -> (Option<ForeignParameter<'_>>, usize) {
    let mut depth = 0;
    let end = rest.find(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        depth == 0
    });
    // Without a closing brace the whole path is rejected.
    let Some(end) = end else { return (None, rest.len()) };
    let written = &rest[1..end];
    let inner = written.trim();
    let (bare, is_optional) = inner.strip_suffix('?').map_or((inner, false), |bare| (bare, true));
    let name = bare.trim_start_matches(['*', '.']).trim_end_matches(['*', '.']);
    let is_all = name != bare;
    let found = match name.split_once(':') {
        _ if is_optional => ForeignParameter::one(OPTIONAL, name),
        Some((name, _)) => ForeignParameter::one(PATTERN, name),
        None if is_all && (name.is_empty() || written.strip_prefix('*') != Some(name)) => {
            ForeignParameter::all(name)
        }
        None if !is_all && (name.is_empty() || name != written) => ForeignParameter::one(BRACES, name),
        None => None,
    };
    (found, end + 1)
}

/// Decodes percent-encoding once and resolves `.`, `..` and empty segments (RFC 3986 section 6.2.2).
///
/// Returns `None` if that changes nothing, as for most paths.
pub(crate) fn normal(path: &[u8]) -> Option<Vec<u8>> {
    needs_normalization(path).then(|| normalized(path, Parents::Resolve))
}

/// Treatment of `..` segments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parents {
    Resolve,
    Keep,
}

/// Normalizes a path like [`normal`], but may keep its `..` segments.
pub(crate) fn normalized(path: &[u8], parents: Parents) -> Vec<u8> {
    let decoded = decoded(path);
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|&byte| byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." if parents == Parents::Resolve => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    segments.iter().flat_map(|segment| [&b"/"[..], segment]).flatten().copied().collect()
}

/// Returns true if anything is percent-encoded, or a segment is empty or begins with a dot.
fn needs_normalization(path: &[u8]) -> bool {
    let mut needs_normalization = false;
    let mut is_start = false;
    for &byte in path {
        needs_normalization |= byte == b'%' || is_start && matches!(byte, b'/' | b'.');
        is_start = byte == b'/';
    }
    needs_normalization
}

/// Decodes percent-encoding; invalid sequences stay as they are.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        let encoded = tail.split_at_checked(2).filter(|_| *byte == b'%');
        let encoded = encoded.and_then(|(digits, tail)| Some((value(digits)?, tail)));
        let (decoded, tail) = encoded.unwrap_or((*byte, tail));
        bytes.push(decoded);
        rest = tail;
    }
    bytes
}

/// Returns the value of hexadecimal digits.
fn value(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)? as u8))
}

#[cfg(test)]
mod tests {
    use super::{Path, covers, normal, prefix, read};

    #[test]
    fn tells_exact_paths_from_patterns() {
        for (path, exact) in [
            ("/", Some("/")),
            ("/a/b", Some("/a/b")),
            ("/a%20b", Some("/a%20b")),
            ("/{{a}}", Some("/{a}")),
            ("/{{{{", Some("/{{")),
            ("/{a}", None),
            ("/{{{a}", None),
            ("/a}", None),
        ] {
            let expected = exact.map_or(Path::Pattern, |exact| Path::Exact(exact.to_owned()));
            assert_eq!(read(path), Ok(expected), "{path}");
        }
        for path in ["", "a", "*", "/a b", "/a?b", "/a#b", "/ü", "/\n"] {
            assert!(read(path).is_err(), "{path}");
        }
    }

    #[test]
    fn prefixes_cover_whole_segments() {
        for (given, expected) in [("/", ""), ("/a", "/a"), ("/a/", "/a"), ("/a/b", "/a/b")] {
            assert_eq!(prefix(given).as_deref(), Ok(expected));
        }
        for given in ["", "a", "/a//", "/{x}", "/a b"] {
            assert!(prefix(given).is_err(), "{given}");
        }
        for (prefix, path, is_covered) in [
            ("", "/", true),
            ("", "*", true),
            ("/a", "/a", true),
            ("/a", "/a/", true),
            ("/a", "/a/b", true),
            ("/a", "/ab", false),
            ("/a", "/", false),
            ("/a", "/A", false),
        ] {
            assert_eq!(covers(prefix, path.as_bytes()), is_covered, "{prefix} {path}");
        }
    }

    #[test]
    fn normalizes_paths() {
        for (written, path) in [
            ("/%61pi/x", "/api/x"),
            ("//api", "/api"),
            ("/api//x", "/api/x"),
            ("/./api", "/api"),
            ("/x/../api", "/api"),
            ("/../api", "/api"),
            ("/x/%2e%2E/api", "/api"),
            ("/api%2Fx", "/api/x"),
            ("/%2561pi", "/%61pi"),
            ("/%zz/%", "/%zz/%"),
            ("/.well-known/x", "/.well-known/x"),
            ("/a/..", ""),
        ] {
            assert_eq!(normal(written.as_bytes()).as_deref(), Some(path.as_bytes()), "{written}");
        }
        for plain in ["", "*", "/", "/api/x", "/api/", "/a.b/c..d"] {
            assert_eq!(normal(plain.as_bytes()), None, "{plain}");
        }
    }
}
