//! Does a client ask for HTML? (RFC 9110 section 12.5.1) A pure function.

/// Whether one of the `Accept` fields names `text/html`, and doesn't refuse it. Browsers do when they show a page; programs that take
/// anything (`*/*`) are better served with a line of text.
pub(crate) fn names_html<'a>(values: impl Iterator<Item = &'a [u8]>) -> bool {
    values.flat_map(|value| value.split(|&byte| byte == b',')).any(is_html)
}

/// Whether an element of the list is HTML, with a weight other than 0.
fn is_html(element: &[u8]) -> bool {
    let mut parts = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let is_named = parts.next().is_some_and(|range| range.eq_ignore_ascii_case(b"text/html"));
    is_named && !parts.any(is_zero)
}

/// Whether a parameter is a weight of 0, which may have decimals (RFC 9110 section 12.4.2).
fn is_zero(parameter: &[u8]) -> bool {
    let Some((name, value)) = parameter.split_at_checked(2) else { return false };
    name.eq_ignore_ascii_case(b"q=")
        && value.starts_with(b"0")
        && value.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::names_html;

    #[test]
    fn html_is_for_who_names_it() {
        for (value, wanted) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", true),
            ("TEXT/HTML", true),
            ("application/json, text/html ; q=0.1", true),
            ("text/html;level=1", true),
            ("text/html;q=0.001", true),
            ("*/*", false),
            ("text/*", false),
            ("", false),
            ("text/html;q=0", false),
            ("text/html; Q=0.000", false),
            ("text/htmlx", false),
            ("application/json;x=text/html", false),
            ("text/plain, text/html;q=0, image/png", false),
        ] {
            assert_eq!(names_html([value.as_bytes()].into_iter()), wanted, "{value}");
        }
        assert!(names_html([&b"image/png"[..], b"text/html"].into_iter()));
        assert!(!names_html(std::iter::empty()));
    }
}
