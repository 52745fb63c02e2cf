//! Resolves a target's path to a file name: percent-decodes once and rejects ambiguous paths.

use crate::plain_path::is_plain;

/// Kind of name that a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// No trailing slash.
    File,
    /// A trailing slash. The name has one too, or is empty for the root.
    Directory,
}

/// Properties of a resolved path, besides its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// With or without a trailing slash.
    pub shape: Shape,
    /// True if a segment of the name begins with a dot. A leading `.well-known` is no such segment (RFC 8615).
    pub is_hidden: bool,
}

/// A resolved name that borrows from the path if nothing had to be decoded.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) resolved: Resolved,
}

/// Reason why a path names no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPath {
    /// `%` without two hexadecimal digits (RFC 3986 section 2.1).
    Escape,
    /// A segment is `.` or `..`, plain or encoded. Clients resolve these themselves (RFC 3986 section 5.2.4).
    Dots,
    /// Not a possible file name: an encoded slash or NUL, or no path at all.
    NoName,
}

/// Writes the name, relative to the root, to `name`. Several slashes in a row count as one.
///
/// # Errors
/// If the path names no file. `name` then holds a part of it.
pub fn resolve(path: &str, name: &mut Vec<u8>) -> Result<Resolved, BadPath> {
    name.clear();
    match own_name(path) {
        Some(own) => {
            name.extend_from_slice(own.name);
            Ok(own.resolved)
        }
        None => decoded_name(path, name),
    }
}

/// Resolves a path like [`resolve`], but writes to `decoded` only if the name differs from the path.
pub(crate) fn named<'a>(path: &'a str, decoded: &'a mut Vec<u8>) -> Result<Named<'a>, BadPath> {
    if let Some(own) = own_name(path) {
        return Ok(own);
    }
    decoded.clear();
    let resolved = decoded_name(path, decoded)?;
    Ok(Named { name: decoded, resolved })
}

/// Returns the name of a path that needs no decoding.
fn own_name(path: &str) -> Option<Named<'_>> {
    let name = path.as_bytes().strip_prefix(b"/")?;
    let shape = if matches!(name, [] | [.., b'/']) { Shape::Directory } else { Shape::File };
    is_plain(path.as_bytes()).then_some(Named { name, resolved: Resolved { shape, is_hidden: false } })
}

/// Decodes the name of any path.
fn decoded_name(path: &str, name: &mut Vec<u8>) -> Result<Resolved, BadPath> {
    let path = path.as_bytes().strip_prefix(b"/").ok_or(BadPath::NoName)?;
    let shape = resolve_segments(path, name)?;
    Ok(Resolved { shape, is_hidden: is_hidden(name) })
}

/// Returns whether a segment begins with a dot, except a leading `.well-known`.
fn is_hidden(name: &[u8]) -> bool {
    let mut segments = name.split(|&byte| byte == b'/').enumerate();
    segments
        .any(|(place, segment)| segment.first() == Some(&b'.') && !(place == 0 && segment == b".well-known"))
}

/// Decodes a path segment by segment.
fn resolve_segments(path: &[u8], name: &mut Vec<u8>) -> Result<Shape, BadPath> {
    let mut ends_open = true;
    for segment in path.split(|&byte| byte == b'/') {
        ends_open = segment.is_empty();
        if ends_open {
            continue;
        }
        let start = name.len();
        decode(segment, name)?;
        if matches!(&name[start..], b"." | b"..") {
            return Err(BadPath::Dots);
        }
        name.push(b'/');
    }
    if ends_open {
        return Ok(Shape::Directory);
    }
    name.pop();
    Ok(Shape::File)
}

fn decode(segment: &[u8], name: &mut Vec<u8>) -> Result<(), BadPath> {
    let start = name.len();
    let mut rest = segment;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        name.extend_from_slice(&rest[..at]);
        name.push(digit(rest.get(at + 1))? << 4 | digit(rest.get(at + 2))?);
        rest = &rest[at + 3..];
    }
    name.extend_from_slice(rest);
    match name[start..].iter().any(|byte| matches!(byte, 0 | b'/')) {
        true => Err(BadPath::NoName),
        false => Ok(()),
    }
}

fn digit(byte: Option<&u8>) -> Result<u8, BadPath> {
    let value = byte.and_then(|&byte| char::from(byte).to_digit(16)).ok_or(BadPath::Escape)?;
    Ok(value as u8)
}

#[cfg(test)]
mod tests {
    use super::{BadPath, Resolved, Shape, is_hidden, is_plain, named, resolve, resolve_segments};

    /// Resolves a path in both ways and compares the results.
    fn resolved(path: &str) -> Result<(Shape, Vec<u8>), BadPath> {
        let (mut name, mut decoded) = (b"left over".to_vec(), b"left over".to_vec());
        let resolved = resolve(path, &mut name).map(|resolved| (resolved, name));
        let named = named(path, &mut decoded).map(|named| (named.resolved, named.name.to_vec()));
        assert_eq!(named, resolved, "{path}");
        resolved.map(|(resolved, name)| (resolved.shape, name))
    }

    #[test]
    fn names_files_and_directories() {
        for (path, shape, name) in [
            ("/", Shape::Directory, &b""[..]),
            ("/a", Shape::File, b"a"),
            ("/a/", Shape::Directory, b"a/"),
            ("/a/b.txt", Shape::File, b"a/b.txt"),
            ("//a///b", Shape::File, b"a/b"),
            ("//", Shape::Directory, b""),
            ("/a%20b+c", Shape::File, b"a b+c"),
            ("/%e4%BD%a0", Shape::File, "你".as_bytes()),
            ("/%2561", Shape::File, b"%61"),
            ("/a\\..\\b", Shape::File, b"a\\..\\b"),
            ("/...", Shape::File, b"..."),
            ("/..a", Shape::File, b"..a"),
            ("/%ff%c0%ae", Shape::File, b"\xff\xc0\xae"),
        ] {
            assert_eq!(resolved(path), Ok((shape, name.to_vec())), "{path}");
        }
    }

    #[test]
    fn names_with_a_dot_in_front_are_hidden() {
        for (path, is_hidden) in [
            ("/", false),
            ("/a.b/c.d", false),
            ("/.a", true),
            ("/a/.b", true),
            ("/a/.b/c", true),
            ("/%2eenv", true),
            ("//.a/", true),
            ("/...", true),
            ("/a%20/.b", true),
            ("/a%20/b", false),
            ("/.well-known", false),
            ("/.well-known/acme-challenge/x", false),
            ("/%2ewell-known/x", false),
            ("/.well-known/.git", true),
            ("/a/.well-known/x", true),
            ("/.well-known2", true),
            ("/.Well-known", true),
        ] {
            let resolved = resolve(path, &mut Vec::new()).expect("a name");
            assert_eq!(resolved.is_hidden, is_hidden, "{path}");
        }
    }

    #[test]
    fn refuses_what_is_no_name() {
        for (path, bad) in [
            ("/..", BadPath::Dots),
            ("/../etc/passwd", BadPath::Dots),
            ("/a/../../b", BadPath::Dots),
            ("/./a", BadPath::Dots),
            ("/%2e%2e/a", BadPath::Dots),
            ("/.%2E/a", BadPath::Dots),
            ("/%2e", BadPath::Dots),
            ("/a%2fb", BadPath::NoName),
            ("/..%2f..%2fetc", BadPath::NoName),
            ("/a%00.html", BadPath::NoName),
            ("*", BadPath::NoName),
            ("", BadPath::NoName),
            ("/%", BadPath::Escape),
            ("/%4", BadPath::Escape),
            ("/%4/1", BadPath::Escape),
            ("/%zz", BadPath::Escape),
            ("/%+1", BadPath::Escape),
        ] {
            assert_eq!(resolved(path), Err(bad), "{path}");
        }
    }

    #[test]
    fn a_plain_path_is_what_its_segments_say() {
        // All paths of up to seven of these bytes.
        const BYTES: &[u8] = b"/.%2a";
        let mut plain = 0;
        for len in 0..=7u32 {
            for number in 0..BYTES.len().pow(len) {
                let digit = |at| BYTES[number / BYTES.len().pow(at) % BYTES.len()];
                let path: Vec<u8> = (0..len).map(digit).collect();
                let mut name = Vec::new();
                let shape = resolve_segments(&path, &mut name);
                let text = format!("/{}", String::from_utf8_lossy(&path));
                if is_plain(text.as_bytes()) {
                    plain += 1;
                    assert_eq!(name, path, "{path:?}");
                    assert_eq!(
                        (shape, &name),
                        resolved(&text).as_ref().map(|(shape, name)| (Ok(*shape), name)).expect("plain")
                    );
                    let whole = resolve(&text, &mut Vec::new()).map(|Resolved { is_hidden, .. }| is_hidden);
                    assert_eq!(whole, Ok(is_hidden(&name)), "{text}");
                }
            }
        }
        assert!(plain > 1000, "{plain}");
    }
}
