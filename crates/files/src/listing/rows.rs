//! Entries of a list that can be served, and their order: `?sort=name|size|time&order=asc|desc&after=NAME`. Folders come
//! first in any order.

use std::cmp::Ordering;

use shearwater_io::fs::{DirectoryEntry, EntryKind, Kind, Opened};

use crate::disk::Disk;
use crate::limits::LISTING_ENTRIES_MAX;
use crate::listing::names::{FolderNames, ListPosition, ListedFolder, compare_names};

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListRow {
    pub(super) name: Vec<u8>,
    pub(super) is_folder: bool,
    /// True for a symbolic link; the other members are those of the file or folder that it leads to.
    pub(super) is_link: bool,
    /// Length in bytes, of a file.
    pub(super) len: u64,
    pub(super) modified_seconds: i64,
}

/// The entries of one page, in order.
pub(crate) struct ListPage {
    pub(super) rows: Vec<ListRow>,
    /// Number of names before the page.
    pub(crate) before: usize,
    /// Number of names on the page. Those that can't be served, such as a link that leads out, have no row.
    pub(super) names: usize,
    /// Number of names read, without hidden ones.
    pub(super) total: usize,
    /// True if the folder has no more names than were read.
    pub(super) are_all_read: bool,
    /// The last name of the page, unless it is the last of the folder.
    pub(super) last: Option<ListPosition>,
}

impl ListPage {
    /// Returns whether the page is the whole folder.
    pub(super) fn is_whole(&self) -> bool {
        self.are_all_read && self.names == self.total
    }
}

impl ListRow {
    /// Returns the length of a file.
    pub(super) fn size(&self) -> Option<u64> {
        (!self.is_folder).then_some(self.len)
    }
}

/// Sort key of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortKey {
    Name,
    Size,
    Time,
}

impl SortKey {
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
pub(crate) struct ListOrder {
    pub(super) sort: SortKey,
    pub(super) is_descending: bool,
}

/// Returns a raw value of a query.
fn value<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let mut pairs = query.unwrap_or("").split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(given, _)| *given == name).map(|(_, value)| value)
}

/// Returns the name after which the requested page begins.
pub(crate) fn after(query: Option<&str>) -> Option<ListPosition> {
    value(query, "after").and_then(ListPosition::parse)
}

impl ListOrder {
    /// Parses the order of a query; by name if it is missing or invalid.
    pub(crate) fn of(query: Option<&str>) -> Self {
        let asked = value(query, "sort");
        let sort = SortKey::ALL.into_iter().find(|sort| asked == Some(sort.name())).unwrap_or(SortKey::Name);
        let is_descending = match value(query, "order") {
            Some("asc") => false,
            Some("desc") => true,
            _ => sort.begins_descending(),
        };
        Self { sort, is_descending }
    }

    /// Returns the order that a column's heading links to: reversed if the list has that order already.
    pub(super) fn toggled(self, sort: SortKey) -> Self {
        let is_descending = if self.sort == sort { !self.is_descending } else { sort.begins_descending() };
        Self { sort, is_descending }
    }

    const fn direction(self) -> &'static str {
        if self.is_descending { "desc" } else { "asc" }
    }

    /// Returns the query for a list in this order, from its start or after a name.
    pub(super) fn query(self, after: Option<&ListPosition>) -> String {
        let after = after.map_or(String::new(), |key| format!("&after={}", key.value()));
        format!("?sort={}&order={}{after}", self.sort.name(), self.direction())
    }

    /// Returns whether pages run from the last name to the first. Sizes and times are known for one page only, so they
    /// don't order pages.
    pub(crate) fn pages_descend(self) -> bool {
        self.sort == SortKey::Name && self.is_descending
    }

    /// Returns a number unique to this order.
    pub(crate) const fn key(self) -> u8 {
        self.sort as u8 * 2 + self.is_descending as u8
    }

    /// Compares two entries. Names break ties, so that the order is total.
    pub(super) fn compare(self, a: &ListRow, b: &ListRow) -> Ordering {
        let by_name = || compare_names(&a.name, &b.name);
        let own = match self.sort {
            SortKey::Name => by_name(),
            SortKey::Size => a.size().cmp(&b.size()),
            SortKey::Time => a.modified_seconds.cmp(&b.modified_seconds),
        };
        let own = if self.is_descending { own.reverse() } else { own };
        b.is_folder.cmp(&a.is_folder).then(own).then_with(by_name)
    }
}

/// Reads the metadata of the names on the page from `start` on. Skips those that can't be served: links that lead out
/// or nowhere, devices.
pub(crate) fn read(
    folder: &ListedFolder<'_>,
    disk: Disk<'_>,
    order: ListOrder,
    names: &FolderNames,
    start: usize,
) -> ListPage {
    let page = names.page(start, LISTING_ENTRIES_MAX);
    let entries = page.iter().filter_map(|key| folder.opened.entry(&key.name));
    let mut rows: Vec<ListRow> = entries.filter_map(|entry| row(folder, disk, entry)).collect();
    rows.sort_by(|a, b| order.compare(a, b));
    let total = names.total();
    let last = page.last().filter(|_| start + page.len() < total).cloned();
    ListPage { rows, before: start, names: page.len(), total, are_all_read: names.are_all_read, last }
}

fn row(folder: &ListedFolder<'_>, disk: Disk<'_>, entry: DirectoryEntry) -> Option<ListRow> {
    let DirectoryEntry { name, kind, len, modified_seconds } = entry;
    match kind {
        EntryKind::File => Some(ListRow { name, is_folder: false, is_link: false, len, modified_seconds }),
        EntryKind::Directory => {
            Some(ListRow { name, is_folder: true, is_link: false, len, modified_seconds })
        }
        EntryKind::Link => {
            let path = [folder.name, &name].concat();
            let Opened { kind, meta, .. } = disk.open(&path).ok()?;
            let is_folder = kind == Kind::Directory;
            Some(ListRow {
                name,
                is_folder,
                is_link: true,
                len: meta.len,
                modified_seconds: meta.mtime.seconds,
            })
        }
        EntryKind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ListOrder, SortKey, after};

    #[test]
    fn headings_reverse_their_own_order() {
        let order = ListOrder::of(None);
        assert_eq!(order.toggled(SortKey::Name).query(None), "?sort=name&order=desc");
        assert_eq!(order.toggled(SortKey::Name).toggled(SortKey::Name), order);
        assert_eq!(order.toggled(SortKey::Size).query(None), "?sort=size&order=desc");
        let after = after(Some("sort=size&after=%26/"));
        assert_eq!(order.query(after.as_ref()), "?sort=name&order=asc&after=%26/");
        let keys: std::collections::HashSet<_> = SortKey::ALL
            .into_iter()
            .flat_map(|sort| [false, true].map(|is_descending| ListOrder { sort, is_descending }.key()))
            .collect();
        assert_eq!(keys.len(), 6);
    }
}
