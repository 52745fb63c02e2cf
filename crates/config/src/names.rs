//! Suggestions for misspelled names.

use crate::limits::NAME_CHARS_MAX;

/// Returns the known name most similar to `given`, if at most a third of it differs.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let plain = given.to_lowercase().replace('-', "_");
    let distance = |name: &str| strsim::damerau_levenshtein(&plain, name);
    let is_near = |name: &&str| distance(name) <= (name.len() / 3).max(1);
    known.into_iter().filter(is_near).min_by_key(|name| distance(name))
}

/// Joins names as in a sentence: `a, b or c`.
pub(crate) fn or_list<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", first.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{nearest, or_list};
    use crate::limits::NAME_CHARS_MAX;

    #[test]
    fn suggests_similar_names_only() {
        let known = ["workers", "http_port", "backlog", "pin", "driver"];
        for (given, meant) in [
            ("wrokers", Some("workers")),
            ("Workers", Some("workers")),
            ("http-port", Some("http_port")),
            ("httpport", Some("http_port")),
            ("pins", Some("pin")),
            ("x", None),
            ("nothing_alike", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
        assert_eq!(nearest(&"workers".repeat(NAME_CHARS_MAX), known), None);
    }

    #[test]
    fn joins_names_with_or() {
        assert_eq!(or_list(&["a", "b", "c"]), "a, b or c");
        assert_eq!((or_list(&["a"]), or_list::<&str>(&[])), ("a".to_owned(), String::new()));
    }
}
