//! Entries of a list: those that can be served.

use shearwater_io::fs::{Entry, EntryKind, Kind, OpenError, Opened};

use super::Folder;
use super::order::Order;
use super::page::{Key, Names};
use crate::limits::{LISTING_ENTRIES_MAX, LISTING_NAMES_MAX};
use crate::now::Now;
use crate::options::Hidden;

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: Vec<u8>,
    pub(super) is_folder: bool,
    /// Length in bytes, of a file.
    pub(super) len: u64,
    pub(super) modified_seconds: i64,
}

/// The entries of one page, in order.
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// Number of names before the page.
    pub(super) before: usize,
    /// Number of names on the page. Those that can't be served, such as a link that leads out, have no row.
    pub(super) names: usize,
    /// Number of names read, without hidden ones.
    pub(super) total: usize,
    /// True if the folder has no more names than were read.
    pub(super) are_all_read: bool,
    /// The last name of the page, unless it is the last of the folder.
    pub(super) last: Option<Key>,
}

impl Rows {
    /// Returns whether the page is the whole folder.
    pub(super) fn is_whole(&self) -> bool {
        self.are_all_read && self.names == self.total
    }
}

impl Row {
    /// Returns the length of a file.
    pub(super) fn size(&self) -> Option<u64> {
        (!self.is_folder).then_some(self.len)
    }
}

/// Reads the names of an open folder, without hidden ones.
///
/// # Errors
/// If the folder can't be read.
pub(super) fn names(
    opened: &Opened,
    folder: &Folder<'_>,
    order: Order,
    now: Now,
) -> Result<Names, OpenError> {
    let is_shown = |name: &[u8]| {
        let is_open = folder.name.is_empty() && name == b".well-known";
        folder.hidden == Hidden::Serve || !name.starts_with(b".") || is_open
    };
    let mut names = Vec::new();
    let are_all_read = opened.names(LISTING_NAMES_MAX, |name, kind| {
        if is_shown(name) {
            names.push(Key::new(kind == Some(EntryKind::Directory), name));
        }
    })?;
    Ok(Names::new(names, order.pages_descend(), are_all_read, now.ms))
}

/// Reads the metadata of the names on the page from `start` on. Skips those that can't be served: links that lead out
/// or nowhere, devices.
pub(super) fn read(opened: &Opened, folder: &Folder<'_>, order: Order, names: &Names, start: usize) -> Rows {
    let page = names.page(start, LISTING_ENTRIES_MAX);
    let entries = page.iter().filter_map(|key| opened.entry(key.name()));
    let mut rows: Vec<Row> = entries.filter_map(|entry| row(folder, entry)).collect();
    rows.sort_by(|a, b| order.compare(a, b));
    let total = names.total();
    let last = page.last().filter(|_| start + page.len() < total).cloned();
    Rows { rows, before: start, names: page.len(), total, are_all_read: names.are_all_read, last }
}

fn row(folder: &Folder<'_>, entry: Entry) -> Option<Row> {
    let Entry { name, kind, len, modified_seconds } = entry;
    match kind {
        EntryKind::File => Some(Row { name, is_folder: false, len, modified_seconds }),
        EntryKind::Directory => Some(Row { name, is_folder: true, len, modified_seconds }),
        EntryKind::Link => {
            let path = [folder.name, &name].concat();
            let Opened { kind, meta, .. } = folder.root.open_beneath(&path).ok()?;
            let is_folder = kind == Kind::Directory;
            Some(Row { name, is_folder, len: meta.len, modified_seconds: meta.mtime.seconds })
        }
        EntryKind::Other => None,
    }
}
