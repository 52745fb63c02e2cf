//! Counts of file caches for other threads. Only a cache's worker writes its counts: no lock and no locked instruction.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::folder::FileCache;
use crate::limits::CacheLimits;

/// Counts of one worker's cache.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct CacheCounters {
    files: AtomicU64,
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl CacheCounters {
    /// Sets the size of the cache.
    pub(crate) fn set_size(&self, files: usize, bytes: u64) {
        self.files.store(files as u64, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }

    #[inline]
    pub(crate) fn count_hit(&self) {
        self.hits.store(self.hits.load(Relaxed).wrapping_add(1), Relaxed);
    }

    pub(crate) fn count_miss(&self) {
        self.misses.store(self.misses.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// Figures of the caches of all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheFigures {
    /// Files in memory now; each worker has its own.
    pub files: u64,
    /// Memory of these files in bytes, as [`CacheLimits::cached_bytes_max`] counts it.
    pub bytes: u64,
    /// Requests for a file that was in memory.
    pub hits: u64,
    /// Files and precompressed siblings that were read into memory.
    pub misses: u64,
}

impl CacheFigures {
    /// Adds the counts of a cache, and its size unless it is gone.
    fn add(&mut self, counters: &Arc<CacheCounters>) {
        if is_used(counters) {
            self.files += counters.files.load(Relaxed);
            self.bytes += counters.bytes.load(Relaxed);
        }
        self.hits += counters.hits.load(Relaxed);
        self.misses += counters.misses.load(Relaxed);
    }
}

/// Returns false for the counters of a cache that is gone: they never change any more.
fn is_used(counters: &Arc<CacheCounters>) -> bool {
    Arc::strong_count(counters) > 1
}

/// Makes the caches of workers, and sums their figures from any thread. Clones are the same statistics.
#[derive(Clone, Default)]
pub struct CacheStatistics(Arc<Mutex<Caches>>);

#[derive(Default)]
struct Caches {
    /// Figures of caches that are gone, without their size.
    gone: CacheFigures,
    /// Counters of caches in use, and of those that have gone since the last new one.
    counters: Vec<Arc<CacheCounters>>,
}

impl fmt::Debug for CacheStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CacheStatistics").field(&self.figures()).finish()
    }
}

impl CacheStatistics {
    /// Creates a cache that is counted.
    #[must_use]
    pub fn cache(&self, limits: CacheLimits) -> FileCache {
        let counters = Arc::new(CacheCounters::default());
        let mut caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Caches { gone, counters: all } = &mut *caches;
        all.retain(|counters| {
            let is_used = is_used(counters);
            if !is_used {
                gone.add(counters);
            }
            is_used
        });
        all.push(Arc::clone(&counters));
        FileCache::counted(limits, counters)
    }

    /// Returns the figures of all caches so far.
    #[must_use]
    pub fn figures(&self) -> CacheFigures {
        let caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut figures = caches.gone;
        caches.counters.iter().for_each(|counters| figures.add(counters));
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheFigures, CacheStatistics};
    use crate::cache::cached_file::cached_for_test;
    use crate::cache::entry::{CacheEntry, NameKind};
    use crate::limits::{CACHED_FILE_OVERHEAD_BYTES, CacheLimits};

    #[test]
    fn counts_go_on_when_a_cache_is_replaced() {
        let statistics = CacheStatistics::default();
        let limits = CacheLimits { cached_files_max: 2, ..CacheLimits::default() };
        let cache = statistics.cache(limits);
        let folder = NameKind::File.section(cache.table_for_test(), 0);
        for name in [b"a", b"b", b"c"] {
            folder.insert(name, CacheEntry::Cached(cached_for_test(30)));
            folder.counters().count_miss();
        }
        folder.counters().count_hit();
        let bytes = 2 * (30 + CACHED_FILE_OVERHEAD_BYTES);
        assert_eq!(statistics.figures(), CacheFigures { files: 2, bytes, hits: 1, misses: 3 });
        drop((folder, cache));
        assert_eq!(statistics.figures(), CacheFigures { files: 0, bytes: 0, hits: 1, misses: 3 });
        let _next = statistics.cache(limits);
        assert_eq!(statistics.figures(), CacheFigures { files: 0, bytes: 0, hits: 1, misses: 3 });
        drop(statistics.cache(limits));
        let _third = statistics.cache(limits);
        assert_eq!(statistics.0.lock().expect("no panic").counters.len(), 2);
    }
}
