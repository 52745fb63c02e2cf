//! A site's and a route's field changes, made one and encoded.

use shearwater::{On, Overlay};

use crate::options::Headers;

/// What becomes of a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    Set(String),
    Remove,
}

/// Field changes by name, no name twice, in any case.
pub(crate) type Changes = Vec<(String, Change)>;

/// Fields that are no site's to change, each with the reason.
const OWN: [(&[&str], &str); 4] = [
    (
        &["Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"],
        "says where an answer ends, which the server alone knows",
    ),
    (&["Date"], "is the server's clock"),
    (
        &["Content-Type"],
        "belongs to the content: `mime` changes that of files, `type` that of a fixed answer",
    ),
    (&["Allow", "Content-Encoding", "Content-Range", "Location"], "is the answer itself"),
];

/// Fields that a site may leave out, but not set.
const OWN_VALUE: (&[&str], &str) =
    (&["ETag", "Last-Modified"], "says which version of the content it is, which the server alone knows");

/// Fields that a site may add to, but not leave out.
const NEEDED: (&[&str], &str) =
    (&["Vary"], "says that others get something else: without it a shared cache gives them this");

/// Fields that say how long an answer may be kept, and which version of the content it is.
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

/// The policy of a page. The server's own pages set one that fits them.
const POLICY: &str = "Content-Security-Policy";
const POLICY_REPORTED: &str = "Content-Security-Policy-Report-Only";

/// What is changed, with what is wrong with it: (the field's name, why).
pub(crate) fn changes(headers: &Headers) -> (Changes, Vec<(String, String)>) {
    let mut changes = Changes::new();
    let mut mistakes = Vec::new();
    let set = headers.set.iter().map(|(name, value)| (name, Change::Set(value.clone())));
    let removed = headers.remove.iter().map(|name| (name, Change::Remove));
    for (name, change) in set.chain(removed) {
        let twice = changes.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let why = if twice { Some("it is named twice".to_owned()) } else { why_not(name, &change) };
        match why {
            Some(why) => mistakes.push((name.clone(), why)),
            None => changes.push((name.clone(), change)),
        }
    }
    (changes, mistakes)
}

/// Why a field can't be changed so.
fn why_not(name: &str, change: &Change) -> Option<String> {
    let is_named = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(name));
    let more = match change {
        Change::Set(_) => &OWN_VALUE,
        Change::Remove => &NEEDED,
    };
    if let Some((_, why)) = OWN.iter().chain([more]).find(|(names, _)| is_named(names)) {
        return Some(format!("it {why}"));
    }
    apply(&mut Overlay::new(), name, change).err()
}

/// The changes of a route: its own, and those of its site that it doesn't speak of.
pub(crate) fn merge(site: &Changes, route: Changes) -> Changes {
    let is_own = |name: &str| route.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut merged: Changes = site.iter().filter(|(name, _)| !is_own(name)).cloned().collect();
    merged.extend(route);
    merged
}

/// Whether a field is set.
pub(crate) fn sets(changes: &Changes, name: &str) -> bool {
    let is_set = |(known, change): &(String, Change)| {
        known.eq_ignore_ascii_case(name) && matches!(change, Change::Set(_))
    };
    changes.iter().any(is_set)
}

/// The changes, encoded; `None` where there is none.
///
/// # Panics
/// If they are not those of [`changes`], which has tried each.
pub(crate) fn overlay(changes: &Changes) -> Option<Overlay> {
    let mut overlay = Overlay::new();
    for (name, change) in changes {
        apply(&mut overlay, name, change).expect("each change was tried");
    }
    (!changes.is_empty()).then_some(overlay)
}

fn apply(overlay: &mut Overlay, name: &str, change: &Change) -> Result<(), String> {
    let is_policy = [POLICY, POLICY_REPORTED].iter().any(|policy| policy.eq_ignore_ascii_case(name));
    match change {
        // Only the server's own pages have one.
        Change::Remove if is_policy => Ok(overlay),
        Change::Remove => overlay.remove(name),
        Change::Set(value) if is_policy => overlay.add_unless(POLICY, name, value, answers(name)),
        Change::Set(value) if name.eq_ignore_ascii_case("Vary") => overlay.add(name, value, On::Every),
        Change::Set(value) => overlay.set(name, value, answers(name)),
    }
    .map(|_| ())
}

/// The answers that a field is set in.
fn answers(name: &str) -> On {
    if FRESHNESS.iter().any(|field| field.eq_ignore_ascii_case(name)) {
        return On::NoError;
    }
    let has_start = |start: &str| name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    if has_start("Content-") && !has_start("Content-Security-Policy") { On::Content } else { On::Every }
}

#[cfg(test)]
mod tests {
    use super::{Change, Changes, answers, changes, merge, overlay};
    use crate::options::Headers;
    use shearwater::On;

    fn headers(set: &[(&str, &str)], remove: &[&str]) -> Headers {
        let set = set.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Headers { set, remove: remove.iter().map(|&name| name.to_owned()).collect() }
    }

    #[test]
    fn what_is_no_sites_to_change_is_refused() {
        let own = [
            "Connection",
            "CONTENT-LENGTH",
            "Keep-Alive",
            "Trailer",
            "transfer-encoding",
            "Upgrade",
            "date",
            "Content-Type",
            "Allow",
            "content-encoding",
            "Content-Range",
            "Location",
            "a b",
            "",
        ];
        for name in own {
            let (set, mistakes) = changes(&headers(&[(name, "x")], &[]));
            assert!(set.is_empty() && mistakes.len() == 1 && mistakes[0].0 == name, "{name}");
            let (removed, mistakes) = changes(&headers(&[], &[name]));
            assert!(removed.is_empty() && mistakes.len() == 1, "{name}");
        }
        for (name, set, remove) in
            [("etag", 1, 0), ("Last-Modified", 1, 0), ("vary", 0, 1), ("Accept-Ranges", 0, 0)]
        {
            assert_eq!(changes(&headers(&[(name, "x")], &[])).1.len(), set, "{name}");
            assert_eq!(changes(&headers(&[], &[name])).1.len(), remove, "{name}");
        }
        for value in ["a\r\nb: c", "a\nb", "\0", "a\u{7f}"] {
            assert_eq!(changes(&headers(&[("X", value)], &[])).1.len(), 1, "{value:?}");
        }
        let (known, mistakes) =
            changes(&headers(&[("X-A", "1"), ("x-a", "2"), ("B", "3")], &["b", "C", "c"]));
        assert_eq!(known.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["X-A", "B", "C"]);
        assert_eq!(mistakes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x-a", "b", "c"]);
    }

    #[test]
    fn a_routes_changes_take_the_place_of_its_sites() {
        let of = |set: &[_], remove: &[_]| changes(&headers(set, remove)).0;
        let merged =
            merge(&of(&[("A", "1"), ("B", "2")], &["C", "D"]), of(&[("b", "3"), ("D", "4")], &["a", "E"]));
        let set = |value: &str| Change::Set(value.to_owned());
        let wanted: Changes = [
            ("C", Change::Remove),
            ("b", set("3")),
            ("D", set("4")),
            ("a", Change::Remove),
            ("E", Change::Remove),
        ]
        .map(|(name, change)| (name.to_owned(), change))
        .into();
        assert_eq!(merged, wanted);
        assert!(overlay(&merged).is_some() && overlay(&Changes::new()).is_none());
    }

    #[test]
    fn fields_of_the_content_are_set_with_content_alone() {
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
            assert_eq!(answers(name), on, "{name}");
        }
    }
}
