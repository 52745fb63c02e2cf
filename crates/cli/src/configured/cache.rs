//! `[cache]`: what each worker keeps of files.

use shearwater_config::Cache;
use shearwater_files::CacheLimits;

/// What each worker keeps.
pub(crate) fn limits(cache: &Cache) -> CacheLimits {
    if !cache.enabled {
        return CacheLimits::none();
    }
    CacheLimits {
        cached_file_bytes_max: cache.file_bytes_max,
        cached_bytes_max: cache.bytes_max,
        cached_files_max: super::limits::size(u64::from(cache.entries_max)),
    }
}
