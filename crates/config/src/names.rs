//! Names that were meant: the nearest to one that is unknown.

use crate::limits::{NAME_CHARS_MAX, SHOWN_CHARS_MAX};
use crate::source::printable;

/// Returns the known name that is likely to be meant: at most a third of it is different.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let plain = given.to_lowercase().replace('-', "_");
    let distance = |name: &str| strsim::damerau_levenshtein(&plain, name);
    let near = |name: &&str| distance(name) <= (name.len() / 3).max(1);
    known.into_iter().filter(near).min_by_key(|name| distance(name))
}

/// A list as a sentence has it: `a, b or c`.
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

/// A name or value as a sentence repeats it: cut, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).map(printable).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{nearest, or_list, shown};
    use crate::limits::{NAME_CHARS_MAX, SHOWN_CHARS_MAX};

    #[test]
    fn the_nearest_is_near() {
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
    fn lists_and_values_read_well() {
        assert_eq!(or_list(&["a", "b", "c"]), "a, b or c");
        assert_eq!((or_list(&["a"]), or_list::<&str>(&[])), ("a".to_owned(), String::new()));
        assert_eq!(shown("a\u{7}b"), "a\u{fffd}b");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), SHOWN_CHARS_MAX + 1);
    }
}
