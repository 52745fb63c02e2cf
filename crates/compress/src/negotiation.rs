//! Negotiation of the content coding by `Accept-Encoding` (RFC 9110 section 12.5.3). Pure functions.

use shearwater_io::fs::Coding;

/// A set of codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codings(u8);

impl Codings {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// All codings.
    pub const ALL: Self = Self((1 << Coding::ALL.len()) - 1);

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

/// Parses a quality value, in thousandths: `0` or `1`, with up to three decimals.
#[must_use]
pub fn parse_qvalue(value: &[u8]) -> Option<u16> {
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
    use super::{Coding, Codings, choose_coding, parse_qvalue};

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
