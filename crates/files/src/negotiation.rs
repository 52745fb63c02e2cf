//! Content negotiation by `Accept` and `Accept-Encoding` (RFC 9110 section 12.5). Pure functions.

use shearwater_io::fs::Coding;

/// A set of codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codings(u8);

impl Codings {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns whether the set contains this coding.
    #[must_use]
    pub const fn has(self, coding: Coding) -> bool {
        self.0 & (1 << coding as u8) != 0
    }

    /// Adds a coding.
    pub fn add(&mut self, coding: Coding) {
        self.0 |= 1 << coding as u8;
    }
}

/// Selects the coding to send from the available ones; `None` for the plain file. Of equally weighted codings, the
/// first in `preferred` wins.
///
/// A coding wins over the plain file at equal weight. Without a field nothing is encoded. A client that rejects both
/// the plain file and every available coding gets the plain file: a server may disregard preferences (RFC 9110 section
/// 12.1), and that serves more clients than `406`.
#[must_use]
pub fn choose_coding<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    available: Codings,
    preferred: &[Coding],
) -> Option<Coding> {
    let mut weights = CodingWeights::default();
    for element in values.flat_map(|value| value.split(|&byte| byte == b',')) {
        weights.add(element.trim_ascii());
    }
    let each = || preferred.iter().copied().filter(|&coding| available.has(coding));
    let best = each().map(|coding| weights.of(coding)).max()?;
    let is_liked = best > 0 && best >= weights.of_identity();
    each().find(|&coding| is_liked && weights.of(coding) == best)
}

/// Quality of each coding, in thousandths; `None` if it isn't listed.
#[derive(Default)]
struct CodingWeights {
    codings: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    others: Option<u16>,
}

impl CodingWeights {
    /// Adds an element of the list. The first of each name counts; invalid ones are skipped.
    fn add(&mut self, element: &[u8]) {
        let Some((name, weight)) = parse_element(element) else { return };
        let place = match name {
            b"*" => &mut self.others,
            _ if name.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            _ => match coding_of(name) {
                Some(coding) => &mut self.codings[coding as usize],
                None => return,
            },
        };
        place.get_or_insert(weight);
    }

    fn of(&self, coding: Coding) -> u16 {
        self.codings[coding as usize].or(self.others).unwrap_or(0)
    }

    /// Returns the quality of `identity`, 0 if it isn't listed: it is the fallback.
    fn of_identity(&self) -> u16 {
        self.identity.or(self.others).unwrap_or(0)
    }
}

/// Parses a coding's name and quality.
fn parse_element(element: &[u8]) -> Option<(&[u8], u16)> {
    let Some(end) = element.iter().position(|&byte| byte == b';') else { return Some((element, 1000)) };
    let weight = element[end + 1..].trim_ascii();
    let (name, value) = weight.split_at_checked(2)?;
    let weight = if name.eq_ignore_ascii_case(b"q=") { parse_qvalue(value) } else { None };
    weight.map(|weight| (element[..end].trim_ascii_end(), weight))
}

/// Returns the coding of this name, case-insensitively. `x-gzip` is an old name of gzip (RFC 9110 section 8.4.1.3).
fn coding_of(name: &[u8]) -> Option<Coding> {
    let is_named = |coding: &Coding| name.eq_ignore_ascii_case(coding.name().as_bytes());
    let old = name.eq_ignore_ascii_case(b"x-gzip").then_some(Coding::Gzip);
    Coding::ALL.into_iter().find(is_named).or(old)
}

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

/// Parses a quality value, in thousandths: `0` or `1`, with up to three decimals.
pub(crate) fn parse_qvalue(value: &[u8]) -> Option<u16> {
    let (whole, decimals) = match value {
        [whole @ b'0'..=b'1'] => (whole, &[][..]),
        [whole @ b'0'..=b'1', b'.', decimals @ ..] => (whole, decimals),
        _ => return None,
    };
    if decimals.len() > 3 || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |place: usize| u16::from(decimals.get(place).map_or(0, |digit| digit - b'0'));
    let weight = u16::from(whole - b'0') * 1000 + digit(0) * 100 + digit(1) * 10 + digit(2);
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::{Coding, Codings, choose_coding, media_type_weight, names_media_type, parse_qvalue};

    /// Returns the coding for these field values and available codings.
    fn chosen(fields: &[&str], available: &[Coding]) -> &'static str {
        preferred(fields, available, &Coding::ALL)
    }

    fn preferred(fields: &[&str], available: &[Coding], preferred: &[Coding]) -> &'static str {
        let mut codings = Codings::NONE;
        available.iter().for_each(|&coding| codings.add(coding));
        let values = fields.iter().map(|field| field.as_bytes());
        choose_coding(values, codings, preferred).map_or("identity", Coding::name)
    }

    #[test]
    fn chooses_the_coding_of_the_highest_quality() {
        for (field, wanted) in [
            ("gzip, deflate, br, zstd", "br"),
            ("gzip, deflate, zstd", "zstd"),
            ("gzip, deflate", "gzip"),
            ("x-gzip", "gzip"),
            ("GZIP", "gzip"),
            ("deflate", "identity"),
            ("", "identity"),
            ("br;q=0.5, gzip", "gzip"),
            ("br;q=0.5,gzip;q=0.8,zstd;q=0.801", "zstd"),
            ("br ; q=0.9 , gzip;Q=0.8", "br"),
            ("br;q=1.000,gzip;q=1.0", "br"),
            ("br;q=0, gzip;q=0.001", "gzip"),
            ("br;q=0", "identity"),
            ("*", "br"),
            ("*;q=0.1, zstd", "zstd"),
            ("*;q=0", "identity"),
            ("gzip, *;q=0", "gzip"),
            ("br;q=0, *", "zstd"),
            // The plain file, listed or by a wildcard.
            ("identity", "identity"),
            ("identity;q=1, br;q=0.5", "identity"),
            ("identity;q=0.5, br;q=0.5", "br"),
            ("identity;q=0.5, *;q=0", "identity"),
            ("identity;q=0, gzip;q=0.001", "gzip"),
            ("identity;q=0", "identity"),
            ("br;q=0.5, *;q=0.6, zstd;q=0, gzip;q=0", "identity"),
            // Invalid elements are skipped.
            ("br;q=2, gzip", "gzip"),
            ("br;q=0.1234, gzip", "gzip"),
            ("br;q=-1, gzip", "gzip"),
            ("br;q, gzip", "gzip"),
            ("br;level=9, gzip", "gzip"),
            ("br gzip", "identity"),
            ("brr, gzi", "identity"),
            (",, ,gzip,", "gzip"),
            // Duplicates: the first counts.
            ("br;q=0, br, gzip", "gzip"),
        ] {
            assert_eq!(chosen(&[field], &Coding::ALL), wanted, "{field}");
        }
        assert_eq!(chosen(&[], &Coding::ALL), "identity");
        assert_eq!(chosen(&["deflate", "gzip"], &Coding::ALL), "gzip");
    }

    #[test]
    fn chooses_only_available_codings() {
        assert_eq!(chosen(&["gzip, br, zstd"], &[]), "identity");
        assert_eq!(chosen(&["gzip, br, zstd"], &[Coding::Gzip]), "gzip");
        assert_eq!(chosen(&["gzip, br;q=0.5"], &[Coding::Br, Coding::Zstd]), "br");
        assert_eq!(chosen(&["br"], &[Coding::Zstd, Coding::Gzip]), "identity");
        assert_eq!(chosen(&["*;q=0.5, gzip;q=0.1"], &[Coding::Gzip]), "identity");
    }

    #[test]
    fn chooses_the_preferred_of_equally_weighted_codings() {
        use Coding::{Br, Gzip, Zstd};
        for (order, field, wanted) in [
            (&[Gzip, Br][..], "br, gzip", "gzip"),
            (&[Gzip, Br], "br, gzip;q=0.9", "br"),
            (&[Zstd, Gzip, Br], "*", "zstd"),
            (&[Zstd], "br, gzip", "identity"),
            (&[Zstd], "*;q=0.1, br", "zstd"),
            (&[], "br, gzip", "identity"),
        ] {
            assert_eq!(preferred(&[field], &Coding::ALL, order), wanted, "{order:?} {field}");
        }
    }

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

    #[test]
    fn parses_quality_values_with_three_decimals() {
        for (value, weight) in [
            ("0", Some(0)),
            ("0.", Some(0)),
            ("0.5", Some(500)),
            ("0.05", Some(50)),
            ("0.999", Some(999)),
            ("1", Some(1000)),
            ("1.000", Some(1000)),
            ("1.001", None),
            ("2", None),
            ("", None),
            (".5", None),
            ("0.0000", None),
            ("0,5", None),
            ("0.5x", None),
            ("00.5", None),
        ] {
            assert_eq!(parse_qvalue(value.as_bytes()), weight, "{value}");
        }
    }
}
