//! The entries of a worker's table of files, and the sections that a folder has in it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::cache::cached_file::CachedFile;
use crate::cache::directories::Directory;
use crate::cache::lookups::Lookup;
use crate::cache::open_file::OpenFile;
use crate::cache::table::{Evictable, EvictingTable, Section};
use crate::limits::{CACHED_FILE_OVERHEAD_BYTES, ENTRY_OVERHEAD_BYTES};

/// Something that a worker has found out about a folder.
#[derive(Clone)]
pub(crate) enum CacheEntry {
    /// A file in memory.
    Cached(Rc<CachedFile>),
    /// A file that is sent from its descriptor.
    Open(Rc<OpenFile>),
    Lookup(Rc<Lookup>),
    Directory(Rc<Directory>),
}

/// A worker's table of files, for all its folders.
pub(crate) type FileTable = Rc<RefCell<EvictingTable<CacheEntry>>>;

/// Kind of the names in a section.
#[derive(Clone, Copy)]
pub(crate) enum NameKind {
    /// Keys of representations: files in memory and open ones.
    File,
    /// Names of paths.
    Lookup,
    Directory,
}

impl NameKind {
    pub(crate) const ALL: [Self; 3] = [Self::File, Self::Lookup, Self::Directory];

    /// Returns the section of a folder for these names.
    pub(crate) fn section(self, table: &FileTable, folder: u32) -> Section<CacheEntry> {
        Section::new(table, folder * Self::ALL.len() as u32 + self as u32)
    }
}

impl Evictable for CacheEntry {
    fn bytes(&self, name: &[u8]) -> u64 {
        // A file's name is stored twice: in the entry and as the key.
        match self {
            Self::Cached(file) => file.meta.len + CACHED_FILE_OVERHEAD_BYTES + 2 * file.name.len() as u64,
            Self::Open(_) => CACHED_FILE_OVERHEAD_BYTES + name.len() as u64,
            Self::Lookup(lookup) => ENTRY_OVERHEAD_BYTES + (name.len() + lookup.file.len()) as u64,
            Self::Directory(_) => ENTRY_OVERHEAD_BYTES + name.len() as u64,
        }
    }

    fn is_file(&self) -> bool {
        matches!(self, Self::Cached(_))
    }

    fn stays_on_probation(&self) -> bool {
        matches!(self, Self::Lookup(_))
    }
}
