//! Bounds of file requests and of a worker's file cache. Each has a line in `docs/limits.md`.

use shearwater_io::os;

/// Attempts to read a small file that changes meanwhile. Then it is sent from its descriptor, and the response ends
/// short if it still changes.
pub const READ_TRIES_MAX: usize = 3;

/// Threads of a folder, for all workers, that wait for its disk: a worker doesn't. One that hangs occupies one of them.
pub const DISK_THREADS_MAX: usize = 8;

/// Pieces of disk work of a folder that wait for a thread; requests that need further ones get a `503`.
pub const DISK_WAITING_MAX: usize = 1024;

/// Seconds that a request waits for the disk; then it gets a `503`.
pub const DISK_WAIT_S_MAX: u64 = 10;

/// Seconds that an open is repeated; then the request gets a `503`. Shorter than `RECENT_MS_MAX`, so that cached files
/// outlast a request that waits.
pub const OPEN_WAIT_S_MAX: u64 = 4;

/// Milliseconds until an open is repeated that has found no descriptor, no memory or another process's lease.
pub const OPEN_RETRY_MS: u64 = 10;

/// Pieces of disk work in a folder for one request, one after the other; then it gets a `503`. One is enough unless the
/// folder is replaced meanwhile.
pub const DISK_JOBS_PER_REQUEST_MAX: usize = 4;

/// Bytes of the largest file that isn't cached and nevertheless read whole when it is opened on another thread. The
/// driver itself reads longer ranges ahead, from [`FETCH_CHECK_BYTES_MIN`](shearwater_io::limits::FETCH_CHECK_BYTES_MIN)
/// on.
pub const SMALL_FILE_BYTES: u64 = 128 * 1024;

/// Seconds without a change after which a larger file's pages are lent to the kernel (`sendfile`); before, they are
/// copied. Lent pages change with the file until the client has received them, and a file that was just modified in
/// place usually is again soon.
pub const SENDFILE_AFTER_S: u64 = 10;

/// Files whose hashes are kept, for all workers; the one that was hashed first is forgotten, and hashed again when it is
/// requested. About 250 bytes each.
pub const HASHES_KEPT_MAX: usize = 16_384;

/// Files that wait to be hashed, or are: others are when they are requested later. They hold no descriptors.
pub const HASHES_WAITING_MAX: usize = 64;

/// Bytes that the thread that hashes files reads a second at most. It waits after each piece.
pub const HASH_BYTES_PER_S: u64 = 256 * 1024 * 1024;

/// Bytes of a piece of a file that is hashed: about 0.1 ms of work.
pub const HASH_PIECE_BYTES: usize = 512 * 1024;

/// Bytes of the largest file that is compressed on the fly; a larger one is sent as it is.
pub const COMPRESSED_FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes of all results of compressing files that the process keeps, with `COMPRESSED_OVERHEAD_BYTES` for each. What a
/// worker sends often is part of its own cache as well.
pub const COMPRESSED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes that count for a compressed file besides its content, and for the note that a file can't be made shorter.
pub const COMPRESSED_OVERHEAD_BYTES: u64 = 512;

/// Files that wait to be compressed, or are: others are when they are requested later. They hold no descriptors.
pub const COMPRESSIONS_WAITING_MAX: usize = 64;

/// Ranges of one request; a `Range` of more is ignored. This bounds the cost of parts: a part's head takes less than
/// 200 bytes, and together their content is never longer than the file.
pub const RANGES_MAX: usize = 64;

/// Milliseconds for which a check of a file counts: half of the second within which a change must show.
pub const FRESH_MS_MAX: u64 = 500;

/// Milliseconds since its last check for which a cached file is compared by a `stat`, and sent unchecked if no descriptor
/// is free to look for it. Then it is opened, which doesn't wait for the disk, or gets a `503`.
///
/// The kernel evicts the names that were used least recently from its caches, and a `stat` of another name may wait. A
/// lack of descriptors doesn't take down a site's hot files at once.
pub const RECENT_MS_MAX: u64 = 10_000;

/// Bytes that count for a cached directory, or a path that is served by a file of another name, besides these names.
pub const ENTRY_OVERHEAD_BYTES: u64 = 256;

/// Bytes that count for a cached file besides its content and twice its name: headers, metadata, places in tables.
pub const CACHED_FILE_OVERHEAD_BYTES: u64 = 1024;

/// The part of a cache's bounds for entries that weren't requested again yet, and for paths that are served by a file of
/// another name: clients can invent these.
pub const PROBATION_SHARE: u64 = 10;

/// Uses of a cache entry that count: the number of times that eviction passes it over.
pub const USES_MAX: u8 = 3;

/// Used entries that an eviction passes over; then it takes the next one, used or not. This bounds its time.
pub const EVICTION_STEPS_MAX: usize = 256;

/// The part of the memory for the files cached by all workers together; see [`CacheLimits::of_memory`].
pub const MEMORY_SHARE: u64 = 32;

/// Least cache of a worker that gets a part of the memory, in bytes.
pub const CACHED_BYTES_MIN: u64 = 1024 * 1024;

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

/// Entries of a folder that are checked for links that lead out of it. Each link costs one open.
pub const LINK_SEARCH_ENTRIES_MAX: usize = 100_000;

/// Pages of lists, and names of folders, that a worker caches; others are created or read for each request.
pub const LISTINGS_KEPT_MAX: usize = 32;

/// Bytes of all cached lists and names. Those of any folder fit: `LISTING_NAMES_MAX` names of 255 bytes.
pub const LISTINGS_KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bounds of one worker's file cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// Size of the largest cached file, in bytes; larger ones are sent from their file. Default 64 KiB.
    pub cached_file_bytes_max: u64,
    /// Bytes of all cached files, with `CACHED_FILE_OVERHEAD_BYTES` and twice the name for each, and of what is known about
    /// others: open files, directories, paths. Default 32 MiB.
    pub cached_bytes_max: u64,
    /// Number of cached files and of what is known about others. Default 16,777,216: as many as fit.
    pub cached_files_max: usize,
    /// Size of the largest file that isn't cached and whose `ETag` is a hash of its content, in bytes. The tag of a larger
    /// one consists of length and modification time. Default 1 GiB.
    pub hashed_bytes_max: u64,
}

/// Default of [`CacheLimits::hashed_bytes_max`].
const HASHED_BYTES_MAX: u64 = 1024 * 1024 * 1024;

impl Default for CacheLimits {
    fn default() -> Self {
        Self {
            cached_file_bytes_max: 64 * 1024,
            cached_bytes_max: 32 * 1024 * 1024,
            cached_files_max: 1 << 24,
            hashed_bytes_max: HASHED_BYTES_MAX,
        }
    }
}

impl CacheLimits {
    /// Returns limits that cache nothing: files are opened for each request.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            cached_file_bytes_max: 0,
            cached_bytes_max: 0,
            cached_files_max: 0,
            hashed_bytes_max: HASHED_BYTES_MAX,
        }
    }

    /// Returns the default limits, with a part of this system's memory for each of so many workers; 0: one for each
    /// core.
    ///
    /// `1 / MEMORY_SHARE` of the memory for all workers, at least `CACHED_BYTES_MIN` for each. The memory is the
    /// machine's, or less if a control group allows less. Nothing is reserved: a cache grows as files are requested.
    #[must_use]
    pub fn of_memory(workers: usize) -> Self {
        let workers = if workers == 0 { os::cores().len() } else { workers };
        match os::memory_max() {
            Some(bytes) => Self { cached_bytes_max: share(bytes, workers), ..Self::default() },
            None => Self::default(),
        }
    }

    /// Returns whether a file of this size can be cached.
    pub(crate) const fn takes(self, len: u64) -> bool {
        let bytes = len.saturating_add(CACHED_FILE_OVERHEAD_BYTES);
        self.cached_files_max > 0 && len <= self.cached_file_bytes_max && bytes <= self.cached_bytes_max
    }
}

/// Returns a worker's share of the memory for cached files.
fn share(memory: u64, workers: usize) -> u64 {
    (memory / MEMORY_SHARE / workers.max(1) as u64).max(CACHED_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::{CACHED_BYTES_MIN, CacheLimits, share};

    #[test]
    fn workers_share_a_part_of_the_memory() {
        const GIB: u64 = 1024 * 1024 * 1024;
        for (memory, workers, bytes) in [
            (GIB, 1, GIB / 32),
            (24 * GIB, 2, 384 * 1024 * 1024),
            (512 * GIB, 64, 256 * 1024 * 1024),
            (GIB, 64, CACHED_BYTES_MIN),
            (0, 0, CACHED_BYTES_MIN),
        ] {
            assert_eq!(share(memory, workers), bytes, "{memory} bytes, {workers} workers");
        }
        let [all, one] = [0, 1].map(|workers| CacheLimits::of_memory(workers).cached_bytes_max);
        assert!((CACHED_BYTES_MIN..=one).contains(&all), "{all} and {one}");
    }
}
