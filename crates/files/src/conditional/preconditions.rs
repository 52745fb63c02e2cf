//! Conditional requests (RFC 9110 section 13), and lists of entity tags (section 8.8.3).

use std::time::SystemTime;

use shearwater::engine::{Head, KnownField};

use crate::conditional::validators::Validators;

/// Result of a request's preconditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreconditionResult {
    /// The file must be sent.
    Send,
    /// The client has the present version.
    NotModified,
    /// The client requires another version.
    Failed,
}

/// Evaluates preconditions in the order of RFC 9110 section 13.2.2: dates count only without the entity tags of their
/// kind.
pub(crate) fn evaluate(head: &Head<'_>, validators: &Validators) -> PreconditionResult {
    if !is_required_version(head, validators) {
        PreconditionResult::Failed
    } else if is_not_modified(head, validators) {
        PreconditionResult::NotModified
    } else {
        PreconditionResult::Send
    }
}

/// Evaluates `If-Match` (strong comparison, RFC 9110 section 13.1.1), else `If-Unmodified-Since`.
fn is_required_version(head: &Head<'_>, validators: &Validators) -> bool {
    if head.field(KnownField::IfMatch).is_some() {
        return head.all(KnownField::IfMatch).any(|list| list_matches(list, validators, Weak::Differs));
    }
    let Some(date) = head.field(KnownField::IfUnmodifiedSince) else { return true };
    dates(date, validators).is_none_or(|(date, modified)| modified <= date)
}

/// Evaluates `If-None-Match` (weak comparison, RFC 9110 section 13.1.2), else `If-Modified-Since`.
fn is_not_modified(head: &Head<'_>, validators: &Validators) -> bool {
    if head.field(KnownField::IfNoneMatch).is_some() {
        return head.all(KnownField::IfNoneMatch).any(|list| list_matches(list, validators, Weak::Matches));
    }
    let Some(date) = head.field(KnownField::IfModifiedSince) else { return false };
    validators.is_date_meaningful && dates(date, validators).is_some_and(|(date, modified)| modified <= date)
}

/// Returns whether a list contains the file's entity tag. Without a tag, only `*` matches.
fn list_matches(list: &[u8], validators: &Validators, weak: Weak) -> bool {
    matches_any(list, validators.etag.as_deref().unwrap_or_default(), weak)
}

/// Returns whether `Range` applies: no `If-Range`, or one that names this version (RFC 9110 section 13.1.5).
pub(crate) fn if_range_holds(head: &Head<'_>, validators: &Validators) -> bool {
    let mut conditions = head.all(KnownField::IfRange);
    match (conditions.next(), conditions.next()) {
        (None, _) => true,
        (Some(condition), None) => matches_version(condition, validators),
        // A repeated `If-Range` is invalid.
        (Some(_), Some(_)) => false,
    }
}

/// Compares an `If-Range` value: entity tags strongly, dates exactly and only if they identify one version.
fn matches_version(condition: &[u8], validators: &Validators) -> bool {
    match parse_date(condition) {
        Some(date) => validators.is_date_strong && Some(date) == validators.modified,
        None => {
            condition.starts_with(b"\"") && Some(condition) == validators.etag.as_deref().map(str::as_bytes)
        }
    }
}

/// Returns the date of a precondition and of the last modification, if there are both.
fn dates(date: &[u8], validators: &Validators) -> Option<(SystemTime, SystemTime)> {
    Some((parse_date(date)?, validators.modified?))
}

/// Parses a date. Invalid ones are ignored (RFC 9110 sections 13.1.3 and 13.1.4).
fn parse_date(date: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(date).ok()?).ok()
}

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
    use shearwater_io::fs::{Meta, Timestamp};

    use super::{Weak, matches_any, matches_version};
    use crate::conditional::validators::{ContentHash, Validators};

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const SECONDS: i64 = 784_111_777;

    /// Returns the validators of a file at `unix_seconds`.
    fn validators(ctime_seconds: i64, unix_seconds: i64) -> Validators {
        let mtime = Timestamp { seconds: SECONDS, nanoseconds: 500_000_000 };
        let ctime = Timestamp { seconds: ctime_seconds, nanoseconds: 500_000_001 };
        let meta = Meta { len: 7, mtime, ctime, ino: 1, dev: 1, links: 1 };
        Validators::of(&meta, ContentHash::of(b"content"), None, unix_seconds as u64)
    }

    #[test]
    fn settled_dates_that_the_system_set_identify_a_version() {
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
        assert!(matches_version(date, &validators(SECONDS, SECONDS + 3)));
        assert!(matches_version(b"Sunday, 06-Nov-94 08:49:37 GMT", &validators(SECONDS, SECONDS + 3)));
        for age in 0..3 {
            assert!(
                !matches_version(date, &validators(SECONDS, SECONDS + age)),
                "it may change within its mtime"
            );
        }
        assert!(!matches_version(date, &validators(SECONDS + 1, SECONDS + 9)), "a time that was set");
        for other in [&b"Sun, 06 Nov 1994 08:49:36 GMT"[..], b"Sun, 06 Nov 1994 08:49:38 GMT", b"", b"x"] {
            assert!(!matches_version(other, &validators(SECONDS, SECONDS + 3)));
        }
    }

    const ETAG: &str = "\"a-1\"";
    const WEAK: &str = "W/\"a-1\"";

    #[test]
    fn finds_entity_tags_in_lists() {
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
    fn weak_tags_match_only_weakly() {
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
