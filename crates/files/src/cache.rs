//! Cache of a folder's small files, by name.
//!
//! Files are checked at most 500 ms before they are sent. If no descriptor is free for a check, they are sent up to
//! `UNCHECKED_MS_MAX` after the last one.

use std::rc::Rc;

use crate::cached_file::CachedFile;
use crate::folder_cache::FolderCache;
use crate::limits::CacheLimits;

/// A folder's part of one worker's cache.
pub(crate) struct Cache {
    limits: CacheLimits,
    files: FolderCache<Rc<CachedFile>>,
}

impl Cache {
    pub(crate) fn new(limits: CacheLimits, files: FolderCache<Rc<CachedFile>>) -> Self {
        Self { limits, files }
    }

    /// Returns whether a file of this size can be cached.
    pub(crate) fn takes(&self, len: u64) -> bool {
        let limits = self.limits;
        limits.cached_files_max > 0 && len <= limits.cached_file_bytes_max && len <= limits.cached_bytes_max
    }

    /// Returns a file of any age.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Rc<CachedFile>> {
        self.files.get(key, |cached| Some(Rc::clone(cached)))
    }

    /// Inserts or replaces a file. Its size must be one that [`takes`](Self::takes) accepts.
    pub(crate) fn insert(&self, key: &[u8], cached: Rc<CachedFile>) {
        self.files.insert(key, cached);
    }

    /// Removes a file.
    pub(crate) fn remove(&self, key: &[u8]) {
        self.files.remove(key);
    }

    /// Removes all files of the folder.
    pub(crate) fn clear(&self) {
        self.files.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;
    use crate::cached_file::cached_for_test as cached;
    use crate::file_cache::FileCache;
    use crate::limits::CacheLimits;

    fn cache(limits: CacheLimits) -> Cache {
        Cache::new(limits, FileCache::new(limits).next().files)
    }

    fn kept(cache: &Cache) -> usize {
        (0..10).filter(|number: &usize| cache.get(number.to_string().as_bytes()).is_some()).count()
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let cache = cache(CacheLimits { cached_files_max: 3, ..CacheLimits::default() });
        for number in 0..10 {
            cache.insert(number.to_string().as_bytes(), cached(10));
        }
        assert_eq!(kept(&cache), 3);
    }

    #[test]
    fn the_bytes_of_files_are_bounded() {
        let limits =
            CacheLimits { cached_bytes_max: 100, cached_file_bytes_max: 60, ..CacheLimits::default() };
        let cache = cache(limits);
        assert!(cache.takes(60) && !cache.takes(61));
        for number in 0..10 {
            cache.insert(number.to_string().as_bytes(), cached(30));
        }
        assert_eq!(kept(&cache), 3);
        assert!(!self::cache(CacheLimits::none()).takes(0));
    }
}
