//! Bounds of requests for files, and of a worker's cache of them. Each has a line in `docs/limits.md`.

/// Files that are found open by further requests of the moment in which they were opened; others are opened for each request.
pub const OPEN_FILES_MAX: usize = 16;

/// How often a small file is read that changes while it is read; then it is sent from its descriptor, which ends short where it still does.
pub const READ_TRIES_MAX: usize = 3;

/// How long a larger file has to have been left alone before its own pages are lent to the kernel (`sendfile`), in seconds; until then
/// they are copied. What is lent changes with the file until the client has it: somebody who writes into a file in place
/// does so again soon, most often.
pub const LENT_AFTER_S: u64 = 10;

/// Ranges of one request that are looked at; a `Range` of more is ignored. What so many parts cost is bounded: their heads take less than 200 bytes
/// each, and together their content is never longer than the file.
pub const RANGES_MAX: usize = 64;

/// How long a file in memory is sent without a look while no descriptor is left to look with, from the last look on; then `503`. It
/// was the present version at that look, and who uses up the descriptors should not take a site's hot files off the net at once.
pub const UNSEEN_MS_MAX: u64 = 10_000;

/// Names of larger files whose siblings a worker remembers; beside others it looks for each request.
pub const SEEN_FILES_MAX: usize = 256;

/// Names of paths that a worker remembers the files of, for each file that it may keep in memory; others are looked for anew.
pub const LOOKUPS_PER_CACHED_FILE: usize = 2;

/// Longest name of a path that is remembered so, in bytes.
pub const LOOKUP_NAME_BYTES_MAX: usize = 512;

/// Candidates of `try_files`: so many files are opened for a request at most, with `INDEX_NAMES_MAX` more for a folder.
pub const TRY_FILES_MAX: usize = 16;

/// Names of a folder's index.
pub const INDEX_NAMES_MAX: usize = 16;

/// Media types that are set for a folder.
pub const MEDIA_TYPES_MAX: usize = 1024;

/// Rules for `Cache-Control`; each is looked at when a file is opened, and not for a request.
pub const CACHE_RULES_MAX: usize = 256;

/// Entries on one page of a folder list, about 300 bytes of HTML each. Each costs one `stat`.
pub const LISTING_ENTRIES_MAX: usize = 2_000;

/// Names that are read for a folder list, including hidden ones, at most every 500 ms. Each costs about 0.5 µs if the folder is in memory.
pub const LISTING_NAMES_MAX: usize = 50_000;

/// Pages of lists that a worker keeps for a moment, and folders whose names it keeps; others are made for each request.
pub const LISTINGS_KEPT_MAX: usize = 16;

/// Bytes of all lists that are kept; a larger one is made for each request.
pub const LISTINGS_KEPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes of all names of folders that are kept for their lists. Those of any folder have room: `LISTING_NAMES_MAX` names of 255 bytes.
pub const LISTING_NAMES_KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What one worker keeps of files in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// Size of the largest file that is kept, in bytes; larger ones are sent from their file. Default 64 KiB.
    pub cached_file_bytes_max: u64,
    /// Bytes of all files that are kept. Default 32 MiB.
    pub cached_bytes_max: u64,
    /// Number of files that are kept. Default 4096.
    pub cached_files_max: usize,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { cached_file_bytes_max: 64 * 1024, cached_bytes_max: 32 * 1024 * 1024, cached_files_max: 4096 }
    }
}

impl CacheLimits {
    /// Nothing is kept: each turn looks at its files.
    #[must_use]
    pub const fn none() -> Self {
        Self { cached_file_bytes_max: 0, cached_bytes_max: 0, cached_files_max: 0 }
    }
}
