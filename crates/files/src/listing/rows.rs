//! What a list has in it: the entries of a folder that could be asked for.

use std::cell::RefCell;
use std::collections::BinaryHeap;
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
    let mut found = opened.entries(max, is_shown)?;
    if !found.is_whole {
        // Which of them came first means nothing: those that come first by their name are shown.
        let last = last_of_first(opened, max, is_shown)?;
        found =
            opened.entries(max, |name| is_shown(name) && last.as_deref().is_none_or(|last| name <= last))?;
        found.is_whole = false;
    }
    let mut rows: Vec<Row> = found.entries.into_iter().filter_map(|entry| row(folder, entry)).collect();
    rows.sort_by(|a, b| order.compare(a, b));
    Ok(Rows { rows, is_whole: found.is_whole })
}

/// The last of so many names that come first, of those that are read; `None` where there are no more than these.
fn last_of_first(
    opened: &Opened,
    max: EntriesMax,
    is_shown: impl Fn(&[u8]) -> bool,
) -> io::Result<Option<Vec<u8>>> {
    let first = RefCell::new(BinaryHeap::new());
    opened.entries(max, |name| {
        let mut first = first.borrow_mut();
        if !is_shown(name) {
            return false;
        }
        if first.len() < max.entries {
            first.push(name.to_vec());
        } else if let Some(mut last) = first.peek_mut().filter(|last| name < last.as_slice()) {
            *last = name.to_vec();
        }
        // It is only its name that is asked for.
        false
    })?;
    let first = first.into_inner();
    Ok(if first.len() < max.entries { None } else { first.peek().cloned() })
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
