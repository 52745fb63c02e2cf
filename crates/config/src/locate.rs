//! Finds the place of a key such as `site[0].root` in the tables of a file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// Where the value of a key stands, or what it is part of as far as that is there; else the beginning of the file.
pub(crate) fn locate(table: &DeTable<'_>, key: &str) -> Range<usize> {
    let mut here: Range<usize> = 0..0;
    let mut table = Some(table);
    let mut rest = key;
    while let Some(inside) = table.filter(|_| !rest.is_empty()) {
        // A name may have dots itself: the longest that is there counts.
        let Some((name, after)) = names_of(rest).find(|(name, _)| inside.contains_key(*name)) else { break };
        let Some((found_key, value)) = inside.get_key_value(name) else { break };
        let (value, after) = element(value, after);
        here = match value.get_ref() {
            DeValue::Table(_) | DeValue::Array(_) if value.span().is_empty() => found_key.span(),
            _ => value.span(),
        };
        table = value.get_ref().as_table();
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    here
}

type Value<'a> = toml::Spanned<DeValue<'a>>;

/// The name that a key may begin with, the longest first, each with what follows it.
fn names_of(key: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = key.match_indices(['.', '[']).map(|(at, _)| at);
    let mut ends: Vec<usize> = ends.chain([key.len()]).collect();
    ends.reverse();
    ends.into_iter().map(|end| key.split_at(end))
}

/// Follows `[0]` where it stands.
fn element<'a, 'b, 'k>(value: &'a Value<'b>, after: &'k str) -> (&'a Value<'b>, &'k str) {
    let index = after.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let found = index.and_then(|(index, rest)| {
        let element = value.get_ref().as_array()?.get(index.parse::<usize>().ok()?)?;
        Some((element, rest))
    });
    found.unwrap_or((value, after))
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::locate;

    #[test]
    fn keys_are_found_as_far_as_they_are_there() {
        let text = "[server]\nworkers = 22\n[[site]]\nhosts = [\"a\", \"b\"]\nmime = { \"a.b\" = \"x/y\" }\n[[site.route]]\npath = \"/p\"\n";
        let table = DeTable::parse(text).expect("TOML");
        for (key, stands) in [
            ("server.workers", "22"),
            ("site[0].hosts[1]", "\"b\""),
            ("site[0].mime.a.b", "\"x/y\""),
            ("site[0].route[0].path", "\"/p\""),
            ("site[0].hosts[7]", "[\"a\", \"b\"]"),
        ] {
            assert_eq!(&text[locate(table.get_ref(), key)], stands, "{key}");
        }
        for (key, begins) in [
            ("server.pin", "[server]"),
            ("site[0].root", "[[site]]"),
            ("site[0].route[0].root", "[[site.route]]"),
        ] {
            assert!(text[locate(table.get_ref(), key).start..].starts_with(begins), "{key}");
        }
        assert_eq!(locate(table.get_ref(), "none.at.all"), 0..0);
    }
}
