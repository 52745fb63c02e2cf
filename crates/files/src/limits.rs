//! Bounds of requests for files, and of a worker's cache of them. Each has a line in `docs/limits.md`.

/// Files that are found open by the further requests of the turn that has opened them; others are opened for each request.
pub const OPEN_FILES_MAX: usize = 16;

/// Ranges of one request that are looked at; a `Range` of more is ignored. What so many parts cost is bounded: their heads take less than 200 bytes
/// each, and together their content is never longer than the file.
pub const RANGES_MAX: usize = 64;

/// Names of larger files whose siblings a worker remembers; beside others it looks for each request.
pub const SEEN_FILES_MAX: usize = 256;

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
