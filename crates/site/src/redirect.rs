//! Where a path has moved to, and the answer that says so (RFC 9110 section 15.4).

use shearwater::{Request, Response};

/// Statuses that name a new place.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// What stands in a target for what the star of the path stands for.
const REST: &str = "{rest}";

/// A redirect, its target taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    status: u16,
    /// What stands before the rest, or the whole target.
    before: Box<str>,
    rest: Option<Rest>,
    /// Whether the request's query goes with it.
    keeps_query: bool,
    /// With its `#`, or nothing.
    fragment: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rest {
    /// Segments of the path before the star.
    segments: usize,
    /// What stands behind the rest.
    after: Box<str>,
}

impl Redirect {
    /// Reads a target; `segments` are those before the star of the path that has moved, if it has one.
    ///
    /// # Errors
    /// What is wrong with status or target.
    pub(crate) fn new(status: u16, to: &str, segments: Option<usize>) -> Result<Self, String> {
        if !STATUSES.contains(&status) {
            return Err(format!("{status} is no redirect: 301, 302, 303, 307 and 308 are"));
        }
        check(to)?;
        let (place, fragment) = to.find('#').map_or((to, ""), |at| to.split_at(at));
        let keeps_query = !place.contains('?');
        let (before, after) = match place.split_once(REST) {
            Some((before, after)) => (before, Some(after)),
            None => (place, None),
        };
        if fragment.contains(REST) || after.is_some_and(|after| after.contains(REST)) {
            return Err(format!("{REST} stands once, and before any #"));
        }
        if [before, after.unwrap_or_default(), fragment].concat().contains(['{', '}']) {
            return Err(format!("{REST} alone is replaced: write other braces as %7B and %7D"));
        }
        let rest = match (after, segments) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(format!("{REST} is what a star stands for, and the path has none"));
            }
            (Some(_), _) if !is_inside_path(before) => {
                return Err(format!(
                    "{REST} stands behind a slash of the path: elsewhere it could name another host"
                ));
            }
            (Some(after), Some(segments)) => Some(Rest { segments, after: after.into() }),
        };
        Ok(Self { status, before: before.into(), rest, keeps_query, fragment: fragment.into() })
    }

    /// Names the new place. `location` is where it is put together.
    pub(crate) fn respond(&self, request: &Request<'_>, location: &mut String, response: &mut Response<'_>) {
        self.locate(request.path(), request.query(), location);
        response.status(self.status).field("Location", &*location);
        // For who reads it: browsers don't show it.
        location.push('\n');
        response.text(location);
    }

    /// Writes the new place of a path into `location`.
    pub(crate) fn locate(&self, path: &str, query: Option<&str>, location: &mut String) {
        location.clear();
        location.push_str(&self.before);
        if let Some(rest) = &self.rest {
            let behind = behind(path, rest.segments);
            push_encoded(location, behind);
            // With nothing between them the slashes before and after would make what follows a host.
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

/// A path of this host, or a URL, of what a URI may be made of.
fn check(to: &str) -> Result<(), String> {
    let is_url = ["http://", "https://"].iter().any(|scheme| host_behind(to, scheme).is_some());
    let is_path = to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/\\");
    if !is_url && !is_path {
        return Err("a target begins with one slash, or with http:// or https:// and a host".to_owned());
    }
    match to.chars().find(|&sign| is_no_uri(sign) && !matches!(sign, '{' | '}')) {
        Some(sign) => Err(format!("{sign:?} can't stand in a URL: percent-encode it")),
        None => Ok(()),
    }
}

/// The host of a URL of this scheme, if it has one.
fn host_behind<'a>(to: &'a str, scheme: &str) -> Option<&'a str> {
    let start = to.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme))?;
    let rest = &to[start.len()..];
    let host = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    (!host.is_empty() && !host.contains(['@', '\\'])).then_some(host)
}

/// Whether what follows is a part of the path, and can't be one of the host.
fn is_inside_path(before: &str) -> bool {
    let path = before.find("://").map_or(before, |at| &before[at + 3..]);
    before.ends_with('/') && path.contains('/') && !path.contains('?')
}

/// What stands behind so many segments of a path, as it was sent. No slash begins it: with another one it would name a host.
fn behind(path: &str, segments: usize) -> &str {
    let mut rest = path.trim_start_matches('/');
    for _ in 0..segments {
        let end = rest.find('/').unwrap_or(rest.len());
        rest = rest[end..].trim_start_matches('/');
    }
    rest
}

/// Appends what a client has sent; what is no part of a URL is encoded. Browsers read a backslash as a slash.
fn push_encoded(location: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(is_no_uri) {
        let (plain, behind) = rest.split_at(at);
        let (sign, behind) = behind.split_at(behind.chars().next().map_or(0, char::len_utf8));
        location.push_str(plain);
        sign.bytes().for_each(|byte| push_escape(location, byte));
        rest = behind;
    }
    location.push_str(rest);
}

/// Whether it is none of what a URI is made of (RFC 3986 section 2).
fn is_no_uri(sign: char) -> bool {
    !sign.is_ascii_graphic() || matches!(sign, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
}

fn push_escape(location: &mut String, byte: u8) {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    location.push('%');
    location.push(DIGITS[usize::from(byte >> 4)]);
    location.push(DIGITS[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::Redirect;

    fn located(to: &str, segments: Option<usize>, path: &str, query: Option<&str>) -> String {
        let mut location = "left over".to_owned();
        Redirect::new(308, to, segments).expect(to).locate(path, query, &mut location);
        location
    }

    #[test]
    fn the_new_place_has_rest_and_query() {
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
        ] {
            assert_eq!(located(to, segments, path, query), location, "{to} {path}");
        }
    }

    #[test]
    fn no_path_leads_to_another_host() {
        for (path, location) in [
            ("/old//evil.example/", "/evil.example/"),
            ("//old//evil.example", "/evil.example"),
            ("/old/\\evil.example", "/%5Cevil.example"),
            ("/old/\\/evil.example", "/%5C/evil.example"),
            ("/old/https://evil.example", "/https://evil.example"),
            ("/old/%2f%2fevil.example", "/%2f%2fevil.example"),
            ("/old/%5cevil.example", "/%5cevil.example"),
            ("/old/@evil.example", "/@evil.example"),
            ("/old/a\"<b>`{c}", "/a%22%3Cb%3E%60%7Bc%7D"),
        ] {
            assert_eq!(located("/{rest}", Some(1), path, None), location, "{path}");
        }
    }

    #[test]
    fn targets_that_are_none_are_refused() {
        for (status, to, segments, why) in [
            (200, "/new", None, "200 is no redirect"),
            (304, "/new", None, "304 is no redirect"),
            (308, "", None, "begins with one slash"),
            (308, "new", None, "begins with one slash"),
            (308, "//evil.example", None, "begins with one slash"),
            (308, "/\\evil.example", None, "begins with one slash"),
            (308, "ftp://example.org/", None, "begins with one slash"),
            (308, "https://", None, "begins with one slash"),
            (308, "https:///a", None, "begins with one slash"),
            (308, "https://a@b/", None, "begins with one slash"),
            (308, "javascript:alert(1)", None, "begins with one slash"),
            (308, "/a b", None, "percent-encode"),
            (308, "/a\r\nX: y", None, "percent-encode"),
            (308, "/caf\u{e9}", None, "percent-encode"),
            (308, "/a\\b", None, "percent-encode"),
            (308, "/a/{rest}", None, "the path has none"),
            (308, "/a/{rest}/{rest}", Some(1), "stands once"),
            (308, "/a/{rest}#{rest}", Some(1), "stands once"),
            (308, "/a{rest}", Some(1), "behind a slash"),
            (308, "/a?b={rest}", Some(1), "behind a slash"),
            (308, "/a?b=/{rest}", Some(1), "behind a slash"),
            (308, "https://example.org{rest}", Some(1), "behind a slash"),
            (308, "https://{rest}", Some(1), "behind a slash"),
            (308, "/a/{host}", Some(1), "alone is replaced"),
        ] {
            let error = Redirect::new(status, to, segments).expect_err(to);
            assert!(error.contains(why), "{to}: {error}");
        }
    }
}
