//! Parameters in the syntax of other routers, and their correction.

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
