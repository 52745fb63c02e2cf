//! Named bounds of the bridge.

/// Size in bytes of the blocks that hold copies of request heads. A request in flight keeps its block alive.
pub const HEAD_BLOCK_BYTES: usize = 4096;

/// Maximum length in bytes of a head that shares a block; longer ones are allocated separately.
pub const HEAD_IN_BLOCK_BYTES_MAX: usize = HEAD_BLOCK_BYTES / 4;

/// Maximum number of header maps in a worker's pool.
pub const SPARE_MAPS_MAX: usize = 64;

/// Maximum capacity in fields of a pooled header map.
pub const SPARE_MAP_FIELDS_MAX: usize = 64;

/// Maximum length in bytes of a body sent together with its head; a longer one follows as the client reads.
pub const WHOLE_BODY_BYTES_MAX: usize = 16 * 1024;

/// Default of [`Serve::upgrades_max`](crate::Serve::upgrades_max).
pub const UPGRADES_MAX: usize = 4096;

/// Maximum length in bytes of a piece of a response body passed to the engine at once.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Memory in bytes that a worker pools for futures of services, and as much again for response bodies.
pub const SPARE_SLOTS_BYTES_MAX: usize = 256 * 1024;

/// Maximum length in bytes of a cached header value; each worker caches one per cacheable header.
pub const CACHED_VALUE_BYTES_MAX: usize = 256;

/// Number of misses after which a cached header value is replaced.
pub const CACHED_VALUE_MISSES_MAX: u8 = 8;

/// Maximum number of threads for `spawn_blocking` of all workers that have runtimes of their own; at least one for each.
pub const BLOCKING_THREADS_MAX: usize = 512;

/// Interval in milliseconds at which a worker that has been drained looks whether spawned tasks have ended.
pub const TASKS_CHECK_MS: u64 = 10;
