//! Order and start of a list: `?sort=name|size|time&order=asc|desc&after=NAME`. Folders come first in any order.

use std::cmp::Ordering;

use super::page::Key;
use super::rows::Row;

/// Sort key of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Name,
    Size,
    Time,
}

impl Sort {
    pub(super) const ALL: [Self; 3] = [Self::Name, Self::Size, Self::Time];

    /// Returns the name in queries.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Size => "size",
            Self::Time => "time",
        }
    }

    /// Returns the default direction: names ascending, the largest and latest first.
    const fn begins_descending(self) -> bool {
        !matches!(self, Self::Name)
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) sort: Sort,
    pub(super) is_descending: bool,
}

/// Returns a raw value of a query.
fn value<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let mut pairs = query.unwrap_or("").split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(given, _)| *given == name).map(|(_, value)| value)
}

/// Returns the name after which the requested page begins.
pub(super) fn after(query: Option<&str>) -> Option<Key> {
    value(query, "after").and_then(Key::parse)
}

impl Order {
    /// Parses the order of a query; by name if it is missing or invalid.
    pub(super) fn of(query: Option<&str>) -> Self {
        let asked = value(query, "sort");
        let sort = Sort::ALL.into_iter().find(|sort| asked == Some(sort.name())).unwrap_or(Sort::Name);
        let is_descending = match value(query, "order") {
            Some("asc") => false,
            Some("desc") => true,
            _ => sort.begins_descending(),
        };
        Self { sort, is_descending }
    }

    /// Returns the order that a column's heading links to: reversed if the list has that order already.
    pub(super) fn toggled(self, sort: Sort) -> Self {
        let is_descending = if self.sort == sort { !self.is_descending } else { sort.begins_descending() };
        Self { sort, is_descending }
    }

    const fn direction(self) -> &'static str {
        if self.is_descending { "desc" } else { "asc" }
    }

    /// Returns the query for a list in this order, from its start or after a name.
    pub(super) fn query(self, after: Option<&Key>) -> String {
        let after = after.map_or(String::new(), |key| format!("&after={}", key.value()));
        format!("?sort={}&order={}{after}", self.sort.name(), self.direction())
    }

    /// Returns whether pages run from the last name to the first. Sizes and times are known for one page only, so they
    /// don't order pages.
    pub(super) fn pages_descend(self) -> bool {
        self.sort == Sort::Name && self.is_descending
    }

    /// Returns a number unique to this order.
    pub(super) const fn key(self) -> u8 {
        self.sort as u8 * 2 + self.is_descending as u8
    }

    /// Compares two entries. Names break ties, so that the order is total.
    pub(super) fn compare(self, a: &Row, b: &Row) -> Ordering {
        let by_name = || compare_names(&a.name, &b.name);
        let own = match self.sort {
            Sort::Name => by_name(),
            Sort::Size => a.size().cmp(&b.size()),
            Sort::Time => a.modified_seconds.cmp(&b.modified_seconds),
        };
        let own = if self.is_descending { own.reverse() } else { own };
        b.is_folder.cmp(&a.is_folder).then(own).then_with(by_name)
    }
}

/// Compares names case-insensitively, then by bytes.
pub(super) fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    a.iter().map(u8::to_ascii_lowercase).cmp(b.iter().map(u8::to_ascii_lowercase)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::{Order, Row, Sort, after};

    fn sorted(query: &str) -> String {
        let row = |name: &str, is_folder, len, modified_seconds| Row {
            name: name.into(),
            is_folder,
            len,
            modified_seconds,
        };
        let mut rows = [
            row("b", false, 30, 1),
            row("C", false, 10, 3),
            row("a", false, 20, 2),
            row("A", false, 20, 2),
            row("z", true, 99, 5),
            row("y", true, 1, 6),
        ];
        let order = Order::of(Some(query));
        rows.sort_by(|a, b| order.compare(a, b));
        rows.iter().map(|row| String::from_utf8_lossy(&row.name).into_owned()).collect()
    }

    #[test]
    fn folders_come_first_and_names_settle_the_rest() {
        for (query, names) in [
            ("", "yzAabC"),
            ("sort=name&order=desc", "zyCbaA"),
            ("sort=size", "yzbAaC"),
            ("sort=size&order=asc", "yzCAab"),
            ("x=1&order=asc&sort=time", "zybAaC"),
            ("sort=time", "yzCAab"),
            ("sort=owner&order=up", "yzAabC"),
            ("sort=size&sort=name", "yzbAaC"),
        ] {
            assert_eq!(sorted(query), names, "{query}");
        }
    }

    #[test]
    fn a_heading_turns_its_own_order_round() {
        let order = Order::of(None);
        assert_eq!(order.toggled(Sort::Name).query(None), "?sort=name&order=desc");
        assert_eq!(order.toggled(Sort::Name).toggled(Sort::Name), order);
        assert_eq!(order.toggled(Sort::Size).query(None), "?sort=size&order=desc");
        let after = after(Some("sort=size&after=%26/"));
        assert_eq!(order.query(after.as_ref()), "?sort=name&order=asc&after=%26/");
        let keys: std::collections::HashSet<_> = Sort::ALL
            .into_iter()
            .flat_map(|sort| [false, true].map(|is_descending| Order { sort, is_descending }.key()))
            .collect();
        assert_eq!(keys.len(), 6);
    }
}
