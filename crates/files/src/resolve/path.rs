//! Resolves a target's path to a file name: percent-decodes once and rejects ambiguous paths.

use std::iter::zip;

const WORD: usize = size_of::<u64>();
const HALF: usize = size_of::<u32>();
const LOW_BITS: u64 = splat(0x7F);
const HIGH_BITS: u64 = splat(0x80);

/// Kind of name that a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// No trailing slash.
    File,
    /// A trailing slash. The name has one too, or is empty for the root.
    Directory,
}

impl Shape {
    /// Returns the shape of a name.
    pub(crate) fn of(name: &[u8]) -> Self {
        if matches!(name, [] | [.., b'/']) { Self::Directory } else { Self::File }
    }
}

/// Properties of a resolved path, besides its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedPath {
    /// With or without a trailing slash.
    pub shape: Shape,
    /// True if a segment of the name begins with a dot. A leading `.well-known` is no such segment (RFC 8615).
    pub is_hidden: bool,
}

/// Reason why a path names no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPath {
    /// `%` without two hexadecimal digits (RFC 3986 section 2.1), in a setting.
    Escape,
    /// A segment is `.` or `..`, plain or encoded. A request's path has none left.
    Dots,
    /// Not a possible file name: an encoded slash or NUL, or no path at all.
    NoName,
}

/// Resolves a path in a setting like [`resolve`], but a percent sign has to be written `%25`.
///
/// # Errors
/// If the path names no file. `name` then holds a part of it.
pub fn resolve_setting(path: &str, name: &mut Vec<u8>) -> Result<ResolvedPath, BadPath> {
    match path.split('%').skip(1).all(|rest| escaped(rest.as_bytes()).is_some()) {
        true => resolve(path, name),
        false => Err(BadPath::Escape),
    }
}

/// Writes the name, relative to the root, to `name`. Several slashes in a row count as one. A percent sign without two
/// digits is itself, as browsers read it.
///
/// # Errors
/// If the path names no file. `name` then holds a part of it.
pub fn resolve(path: &str, name: &mut Vec<u8>) -> Result<ResolvedPath, BadPath> {
    match plain_name(path) {
        Some((plain, resolved)) => {
            plain.clone_into(name);
            Ok(resolved)
        }
        None => decoded_name(path, name),
    }
}

/// Resolves a path like [`resolve`], but writes to `decoded` only if the name differs from the path.
pub(crate) fn resolve_in_place<'a>(
    path: &'a str,
    decoded: &'a mut Vec<u8>,
) -> Result<(&'a [u8], ResolvedPath), BadPath> {
    if let Some(plain) = plain_name(path) {
        return Ok(plain);
    }
    let resolved = decoded_name(path, decoded)?;
    Ok((decoded, resolved))
}

/// Returns the name of a path that needs no decoding.
#[inline]
fn plain_name(path: &str) -> Option<(&[u8], ResolvedPath)> {
    let name = path.as_bytes().strip_prefix(b"/")?;
    is_plain(path.as_bytes()).then_some((name, ResolvedPath { shape: Shape::of(name), is_hidden: false }))
}

/// Decodes the name of any path, segment by segment.
fn decoded_name(path: &str, name: &mut Vec<u8>) -> Result<ResolvedPath, BadPath> {
    name.clear();
    let path = path.as_bytes().strip_prefix(b"/").ok_or(BadPath::NoName)?;
    for segment in path.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty()) {
        let start = name.len();
        decode(segment, name)?;
        if matches!(&name[start..], b"." | b"..") {
            return Err(BadPath::Dots);
        }
        name.push(b'/');
    }
    if !matches!(path, [] | [.., b'/']) {
        name.pop();
    }
    Ok(ResolvedPath { shape: Shape::of(name), is_hidden: is_hidden(name) })
}

/// Returns whether a segment begins with a dot, except a leading `.well-known`.
fn is_hidden(name: &[u8]) -> bool {
    let mut segments = name.split(|&byte| byte == b'/').enumerate();
    segments
        .any(|(place, segment)| segment.first() == Some(&b'.') && !(place == 0 && segment == b".well-known"))
}

fn decode(segment: &[u8], name: &mut Vec<u8>) -> Result<(), BadPath> {
    let start = name.len();
    let mut rest = segment;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        name.extend_from_slice(&rest[..at]);
        let (byte, len) = escaped(&rest[at + 1..]).map_or((b'%', 1), |byte| (byte, 3));
        name.push(byte);
        rest = &rest[at + len..];
    }
    name.extend_from_slice(rest);
    match name[start..].iter().any(|byte| matches!(byte, 0 | b'/')) {
        true => Err(BadPath::NoName),
        false => Ok(()),
    }
}

/// Returns the byte of two hexadecimal digits at the beginning.
fn escaped(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| digits.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    Some((digit(0)? << 4 | digit(1)?) as u8)
}

/// Returns whether a path after its first slash is a plain name: no `%` or NUL, and no segment that is empty or begins
/// with a dot. Most paths are such, and each request checks.
///
/// Checks eight bytes at a time, each together with the one before it, by reading words at two offsets.
#[inline(never)]
fn is_plain(path: &[u8]) -> bool {
    let Some(shifted) = path.get(1..) else { return false };
    let before = &path[..shifted.len()];
    if let (Some(left), Some(right)) = (before.last_chunk(), shifted.last_chunk()) {
        // The last word overlaps the one before it.
        let are_plain = |left, right| are_plain(u64::from_le_bytes(left), u64::from_le_bytes(right));
        let words = zip(before.as_chunks::<WORD>().0, shifted.as_chunks::<WORD>().0);
        return words.fold(are_plain(*left, *right), |all, (left, right)| all & are_plain(*left, *right));
    }
    match (halves(before), halves(shifted)) {
        (Some(left), Some(right)) => are_plain(left, right),
        _ => zip(before, shifted).all(|(&left, &right)| are_plain(splat(left), splat(right))),
    }
}

/// Compares two words, of which `right` is one byte further on in the path.
///
/// Returns true if no byte of `right` is a `%` or NUL, and no dot or slash in it follows a slash in `left`.
fn are_plain(left: u64, right: u64) -> bool {
    // A dot and a slash differ only in the lowest bit.
    let begins_none = differs(left, b'/') | differs(right | splat(1), b'/');
    let is_literal = differs(right, b'%') & differs(right, 0);
    begins_none & is_literal & HIGH_BITS == HIGH_BITS
}

/// Sets the top bit of each byte that differs from `byte`; lower bits are undefined. No carry crosses bytes.
fn differs(word: u64, byte: u8) -> u64 {
    let difference = word ^ splat(byte);
    ((difference & LOW_BITS) + LOW_BITS) | difference
}

/// Loads four to seven bytes as the first and the last four.
fn halves(bytes: &[u8]) -> Option<u64> {
    let [first, last]: [&[u8; HALF]; 2] = [bytes.first_chunk()?, bytes.last_chunk()?];
    let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
    Some(first | last << u32::BITS)
}

const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD])
}

#[cfg(test)]
mod tests {
    use super::{BadPath, Shape, decoded_name, is_plain, resolve, resolve_in_place, resolve_setting};

    /// Resolves a path in both ways and compares the results.
    fn resolved(path: &str) -> Result<(Shape, Vec<u8>), BadPath> {
        let (mut name, mut decoded) = (b"left over".to_vec(), b"left over".to_vec());
        let resolved = resolve(path, &mut name).map(|resolved| (resolved, name));
        let in_place = resolve_in_place(path, &mut decoded).map(|(name, resolved)| (resolved, name.to_vec()));
        assert_eq!(in_place, resolved, "{path}");
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
            ("/\u{fc}%", Shape::File, "\u{fc}%".as_bytes()),
            ("/%4/1", Shape::File, b"%4/1"),
            ("/%zz%+1%%32e", Shape::File, b"%zz%+1%2e"),
            ("/100%/", Shape::Directory, b"100%/"),
        ] {
            assert_eq!(resolved(path), Ok((shape, name.to_vec())), "{path}");
        }
    }

    #[test]
    fn names_that_begin_with_a_dot_are_hidden() {
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
    fn rejects_paths_that_name_no_file() {
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
        ] {
            assert_eq!(resolved(path), Err(bad), "{path}");
            assert_eq!(resolve_setting(path, &mut Vec::new()), Err(bad), "{path}");
        }
        for path in ["/%", "/%4", "/%4/1", "/%zz", "/%+1", "/%41%"] {
            assert_eq!(resolve_setting(path, &mut Vec::new()), Err(BadPath::Escape), "{path}");
        }
        assert!(resolve_setting("/%41%25", &mut Vec::new()).is_ok());
    }

    /// Returns all paths of up to `len_max` of these bytes after a slash.
    fn paths(bytes: &'static [u8], len_max: u32) -> impl Iterator<Item = String> {
        (0..=len_max).flat_map(move |len| {
            (0..bytes.len().pow(len)).map(move |number| {
                let digit = |at| char::from(bytes[number / bytes.len().pow(at) % bytes.len()]);
                std::iter::once('/').chain((0..len).map(digit)).collect()
            })
        })
    }

    #[test]
    fn plain_paths_decode_to_themselves() {
        let mut plain = 0;
        for path in paths(b"/.%2a", 7).filter(|path| is_plain(path.as_bytes())) {
            plain += 1;
            let mut name = Vec::new();
            let decoded = decoded_name(&path, &mut name);
            assert_eq!((name, decoded), (path.as_bytes()[1..].to_vec(), resolve(&path, &mut Vec::new())));
        }
        assert!(plain > 1000, "{plain}");
    }

    /// Reference implementation that checks pairs of bytes.
    fn is_plain_by_pairs(path: &[u8]) -> bool {
        let is_special = |pair: &[u8]| matches!(pair, [_, b'%' | 0] | [b'/', b'.' | b'/']);
        !path.is_empty() && !path.windows(2).any(is_special)
    }

    #[test]
    fn detects_special_pairs_at_every_position() {
        const BYTES: &[u8] = b"/.%\0a-\x01\x2d\x25\xae\xaf\xa5\x80\xff";
        for len in 2..=40 {
            for at in 1..len {
                for &left in BYTES {
                    for &right in BYTES {
                        let mut path = vec![b'x'; len];
                        path[0] = b'/';
                        path[at - 1] = if at == 1 { b'/' } else { left };
                        path[at] = right;
                        assert_eq!(is_plain(&path), is_plain_by_pairs(&path), "{path:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn detects_every_plain_path_of_up_to_eight_bytes() {
        let (plain, other): (Vec<_>, Vec<_>) =
            paths(b"/.%a\0", 7).partition(|path| is_plain_by_pairs(path.as_bytes()));
        assert!(plain.iter().all(|path| is_plain(path.as_bytes())));
        assert!(!other.iter().any(|path| is_plain(path.as_bytes())) && !is_plain(b""));
        assert!(plain.len() > 400 && other.len() > 50_000, "{} and {}", plain.len(), other.len());
    }
}
