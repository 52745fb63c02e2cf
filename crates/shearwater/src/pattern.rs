//! Paths of routes (exact or with parameters) and prefixes.

use crate::spelling::corrected;

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

#[cfg(test)]
mod tests {
    use super::{Path, covers, prefix, read};

    #[test]
    fn a_path_is_exact_or_has_parameters() {
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
    fn a_prefix_is_plain_and_covers_whole_segments() {
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
}
