//! Compares the output of a command with a page.
//!
//! A line `...` matches any lines, `...` within a line any text. Times and tags match by their format.

/// Fields whose values are others each time.
const CHANGING: &[&str] = &["Date: ", "Last-Modified: ", "ETag: "];

/// Matches anything.
const ANYTHING: &str = "...";

/// Returns whether `real` matches what is shown.
pub(crate) fn is_as_shown(shown: &[String], real: &[&str]) -> bool {
    match shown.split_first() {
        None => real.is_empty(),
        Some((line, rest)) if line == ANYTHING => {
            (0..=real.len()).any(|passed| is_as_shown(rest, &real[passed..]))
        }
        Some((line, rest)) => {
            real.first().is_some_and(|real| is_line_as_shown(line, real)) && is_as_shown(rest, &real[1..])
        }
    }
}

fn is_line_as_shown(shown: &str, real: &str) -> bool {
    let (shown, real) = (form(shown), form(real));
    let mut parts = shown.split(ANYTHING);
    let Some(mut rest) = parts.next().and_then(|first| real.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A line, in which what changes each time is only its kind: digits of a time, characters of a tag.
fn form(line: &str) -> String {
    let Some(name) = CHANGING.iter().find(|name| line.starts_with(**name)) else { return line.to_owned() };
    let value = &line[name.len()..];
    let form = match *name {
        "ETag: " => match value.split_once('"') {
            Some((weak, tag)) if tag.ends_with('"') => format!("{weak}\"tag\""),
            _ => value.to_owned(),
        },
        _ if value.len() == "Sun, 06 Nov 1994 08:49:37 GMT".len() && value.ends_with(" GMT") => {
            "a time".to_owned()
        }
        _ => value.to_owned(),
    };
    format!("{name}{form}")
}

#[test]
fn compares_shown_and_printed_lines() {
    let is = |shown: &str, real: &str| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        is_as_shown(&shown, &real.lines().collect::<Vec<_>>())
    };
    assert!(is("a\nb", "a\nb") && is("", "") && is("...", "") && is("...", "a\nb"));
    assert!(!is("a", "a\nb") && !is("a\nb", "a") && !is("b\na", "a\nb") && !is("", "a"));
    assert!(is("a\n...\nd", "a\nb\nc\nd") && is("a\n...\nb", "a\nb") && !is("a\n...\nd", "a\nd\nc"));
    assert!(is("x ... y ... z", "x 1 y 2 z") && !is("x ... y", "x 1 y 2") && !is("x ...", "y x 1"));
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
    assert!(
        is(date, "Date: Mon, 07 Nov 1994 08:49:37 GMT")
            && !is(date, "Date: now")
            && !is(date, "Last-Modified: Mon, 07 Nov 1994 08:49:37 GMT")
    );
    assert!(
        is("ETag: \"1-2\"", "ETag: \"3-4-gz\"")
            && !is("ETag: \"1\"", "ETag: W/\"1\"")
            && !is("ETag: \"1\"", "ETag: 1")
    );
}
