//! Negotiation of the media type by `Accept` (RFC 9110 section 12.5.1). Pure functions.

use shearwater_compress::negotiation::parse_qvalue;

/// Returns the quality of a media type, in thousandths. The most specific range counts; without a field it is 1000.
pub(crate) fn media_type_weight<'a>(values: impl Iterator<Item = &'a [u8]>, media_type: &[u8]) -> u16 {
    let mut elements = media_ranges(values).peekable();
    if elements.peek().is_none() {
        return 1000;
    }
    let fitting = elements.filter_map(|(range, weight)| Some((precision(range, media_type)?, weight)));
    // Of equally specific ranges the first counts.
    let best = fitting.reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.map_or(0, |(_, weight)| weight)
}

/// Returns whether a media type is accepted by its own name, not by a wildcard.
pub fn names_media_type<'a>(values: impl Iterator<Item = &'a [u8]>, media_type: &[u8]) -> bool {
    media_ranges(values).any(|(range, weight)| weight > 0 && range.eq_ignore_ascii_case(media_type))
}

/// Returns ranges without parameters, and their qualities. Skips those with an invalid quality.
fn media_ranges<'a>(values: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = (&'a [u8], u16)> {
    values.flat_map(|value| value.split(|&byte| byte == b',')).filter_map(|element| {
        let mut parts = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let range = parts.next().filter(|range| !range.is_empty())?;
        let weight = parts.find_map(|part| part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q=")));
        Some((range, weight.map_or(Some(1000), parse_qvalue)?))
    })
}

/// Returns the specificity of a range: full type, wildcard subtype, full wildcard. `None` if it doesn't match.
fn precision(range: &[u8], media_type: &[u8]) -> Option<u8> {
    if range.eq_ignore_ascii_case(media_type) {
        return Some(2);
    }
    match range.strip_suffix(b"/*")? {
        b"*" => Some(0),
        kind => {
            let own = media_type.split(|&byte| byte == b'/').next().unwrap_or(media_type);
            kind.eq_ignore_ascii_case(own).then_some(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{media_type_weight, names_media_type};

    const HTML: &[u8] = b"text/html";

    fn weight_of(fields: &[&str], media_type: &str) -> u16 {
        media_type_weight(fields.iter().map(|field| field.as_bytes()), media_type.as_bytes())
    }

    #[test]
    fn most_specific_media_range_wins() {
        for (field, html, json) in [
            ("", 1000, 1000),
            ("*/*", 1000, 1000),
            ("application/json", 0, 1000),
            ("application/json, text/html;q=0.5", 500, 1000),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 1000, 800),
            ("text/*;q=0.3, text/html;q=0.7, */*;q=0.5", 700, 500),
            ("*/*;q=0.5, text/html;q=0.7, text/*;q=0.3", 700, 500),
            ("APPLICATION/*, Text/HTML;Q=0.1", 100, 1000),
            ("text/html;level=1;q=0.4", 400, 0),
            ("text/html;q=0, */*", 0, 1000),
            ("text/html;q=2, */*;q=0.1", 100, 100),
            ("text/htm, json, */json, ;q=1", 0, 0),
            ("text/html;q=0.1, text/html;q=0.9", 100, 0),
        ] {
            let weights = [weight_of(&[field], "text/html"), weight_of(&[field], "application/json")];
            assert_eq!(weights, [html, json], "{field}");
        }
        assert_eq!(weight_of(&[], "text/html"), 1000);
        assert_eq!(weight_of(&["image/*", "text/*;q=0.2"], "text/html"), 200);
    }

    #[test]
    fn wildcards_do_not_name_a_media_type() {
        for (field, is_named) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", true),
            ("TEXT/HTML", true),
            ("application/json, text/html ; q=0.1", true),
            ("text/html;level=1", true),
            ("text/html;q=0.001", true),
            ("*/*", false),
            ("text/*, */*", false),
            ("", false),
            ("text/html;q=0", false),
            ("text/html; Q=0.000", false),
            ("text/htmlx", false),
            ("application/json;x=text/html", false),
            ("text/plain, text/html;q=0, image/png", false),
        ] {
            assert_eq!(names_media_type([field.as_bytes()].into_iter(), HTML), is_named, "{field}");
        }
        assert!(names_media_type([&b"image/png"[..], b"text/html"].into_iter(), HTML));
        assert!(!names_media_type(std::iter::empty(), HTML));
    }
}
