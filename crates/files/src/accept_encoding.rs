//! Content coding selection by the `Accept-Encoding` field (RFC 9110 section 12.5.3). A pure function.

use crate::coding::{Coding, Codings};
use crate::qvalue::parse_qvalue;

/// Selects the coding to send from the available ones; `None` for the plain file. Of equally weighted codings, the
/// first in `preferred` wins.
///
/// A coding wins over the plain file at equal weight. Without a field nothing is encoded. A client that rejects both
/// the plain file and every available coding gets the plain file: a server may disregard preferences (RFC 9110 section
/// 12.1), and that serves more clients than `406`.
#[must_use]
pub fn choose<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    available: Codings,
    preferred: &[Coding],
) -> Option<Coding> {
    let mut weights = Weights::default();
    for element in values.flat_map(|value| value.split(|&byte| byte == b',')) {
        weights.note(element.trim_ascii());
    }
    let each = || preferred.iter().copied().filter(|&coding| available.has(coding));
    let best = each().map(|coding| weights.of(coding)).max()?;
    let is_liked = best > 0 && best >= weights.of_identity();
    each().find(|&coding| is_liked && weights.of(coding) == best)
}

/// Quality of each coding, in thousandths; `None` if it isn't listed.
#[derive(Default)]
struct Weights {
    codings: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    others: Option<u16>,
}

impl Weights {
    /// Adds an element of the list. The first of each name counts; invalid ones are skipped.
    fn note(&mut self, element: &[u8]) {
        let Some((name, weight)) = parse(element) else { return };
        let place = match name {
            b"*" => &mut self.others,
            _ if name.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            _ => match Coding::from_name(name) {
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
fn parse(element: &[u8]) -> Option<(&[u8], u16)> {
    let Some(end) = element.iter().position(|&byte| byte == b';') else { return Some((element, 1000)) };
    let weight = element[end + 1..].trim_ascii();
    let (name, value) = weight.split_at_checked(2)?;
    let weight = if name.eq_ignore_ascii_case(b"q=") { parse_qvalue(value) } else { None };
    weight.map(|weight| (element[..end].trim_ascii_end(), weight))
}

#[cfg(test)]
mod tests {
    use super::choose;
    use crate::coding::{Coding, Codings};

    /// Returns the coding for these field values and available codings.
    fn chosen(fields: &[&str], available: &[Coding]) -> &'static str {
        preferred(fields, available, &Coding::ALL)
    }

    fn preferred(fields: &[&str], available: &[Coding], preferred: &[Coding]) -> &'static str {
        let mut codings = Codings::NONE;
        available.iter().for_each(|&coding| codings.add(coding));
        let values = fields.iter().map(|field| field.as_bytes());
        choose(values, codings, preferred).map_or("identity", Coding::name)
    }

    #[test]
    fn the_coding_that_is_liked_best_is_sent() {
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
    fn only_what_is_to_be_had_is_sent() {
        assert_eq!(chosen(&["gzip, br, zstd"], &[]), "identity");
        assert_eq!(chosen(&["gzip, br, zstd"], &[Coding::Gzip]), "gzip");
        assert_eq!(chosen(&["gzip, br;q=0.5"], &[Coding::Br, Coding::Zstd]), "br");
        assert_eq!(chosen(&["br"], &[Coding::Zstd, Coding::Gzip]), "identity");
        assert_eq!(chosen(&["*;q=0.5, gzip;q=0.1"], &[Coding::Gzip]), "identity");
    }

    #[test]
    fn of_two_liked_as_much_the_preferred_one_is_sent() {
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
}
