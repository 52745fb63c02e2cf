//! Redirects (RFC 9110 section 15.4).

use shearwater::Response;
use shearwater::engine::Request;
use shearwater_files::reply::errors::{is_no_uri, push_encoded};

use crate::options::{InvalidValue, invalid};

/// Status codes of redirects.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// Placeholder in a target for the part of the path that the `*` matches.
const REST: &str = "{rest}";

/// A redirect with its target parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RedirectTarget {
    status: u16,
    /// The target up to the placeholder, or all of it.
    before: Box<str>,
    rest: Option<Rest>,
    keeps_query: bool,
    /// With its `#`, or empty.
    fragment: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rest {
    /// Segments of the path before the `*`.
    segments: usize,
    /// The target after the placeholder.
    after: Box<str>,
}

impl RedirectTarget {
    /// Parses a target. `segments` is the number of segments before the `*` of the path, if it has one.
    pub(crate) fn new(status: u16, to: &str, segments: Option<usize>) -> Result<Self, InvalidValue> {
        if !STATUSES.contains(&status) {
            return Err(invalid("status is not a redirect", "allowed: 301, 302, 303, 307 or 308"));
        }
        check_target(to)?;
        let (place, fragment) = to.find('#').map_or((to, ""), |at| to.split_at(at));
        let keeps_query = !place.contains('?');
        let (before, after) = match place.split_once(REST) {
            Some((before, after)) => (before, Some(after)),
            None => (place, None),
        };
        if fragment.contains(REST) || after.is_some_and(|after| after.contains(REST)) {
            return Err(invalid("{rest} twice or in the fragment", "write it once, before any `#`"));
        }
        if [before, after.unwrap_or_default(), fragment].concat().contains(['{', '}']) {
            let help = "only {rest} is replaced; other braces are written %7B and %7D";
            return Err(invalid("unknown placeholder in a redirect target", help));
        }
        let rest = match (after, segments) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(invalid("{rest} without a * in `from`", "end `from` with /*, or remove {rest}"));
            }
            (Some(_), _) if !is_inside_path(before) => {
                return Err(invalid("misplaced {rest}", "write it directly after a slash of the path"));
            }
            (Some(after), Some(segments)) => Some(Rest { segments, after: after.into() }),
        };
        Ok(Self { status, before: before.into(), rest, keeps_query, fragment: fragment.into() })
    }

    /// Responds with the new location. `location` is a scratch buffer.
    pub(crate) fn respond(&self, request: &Request<'_>, location: &mut String, response: &mut Response<'_>) {
        self.locate(request.path(), request.query(), location);
        response.status(self.status).field("Location", &*location);
        // A body for people; browsers follow the header.
        location.push('\n');
        response.text(location);
    }

    /// Writes the new location of a path into `location`.
    pub(crate) fn locate(&self, path: &str, query: Option<&str>, location: &mut String) {
        location.clear();
        location.push_str(&self.before);
        if let Some(rest) = &self.rest {
            let behind = behind(path, rest.segments);
            push_encoded(location, behind);
            // Two adjacent slashes would turn the rest of the target into a host.
            let is_empty = behind.is_empty();
            location.push_str(if is_empty { rest.after.trim_start_matches('/') } else { &rest.after });
        }
        if let Some(query) = query.filter(|_| self.keeps_query) {
            location.push('?');
            push_encoded(location, query);
        }
        location.push_str(&self.fragment);
    }
}

/// Checks that a target is a path of this host or a URL.
fn check_target(to: &str) -> Result<(), InvalidValue> {
    let is_url = ["http://", "https://"].iter().any(|scheme| host_behind(to, scheme).is_some());
    let is_path = to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/\\");
    if !is_url && !is_path {
        let help = "write a path, such as \"/new\", or a URL, such as \"https://example.org/\"";
        return Err(invalid("invalid redirect target", help));
    }
    match to.chars().any(|sign| is_no_uri(sign) && !matches!(sign, '{' | '}')) {
        true => {
            Err(invalid("redirect target with a character that is invalid in a URL", "percent-encode it"))
        }
        false => Ok(()),
    }
}

/// Returns the host of a URL with this scheme.
fn host_behind<'a>(to: &'a str, scheme: &str) -> Option<&'a str> {
    let start = to.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme))?;
    let rest = &to[start.len()..];
    let host = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    (!host.is_empty() && !host.contains(['@', '\\'])).then_some(host)
}

/// Returns whether text after `before` belongs to the path, and not to the host or the query.
fn is_inside_path(before: &str) -> bool {
    let path = before.find("://").map_or(before, |at| &before[at + 3..]);
    before.ends_with('/') && path.contains('/') && !path.contains('?')
}

/// Returns the rest of a path after a number of segments, without leading slashes, which could start a host.
fn behind(path: &str, segments: usize) -> &str {
    let mut rest = path.trim_start_matches('/');
    for _ in 0..segments {
        let end = rest.find('/').unwrap_or(rest.len());
        rest = rest[end..].trim_start_matches('/');
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::RedirectTarget;

    fn located(to: &str, segments: Option<usize>, path: &str, query: Option<&str>) -> String {
        let mut location = "left over".to_owned();
        RedirectTarget::new(308, to, segments).expect(to).locate(path, query, &mut location);
        location
    }

    #[test]
    fn location_has_rest_and_query() {
        for (to, segments, path, query, location) in [
            ("/new", None, "/old", None, "/new"),
            ("/new", None, "/old", Some("a=b&c"), "/new?a=b&c"),
            ("/new", None, "/old", Some(""), "/new?"),
            ("/new?x=1", None, "/old", Some("a=b"), "/new?x=1"),
            ("/new#top", None, "/old", Some("a"), "/new?a#top"),
            ("/new", Some(1), "/old/a/b", None, "/new"),
            ("/new/{rest}", Some(1), "/old/a/b/", Some("q"), "/new/a/b/?q"),
            ("/new/{rest}", Some(1), "/old", None, "/new/"),
            ("/new/{rest}", Some(1), "/old/", None, "/new/"),
            ("/new/{rest}/x#y", Some(2), "//old///b//c%20d", None, "/new/c%20d/x#y"),
            ("/{rest}", Some(0), "/a/b", None, "/a/b"),
            ("/{rest}/index.html", Some(1), "/mid", None, "/index.html"),
            ("/{rest}//evil.example", Some(1), "/mid//", None, "/evil.example"),
            ("/{rest}/index.html", Some(1), "/mid/a", None, "/a/index.html"),
            ("/new/{rest}/", Some(1), "/mid", None, "/new/"),
            ("https://example.org/{rest}", Some(0), "/a%2Fb;c?", None, "https://example.org/a%2Fb;c?"),
            ("HTTP://example.org", Some(0), "/a", Some("b"), "HTTP://example.org?b"),
            ("/{rest}", Some(1), "/old/a\"<b>`{c}", None, "/a%22%3Cb%3E%60%7Bc%7D"),
        ] {
            assert_eq!(located(to, segments, path, query), location, "{to} {path}");
        }
    }

    #[test]
    fn rejects_invalid_targets() {
        for (status, to, segments, why) in [
            (200, "/new", None, "not a redirect"),
            (304, "/new", None, "not a redirect"),
            (308, "", None, "invalid redirect target"),
            (308, "new", None, "invalid redirect target"),
            (308, "//evil.example", None, "invalid redirect target"),
            (308, "/\\evil.example", None, "invalid redirect target"),
            (308, "ftp://example.org/", None, "invalid redirect target"),
            (308, "https://", None, "invalid redirect target"),
            (308, "https:///a", None, "invalid redirect target"),
            (308, "https://a@b/", None, "invalid redirect target"),
            (308, "javascript:alert(1)", None, "invalid redirect target"),
            (308, "/a b", None, "invalid in a URL"),
            (308, "/a\r\nX: y", None, "invalid in a URL"),
            (308, "/caf\u{e9}", None, "invalid in a URL"),
            (308, "/a\\b", None, "invalid in a URL"),
            (308, "/a/{rest}", None, "without a *"),
            (308, "/a/{rest}/{rest}", Some(1), "twice or in the fragment"),
            (308, "/a/{rest}#{rest}", Some(1), "twice or in the fragment"),
            (308, "/a{rest}", Some(1), "misplaced"),
            (308, "/a?b={rest}", Some(1), "misplaced"),
            (308, "/a?b=/{rest}", Some(1), "misplaced"),
            (308, "https://example.org{rest}", Some(1), "misplaced"),
            (308, "https://{rest}", Some(1), "misplaced"),
            (308, "/a/{host}", Some(1), "unknown placeholder"),
        ] {
            let error = RedirectTarget::new(status, to, segments).expect_err(to);
            assert!(error.message.contains(why), "{to}: {error:?}");
        }
    }
}
