//! Search in lists of entity tags (RFC 9110 section 8.8.3). A pure function.

/// A way of comparing entity tags (RFC 9110 section 8.8.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weak {
    /// Weak comparison: a weak tag equals the strong one with the same text.
    Matches,
    /// Strong comparison: a weak tag equals none.
    Differs,
}

/// Returns whether a list contains this entity tag, which may be weak. Stops at the first syntax error.
#[must_use]
pub fn matches_any(list: &[u8], etag: &str, weak: Weak) -> bool {
    let mut rest = list.trim_ascii();
    if rest == b"*" {
        return true;
    }
    let (is_weak, opaque) = etag.strip_prefix("W/").map_or((false, etag), |opaque| (true, opaque));
    if is_weak && weak == Weak::Differs {
        return false;
    }
    while let Some(tag) = next_tag(rest) {
        if tag.opaque == opaque.as_bytes() && (weak == Weak::Matches || !tag.is_weak) {
            return true;
        }
        rest = tag.after;
    }
    false
}

/// One entity tag of a list.
struct Tag<'a> {
    is_weak: bool,
    /// In quotes and without `W/`.
    opaque: &'a [u8],
    /// The list after this tag.
    after: &'a [u8],
}

fn next_tag(list: &[u8]) -> Option<Tag<'_>> {
    let skipped = list.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b',')).count();
    let list = &list[skipped..];
    let (is_weak, list) = list.strip_prefix(b"W/").map_or((false, list), |list| (true, list));
    let inner = list.strip_prefix(b"\"")?;
    let len = inner.iter().position(|&byte| byte == b'"')?;
    let (opaque, after) = list.split_at(len + 2);
    Some(Tag { is_weak, opaque, after })
}

#[cfg(test)]
mod tests {
    use super::{Weak, matches_any};

    const ETAG: &str = "\"a-1\"";
    const WEAK: &str = "W/\"a-1\"";

    #[test]
    fn finds_a_tag_in_a_list() {
        for list in [
            "\"a-1\"",
            "*",
            " * ",
            "\"x\", \"a-1\"",
            "\"x\",W/\"y,z\" ,\t\"a-1\"",
            ",,\"a-1\"",
            "W/\"a-1\",\"a-1\"",
        ] {
            assert!(matches_any(list.as_bytes(), ETAG, Weak::Matches), "{list}");
            assert!(matches_any(list.as_bytes(), ETAG, Weak::Differs), "{list}");
        }
        for list in ["", "a-1", "\"a-1", "\"A-1\"", "w/\"a-1\"", "\"x\" y \"a-1\"", "**", "\"x\", *"] {
            assert!(!matches_any(list.as_bytes(), ETAG, Weak::Matches), "{list}");
        }
    }

    #[test]
    fn weak_tags_match_weakly_only() {
        for list in ["W/\"a-1\"", "\"x\", W/\"a-1\""] {
            assert!(matches_any(list.as_bytes(), ETAG, Weak::Matches), "{list}");
            assert!(!matches_any(list.as_bytes(), ETAG, Weak::Differs), "{list}");
        }
        for list in ["\"a-1\"", "W/\"a-1\"", "\"x\", \"a-1\""] {
            assert!(matches_any(list.as_bytes(), WEAK, Weak::Matches), "{list}");
            assert!(!matches_any(list.as_bytes(), WEAK, Weak::Differs), "{list}");
        }
        assert!(!matches_any(b"W/\"a-2\"", WEAK, Weak::Matches));
        assert!(matches_any(b"*", WEAK, Weak::Differs), "a star matches any version");
    }
}
