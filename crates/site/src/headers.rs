//! Changes to response headers, checked and encoded.

use shearwater::engine::media_type::is_token;
use shearwater::engine::{HeaderRules, On};

use crate::options::{Headers, InvalidValue, invalid};

/// Changes by header name, without duplicates: the value to set, or `None` to remove the header.
pub(crate) type Changes = Vec<(String, Option<String>)>;

/// Headers that can't be changed, each with the reason.
const OWN: [(&[&str], &str); 4] = [
    (
        &["Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"],
        "it frames the message",
    ),
    (&["Date"], "it is set by the server"),
    (&["Content-Type"], "set `mime` for files, `respond.type` for fixed responses"),
    (&["Allow", "Content-Encoding", "Content-Range", "Location"], "it belongs to the response"),
];

/// Headers that can be removed, but not set.
const OWN_VALUE: (&[&str], &str) =
    (&["ETag", "Last-Modified"], "it identifies the version of the content, which only the server knows");

/// Headers that can be added to, but not removed.
const NEEDED: (&[&str], &str) =
    (&["Vary"], "without it a shared cache would send one client's response to another");

/// Headers about caching, and about the version of the content.
const FRESHNESS: [&str; 10] = [
    "Accept-Ranges",
    "Age",
    "Cache-Control",
    "CDN-Cache-Control",
    "ETag",
    "Expires",
    "Last-Modified",
    "Pragma",
    "Repr-Digest",
    "Surrogate-Control",
];

/// The policy of a page. Built-in pages set one that fits them.
const POLICY: &str = "Content-Security-Policy";
const POLICY_REPORTED: &str = "Content-Security-Policy-Report-Only";

/// Checks changes. Returns the valid ones, and the others as (key, error).
pub(crate) fn changes(headers: &Headers) -> (Changes, Vec<(String, InvalidValue)>) {
    let mut changes = Changes::new();
    let mut mistakes = Vec::new();
    let set = headers.set.iter().map(|(name, value)| (format!("set.{name}"), name, Some(value.clone())));
    let removed = headers.remove.iter().enumerate();
    let removed = removed.map(|(index, name)| (format!("remove[{index}]"), name, None));
    for (key, name, change) in set.chain(removed) {
        let is_twice = changes.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let checked = match is_twice {
            true => Err(invalid("header is changed twice", "header names are case-insensitive: keep one")),
            false => check(name, change.as_deref()),
        };
        match checked {
            Ok(()) => changes.push((name.clone(), change)),
            Err(invalid) => mistakes.push((key, invalid)),
        }
    }
    (changes, mistakes)
}

fn check(name: &str, change: Option<&str>) -> Result<(), InvalidValue> {
    let is_named = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
    let (more, verb) = match change {
        Some(_) => (&OWN_VALUE, "set"),
        None => (&NEEDED, "removed"),
    };
    if let Some((_, why)) = OWN.iter().chain([more]).find(|(names, _)| is_named(names)) {
        return Err(invalid(format!("header can't be {verb}"), *why));
    }
    if !is_token(name) {
        return Err(invalid(
            "invalid header name",
            "use letters, digits and hyphens, without a space or colon",
        ));
    }
    if let Some(value) = change {
        let is_printable = value.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t');
        if !is_printable || value.trim_matches([' ', '\t']) != value {
            let help = "use printable ASCII without line breaks and without spaces at the ends";
            return Err(invalid("invalid header value", help));
        }
    }
    apply(&mut HeaderRules::new(), name, change).map_err(|why| invalid("invalid header", why))
}

/// Merges the changes of a site into those of its route, which take precedence.
pub(crate) fn merge(site: &Changes, route: Changes) -> Changes {
    let is_own = |name: &str| route.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut merged: Changes = site.iter().filter(|(name, _)| !is_own(name)).cloned().collect();
    merged.extend(route);
    merged
}

/// Returns whether a header is set.
pub(crate) fn sets(changes: &Changes, name: &str) -> bool {
    changes.iter().any(|(known, change)| change.is_some() && known.eq_ignore_ascii_case(name))
}

/// Encodes changes.
///
/// # Panics
/// If the changes are not those of [`changes`], which tests each.
pub(crate) fn header_rules(changes: &Changes) -> HeaderRules {
    let mut header_rules = HeaderRules::new();
    for (name, change) in changes {
        apply(&mut header_rules, name, change.as_deref()).expect("each change was tested");
    }
    header_rules
}

fn apply(header_rules: &mut HeaderRules, name: &str, change: Option<&str>) -> Result<(), String> {
    let is_policy = [POLICY, POLICY_REPORTED].iter().any(|policy| policy.eq_ignore_ascii_case(name));
    match change {
        // Only built-in pages have one.
        None if is_policy => Ok(header_rules),
        None => header_rules.remove(name),
        Some(value) if is_policy => header_rules.add_unless(POLICY, name, value, responses(name)),
        Some(value) if name.eq_ignore_ascii_case("Vary") => header_rules.add(name, value, On::Every),
        Some(value) => header_rules.set(name, value, responses(name)),
    }
    .map(|_| ())
}

/// Returns the responses that a header is set in.
fn responses(name: &str) -> On {
    if FRESHNESS.iter().any(|field| field.eq_ignore_ascii_case(name)) {
        return On::NoError;
    }
    let has_start = |start: &str| name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    if has_start("Content-") && !has_start("Content-Security-Policy") { On::Content } else { On::Every }
}

#[cfg(test)]
mod tests {
    use super::{Changes, changes, merge, responses};
    use crate::options::Headers;
    use shearwater::engine::On;

    fn headers(set: &[(&str, &str)], remove: &[&str]) -> Headers {
        let set = set.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Headers { set, remove: remove.iter().map(|&name| name.to_owned()).collect() }
    }

    #[test]
    fn rejects_headers_of_the_server() {
        let own = "Connection CONTENT-LENGTH Keep-Alive Trailer transfer-encoding Upgrade date Content-Type Allow \
                   content-encoding Content-Range Location";
        for name in own.split_whitespace().chain(["a b", ""]) {
            let (set, mistakes) = changes(&headers(&[(name, "x")], &[]));
            assert!(
                set.is_empty() && mistakes.len() == 1 && mistakes[0].0 == format!("set.{name}"),
                "{name}"
            );
            let (removed, mistakes) = changes(&headers(&[], &[name]));
            assert!(removed.is_empty() && mistakes.len() == 1, "{name}");
        }
        for (name, set, remove) in
            [("etag", 1, 0), ("Last-Modified", 1, 0), ("vary", 0, 1), ("Accept-Ranges", 0, 0)]
        {
            assert_eq!(changes(&headers(&[(name, "x")], &[])).1.len(), set, "{name}");
            assert_eq!(changes(&headers(&[], &[name])).1.len(), remove, "{name}");
        }
        for value in ["a\r\nb: c", "a\nb", "\0", "a\u{7f}", " a", "a ", "é"] {
            assert_eq!(changes(&headers(&[("X", value)], &[])).1.len(), 1, "{value:?}");
        }
        let (known, mistakes) =
            changes(&headers(&[("X-A", "1"), ("x-a", "2"), ("B", "3")], &["b", "C", "c"]));
        assert_eq!(known.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["X-A", "B", "C"]);
        assert_eq!(
            mistakes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["set.x-a", "remove[0]", "remove[2]"]
        );
    }

    #[test]
    fn changes_of_a_route_override_those_of_its_site() {
        let of = |set: &[_], remove: &[_]| changes(&headers(set, remove)).0;
        let merged =
            merge(&of(&[("A", "1"), ("B", "2")], &["C", "D"]), of(&[("b", "3"), ("D", "4")], &["a", "E"]));
        let wanted: Changes = [("C", None), ("b", Some("3")), ("D", Some("4")), ("a", None), ("E", None)]
            .map(|(name, change)| (name.to_owned(), change.map(str::to_owned)))
            .into();
        assert_eq!(merged, wanted);
    }

    #[test]
    fn content_headers_are_set_with_content_only() {
        for (name, on) in [
            ("X-Frame-Options", On::Every),
            ("content-security-policy", On::Every),
            ("Content-Security-Policy-Report-Only", On::Every),
            ("Contents", On::Every),
            ("cache-control", On::NoError),
            ("Expires", On::NoError),
            ("Content-Disposition", On::Content),
            ("content-language", On::Content),
        ] {
            assert_eq!(responses(name), on, "{name}");
        }
    }
}
