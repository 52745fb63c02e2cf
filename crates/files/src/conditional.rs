//! Conditional requests: does the client have it already? (RFC 9110 section 13)

use shearwater::{Head, Known};

use crate::validators::Validators;

/// What the conditions come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The file is to be sent.
    Send,
    /// The client has it.
    NotModified,
}

/// Evaluates in the order of RFC 9110 section 13.2.2: `If-Modified-Since` counts only without `If-None-Match`.
pub(crate) fn evaluate(head: &Head<'_>, validators: &Validators) -> Outcome {
    let not_modified = if head.field(Known::IfNoneMatch).is_some() {
        head.all(Known::IfNoneMatch).any(|list| matches_any(list, validators.etag().as_bytes()))
    } else {
        head.field(Known::IfModifiedSince).is_some_and(|date| !modified_since(date, validators))
    };
    if not_modified { Outcome::NotModified } else { Outcome::Send }
}

/// Whether a list of entity tags has this one, weakly compared (RFC 9110 sections 8.8.3.2 and 13.1.2). What can't be
/// read ends the list.
fn matches_any(list: &[u8], etag: &[u8]) -> bool {
    let mut rest = list.trim_ascii();
    if rest == b"*" {
        return true;
    }
    while let Some((tag, behind)) = next_tag(rest) {
        if tag == etag {
            return true;
        }
        rest = behind;
    }
    false
}

/// The next entity tag, in its quotes and without `W/`, and what follows it.
fn next_tag(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let skipped = list.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b',')).count();
    let list = &list[skipped..];
    let list = list.strip_prefix(b"W/").unwrap_or(list);
    let opaque = list.strip_prefix(b"\"")?;
    let len = opaque.iter().position(|&byte| byte == b'"')?;
    Some(list.split_at(len + 2))
}

/// Whether the file is newer than a date. A date that can't be read counts as none (RFC 9110 section 13.1.3).
fn modified_since(date: &[u8], validators: &Validators) -> bool {
    let date = std::str::from_utf8(date).ok().and_then(|text| httpdate::parse_http_date(text).ok());
    date.is_none_or(|date| validators.modified() > date)
}

#[cfg(test)]
mod tests {
    use super::matches_any;

    #[test]
    fn finds_a_tag_in_a_list() {
        let etag = b"\"a-1\"";
        for list in
            ["\"a-1\"", "W/\"a-1\"", "*", " * ", "\"x\", \"a-1\"", "\"x\",W/\"y,z\" ,\t\"a-1\"", ",,\"a-1\""]
        {
            assert!(matches_any(list.as_bytes(), etag), "{list}");
        }
        for list in ["", "a-1", "\"a-1", "\"A-1\"", "w/\"a-1\"", "\"x\" y \"a-1\"", "**", "\"x\", *"] {
            assert!(!matches_any(list.as_bytes(), etag), "{list}");
        }
    }
}
