//! Cache of one worker: one bound for all its folders.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use crate::cached_file::CachedFile;
use crate::clock_cache::ClockCache;
use crate::folder_cache::FolderCache;
use crate::limits::{
    CacheLimits, LISTING_NAMES_KEPT_BYTES_MAX, LISTINGS_KEPT_BYTES_MAX, LISTINGS_KEPT_MAX,
    LOOKUPS_PER_CACHED_FILE,
};
use crate::listing::{Listing, Names};
use crate::lookups::Lookup;

/// A worker's cache of files, shared by its folders: see [`Folder::files_in`](crate::Folder::files_in).
///
/// Evicts entries that weren't used lately, of any folder.
pub struct FileCache {
    limits: CacheLimits,
    files: Rc<RefCell<ClockCache<Rc<CachedFile>>>>,
    lookups: Rc<RefCell<ClockCache<Lookup>>>,
    listings: Rc<RefCell<ClockCache<Rc<Listing>>>>,
    names: Rc<RefCell<ClockCache<Rc<Names>>>>,
    folders: Cell<u32>,
}

impl fmt::Debug for FileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileCache").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A folder's part of the cache.
pub(crate) struct FolderCaches {
    pub(crate) limits: CacheLimits,
    pub(crate) files: FolderCache<Rc<CachedFile>>,
    pub(crate) lookups: FolderCache<Lookup>,
    pub(crate) listings: FolderCache<Rc<Listing>>,
    pub(crate) names: FolderCache<Rc<Names>>,
}

impl FileCache {
    /// Creates a cache with these bounds.
    #[must_use]
    pub fn new(limits: CacheLimits) -> Self {
        let lookups_max = limits.cached_files_max.saturating_mul(LOOKUPS_PER_CACHED_FILE);
        // Without cached files there are no cached lists either.
        let listings_max = if limits.cached_files_max > 0 { LISTINGS_KEPT_MAX } else { 0 };
        Self {
            limits,
            files: Rc::new(RefCell::new(ClockCache::new(limits.cached_files_max, limits.cached_bytes_max))),
            lookups: Rc::new(RefCell::new(ClockCache::new(lookups_max, u64::MAX))),
            listings: Rc::new(RefCell::new(ClockCache::new(listings_max, LISTINGS_KEPT_BYTES_MAX))),
            names: Rc::new(RefCell::new(ClockCache::new(listings_max, LISTING_NAMES_KEPT_BYTES_MAX))),
            folders: Cell::new(0),
        }
    }

    /// Returns the part of another folder.
    ///
    /// # Panics
    /// At the 4,294,967,296th.
    pub(crate) fn next(&self) -> FolderCaches {
        let folder = self.folders.get();
        self.folders.set(folder.checked_add(1).expect("fewer than 2^32 folders"));
        FolderCaches {
            limits: self.limits,
            files: FolderCache::new(&self.files, folder),
            lookups: FolderCache::new(&self.lookups, folder),
            listings: FolderCache::new(&self.listings, folder),
            names: FolderCache::new(&self.names, folder),
        }
    }
}
