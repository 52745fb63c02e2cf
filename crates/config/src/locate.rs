//! Finds the location of a key such as `site[0].root` in a file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// Returns the span of a key's value, or of the innermost table that exists, or of the start of the file.
pub(crate) fn locate(table: &DeTable<'_>, key: &str) -> Range<usize> {
    let mut here: Range<usize> = 0..0;
    let mut table = Some(table);
    let mut rest = key;
    while let Some(inside) = table.filter(|_| !rest.is_empty()) {
        // A name may contain dots: the longest one that exists matches.
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

/// Splits a key into its first name and the rest in every possible way, the longest name first.
fn names_of(key: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = key.match_indices(['.', '[']).map(|(at, _)| at);
    let mut ends: Vec<usize> = ends.chain([key.len()]).collect();
    ends.reverse();
    ends.into_iter().map(|end| key.split_at(end))
}

/// Returns the element of an array if the key continues with an index.
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
    fn finds_keys_or_the_tables_they_belong_to() {
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
