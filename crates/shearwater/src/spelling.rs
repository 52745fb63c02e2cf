//! Parameters as other routers write them: found, and put into the spelling of this one.

const BRACES: &str = "a parameter is written {name}";
const ALL: &str = "a parameter for the rest of the path is written {*name}";
const PATTERN: &str = "a parameter has no pattern of its own";
const OPTIONAL: &str = "a parameter is never optional: give a route for each path";

/// A parameter in another spelling.
struct Misspelt<'a> {
    why: &'static str,
    /// Its name; may be empty.
    name: &'a str,
    /// It takes the rest of the path.
    is_all: bool,
}

impl<'a> Misspelt<'a> {
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

/// Returns why a route's path is hardly meant as it is written, and the path that is.
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
            Some(misspelt) => {
                misspelt.append(&mut right);
                why = why.or(Some(misspelt.why));
            }
            None => right.push_str(&rest[..len]),
        }
        rest = &rest[len..];
    }
    Some((why?, right))
}

/// A parameter at the beginning of a segment, and how long it is: `:name`, `*name`, `<name>`.
fn whole_segment(rest: &str) -> (Option<Misspelt<'_>>, usize) {
    let segment = rest.split('/').next().unwrap_or_default();
    let inner = &segment[1..];
    let name_len =
        inner.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(inner.len());
    let (name, behind) = inner.split_at(name_len);
    let found = match (&segment[..1], behind) {
        (":", _) if name.is_empty() => None,
        (":", "") => Misspelt::one(BRACES, name),
        (":", "?") => Misspelt::one(OPTIONAL, name),
        (":", "*" | "+") => Misspelt::all(name),
        (":", _) if behind.starts_with('(') => Misspelt::one(PATTERN, name),
        ("*", "" | "*") => Misspelt::all(name),
        (":" | "*", _) => return (Misspelt::one(BRACES, name), 1 + name_len),
        _ => inner.strip_suffix('>').and_then(in_angles),
    };
    (found, segment.len())
}

/// A parameter between `<` and `>`: `name`, `name..` or `kind:name`.
fn in_angles(inner: &str) -> Option<Misspelt<'_>> {
    match inner.split_once(':') {
        Some(("path", name)) => Misspelt::all(name),
        Some((_, name)) => Misspelt::one(BRACES, name),
        None => match inner.strip_suffix("..") {
            Some(name) => Misspelt::all(name),
            None => Misspelt::one(BRACES, inner),
        },
    }
}

/// A parameter in braces, where it isn't as it should be, and how long it is with them.
fn in_braces(rest: &str) -> (Option<Misspelt<'_>>, usize) {
    let mut depth = 0;
    let end = rest.find(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        depth == 0
    });
    // Without an end the whole path is refused.
    let Some(end) = end else { return (None, rest.len()) };
    let written = &rest[1..end];
    let inner = written.trim();
    let (bare, is_optional) = inner.strip_suffix('?').map_or((inner, false), |bare| (bare, true));
    let name = bare.trim_start_matches(['*', '.']).trim_end_matches(['*', '.']);
    let is_all = name != bare;
    let found = match name.split_once(':') {
        _ if is_optional => Misspelt::one(OPTIONAL, name),
        Some((name, _)) => Misspelt::one(PATTERN, name),
        None if is_all && (name.is_empty() || written.strip_prefix('*') != Some(name)) => Misspelt::all(name),
        None if !is_all && (name.is_empty() || name != written) => Misspelt::one(BRACES, name),
        None => None,
    };
    (found, end + 1)
}
