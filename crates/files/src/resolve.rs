//! From a target's path to a file's name: percent-decoding once, and nothing that could mean two things.

/// What the path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No slash at the end.
    File,
    /// A slash at the end: the name ends with one too, or is empty for the root.
    Directory,
}

/// Why a path names no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// `%` without two hexadecimal digits (RFC 3986 section 2.1).
    Escape,
    /// A segment is `.` or `..`, plain or encoded. Clients resolve these themselves (RFC 3986 section 5.2.4).
    Dots,
    /// A name that no file can have: an encoded slash or NUL, or no path at all.
    NoName,
}

/// Writes the name, relative to the root, into `name`. Several slashes in a row count as one.
pub(crate) fn resolve(path: &str, name: &mut Vec<u8>) -> Result<Shape, BadPath> {
    name.clear();
    let Some(path) = path.strip_prefix('/') else { return Err(BadPath::NoName) };
    let mut ends_open = true;
    for segment in path.split('/') {
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

fn decode(segment: &str, name: &mut Vec<u8>) -> Result<(), BadPath> {
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        let decoded = match byte {
            b'%' => {
                let high = digit(bytes.next())?;
                let low = digit(bytes.next())?;
                high << 4 | low
            }
            plain => plain,
        };
        if matches!(decoded, 0 | b'/') {
            return Err(BadPath::NoName);
        }
        name.push(decoded);
    }
    Ok(())
}

fn digit(byte: Option<u8>) -> Result<u8, BadPath> {
    let value = byte.and_then(|byte| char::from(byte).to_digit(16)).ok_or(BadPath::Escape)?;
    Ok(value as u8)
}

#[cfg(test)]
mod tests {
    use super::{BadPath, Shape, resolve};

    fn resolved(path: &str) -> Result<(Shape, Vec<u8>), BadPath> {
        let mut name = b"left over".to_vec();
        resolve(path, &mut name).map(|shape| (shape, name))
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
}
