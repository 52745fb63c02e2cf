//! Bounds of file requests and of a worker's file cache. Each has a line in `docs/limits.md`.

/// Open files that a worker reuses for further requests of the same moment; others are opened for each request.
pub const OPEN_FILES_MAX: usize = 16;

/// Attempts to read a small file that changes meanwhile. Then it is sent from its descriptor, and the response ends
/// short if it still changes.
pub const READ_TRIES_MAX: usize = 3;

/// Seconds without a change after which a larger file's pages are lent to the kernel (`sendfile`); before, they are
/// copied. Lent pages change with the file until the client has received them, and a file that was just modified in
/// place usually is again soon.
pub const SENDFILE_AFTER_S: u64 = 10;

/// Ranges of one request; a `Range` of more is ignored. This bounds the cost of parts: a part's head takes less than
/// 200 bytes, and together their content is never longer than the file.
pub const RANGES_MAX: usize = 64;

/// Milliseconds for which a cached file is sent unchecked if no descriptor is free; then `503`. So a lack of
/// descriptors doesn't take down a site's hot files at once.
pub const UNCHECKED_MS_MAX: u64 = 10_000;

/// Larger files whose siblings a worker caches; those of others are looked up for each request.
pub const CACHED_SIBLINGS_MAX: usize = 256;

/// Path names whose files a worker caches, for each file in memory; others are looked up again.
pub const LOOKUPS_PER_CACHED_FILE: usize = 2;

/// Bytes of the longest path name that is cached.
pub const LOOKUP_NAME_BYTES_MAX: usize = 512;

/// Candidates of `try_files`: the maximum of files that are opened for a request, with `INDEX_NAMES_MAX` more for a
/// folder.
pub const TRY_FILES_MAX: usize = 16;

/// Names of a folder's index.
pub const INDEX_NAMES_MAX: usize = 16;

/// Media types that can be set for a folder.
pub const MEDIA_TYPES_MAX: usize = 1024;

/// Rules for `Cache-Control`. They are evaluated when a file is opened, not for each request.
pub const CACHE_RULES_MAX: usize = 256;

/// Entries on one page of a folder list, about 300 bytes of HTML each. Each costs one `stat`.
pub const LISTING_ENTRIES_MAX: usize = 2_000;

/// Names read for a folder list, including hidden ones, at most every 500 ms. Each costs about 0.5 µs if the folder is
/// in memory.
pub const LISTING_NAMES_MAX: usize = 50_000;

/// Pages of lists that a worker caches, and folders whose names it caches; others are created for each request.
pub const LISTINGS_KEPT_MAX: usize = 16;

/// Bytes of all cached lists; a larger one is created for each request.
pub const LISTINGS_KEPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes of all cached names of folders. Those of any folder fit: `LISTING_NAMES_MAX` names of 255 bytes.
pub const LISTING_NAMES_KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bounds of one worker's file cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// Size of the largest cached file, in bytes; larger ones are sent from their file. Default 64 KiB.
    pub cached_file_bytes_max: u64,
    /// Bytes of all cached files. Default 32 MiB.
    pub cached_bytes_max: u64,
    /// Number of cached files. Default 4096.
    pub cached_files_max: usize,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { cached_file_bytes_max: 64 * 1024, cached_bytes_max: 32 * 1024 * 1024, cached_files_max: 4096 }
    }
}

impl CacheLimits {
    /// Returns limits that cache nothing: files are checked in each turn.
    #[must_use]
    pub const fn none() -> Self {
        Self { cached_file_bytes_max: 0, cached_bytes_max: 0, cached_files_max: 0 }
    }

    /// Returns whether a file of this size can be cached.
    pub(crate) const fn takes(self, len: u64) -> bool {
        self.cached_files_max > 0 && len <= self.cached_file_bytes_max && len <= self.cached_bytes_max
    }
}
