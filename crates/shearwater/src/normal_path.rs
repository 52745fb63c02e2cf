//! What a path comes to for whoever decodes it: for guards, which have to hold however it is written.

use std::borrow::Cow;

/// The path with its percent-encoding decoded once and its segments resolved: empty ones and `.` left out, `..` taken with the one before
/// (RFC 3986 section 6.2.2). Most paths are so already; else it allocates.
pub(crate) fn normal(path: &[u8]) -> Cow<'_, [u8]> {
    let is_odd = |pair: &[u8]| matches!(pair, [b'%', _] | [_, b'%'] | [b'/', b'/' | b'.']);
    if !path.windows(2).any(is_odd) {
        return Cow::Borrowed(path);
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
    Cow::Owned(segments.iter().flat_map(|segment| [&b"/"[..], segment]).flatten().copied().collect())
}

/// What is no percent-encoding stays as it is.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, behind @ ..] = rest {
        let encoded = behind.split_at_checked(2).filter(|_| *byte == b'%');
        let encoded = encoded.and_then(|(digits, behind)| Some((value(digits)?, behind)));
        let (decoded, behind) = encoded.unwrap_or((*byte, behind));
        bytes.push(decoded);
        rest = behind;
    }
    bytes
}

/// The value of hexadecimal digits.
fn value(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)? as u8))
}

#[cfg(test)]
mod tests {
    use super::normal;

    #[test]
    fn a_path_is_the_same_however_it_is_written() {
        for (written, path) in [
            ("/", "/"),
            ("/api/x", "/api/x"),
            ("/api/", "/api/"),
            ("*", "*"),
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
            assert_eq!(normal(written.as_bytes()), path.as_bytes(), "{written}");
        }
    }
}
