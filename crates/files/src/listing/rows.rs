//! What a list has in it: the entries of a folder that could be asked for.

use std::io;

use shearwater_io::fs::{EntriesMax, Entry, EntryKind, Kind, Opened};

use super::Folder;
use super::order::Order;
use crate::limits::{LISTING_ENTRIES_MAX, LISTING_NAMES_MAX};
use crate::options::Hidden;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: Vec<u8>,
    pub(super) is_folder: bool,
    /// Length in bytes; means something for a file.
    pub(super) len: u64,
    pub(super) modified_seconds: i64,
}

/// The entries in their order.
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// Whether the folder has no more.
    pub(super) is_whole: bool,
}

impl Row {
    /// Length of a file.
    pub(super) fn size(&self) -> Option<u64> {
        (!self.is_folder).then_some(self.len)
    }
}

/// Reads a folder that was opened. What can't be asked for is left out: hidden names, links that lead out or nowhere, devices.
///
/// # Errors
/// Where the folder can't be read.
pub(super) fn read(opened: &Opened, folder: &Folder<'_>, order: Order) -> io::Result<Rows> {
    let max = EntriesMax { entries: LISTING_ENTRIES_MAX, names: LISTING_NAMES_MAX };
    let is_shown = |name: &[u8]| {
        let is_open = folder.name.is_empty() && name == b".well-known";
        folder.hidden == Hidden::Serve || !name.starts_with(b".") || is_open
    };
    let found = opened.entries(max, is_shown)?;
    let mut rows: Vec<Row> = found.entries.into_iter().filter_map(|entry| row(folder, entry)).collect();
    rows.sort_by(|a, b| order.compare(a, b));
    Ok(Rows { rows, is_whole: found.is_whole })
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
