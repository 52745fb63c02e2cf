//! The directories of cached files: opened beneath the root once in each period of 500 ms, and the version of their names.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::rc::Rc;

use shearwater_io::fs::{Kind, Meta, OpenError, Opened, Root};

use crate::cache::entry::{CacheEntry, FileTable, NameKind};
use crate::cache::table::Section;
use crate::disk::Disk;
use crate::now::Now;

/// Identifies the names in a directory: equal ones mean that no name was added, removed or renamed between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamesVersion(NonZeroU64);

/// A folder's directories.
pub(crate) struct Directories {
    cached: Section<CacheEntry>,
    last_version: u64,
    /// The kernel opens what is in its caches only, so nothing else may wait either.
    opens_cached: bool,
}

/// A directory as it was last opened.
pub(crate) struct Directory {
    /// Its metadata; `None` if it couldn't be opened, or its file system may have to be waited for.
    meta: Option<Meta>,
    version: NamesVersion,
    /// True if the same metadata means the same names.
    is_settled: bool,
    /// Start of the period in which it was opened.
    opened_ms: Cell<u64>,
}

impl Directories {
    pub(crate) fn new(table: &FileTable, folder: u32, root: &Root) -> Self {
        let cached = NameKind::Directory.section(table, folder);
        Self { cached, last_version: 0, opens_cached: root.has_cached_opens() }
    }

    /// Passes a directory to `look`.
    fn get<R>(&self, name: &[u8], look: impl FnOnce(&Directory) -> Option<R>) -> Option<R> {
        self.cached.get(name, |entry| match entry {
            CacheEntry::Directory(directory) => look(directory),
            _ => None,
        })
    }

    /// Returns the version of the names in the directory of a file, after opening it beneath the root if it wasn't in
    /// the period that began at `period.ms`.
    ///
    /// `None` if it can't be opened, or not without waiting, or if files in it may have to be waited for: its file system
    /// doesn't [date its names](shearwater_io::fs::Opened::dates_names), such as one of a server.
    pub(crate) fn names_around(&mut self, disk: Disk<'_>, file: &[u8], period: Now) -> Option<NamesVersion> {
        let name = &file[..file.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1)];
        let known = self.get(name, |directory| {
            let is_present = directory.opened_ms.get() == period.ms;
            is_present.then(|| directory.meta.map(|_| directory.version))
        });
        known.unwrap_or_else(|| self.open(disk, name, period))
    }

    fn open(&mut self, disk: Disk<'_>, name: &[u8], period: Now) -> Option<NamesVersion> {
        let opened = match disk.open(name) {
            // Another thread opens its files, which brings it into the kernel's caches.
            Err(OpenError::WouldBlock) => return None,
            opened => opened.ok().filter(|opened| opened.kind == Kind::Directory),
        };
        let meta = opened.as_ref().map(|opened| opened.meta);
        let unchanged = self.get(name, |directory| {
            let is_same = directory.is_settled && directory.meta == meta;
            is_same.then(|| {
                directory.opened_ms.set(period.ms);
                directory.version
            })
        });
        if unchanged.is_some() {
            return unchanged;
        }
        self.last_version += 1;
        let version = NamesVersion(NonZeroU64::new(self.last_version)?);
        // A directory that changed lately may change again within the resolution of its times.
        let settled_since = period.unix_seconds.saturating_sub(1);
        let dates_names = opened.as_ref().is_some_and(Opened::dates_names);
        let meta = meta.filter(|_| dates_names || !self.opens_cached);
        let is_settled = dates_names && meta.is_some_and(|meta| meta.is_older_than(settled_since));
        let opened_ms = Cell::new(period.ms);
        let directory = Directory { meta, version, is_settled, opened_ms };
        self.cached.insert(name, CacheEntry::Directory(Rc::new(directory)));
        meta.map(|_| version)
    }

    /// Removes all directories of this folder.
    pub(crate) fn clear(&self) {
        self.cached.clear();
    }
}
