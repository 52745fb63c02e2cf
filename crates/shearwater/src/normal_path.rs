//! Normalized paths, for guards that must hold however a path is encoded.

/// Decodes percent-encoding once and resolves `.`, `..` and empty segments (RFC 3986 section 6.2.2).
///
/// Returns `None` if that changes nothing, as for most paths.
pub(crate) fn normal(path: &[u8]) -> Option<Vec<u8>> {
    if !needs_normalization(path) {
        return None;
    }
    let decoded = decoded(path);
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|&byte| byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    Some(segments.iter().flat_map(|segment| [&b"/"[..], segment]).flatten().copied().collect())
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
    use super::normal;

    #[test]
    fn a_path_is_the_same_however_it_is_written() {
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
