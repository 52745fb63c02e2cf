//! Bounds of a worker's tasks, with their defaults. `docs/limits.md` describes the behaviour at each.

/// Concurrent tasks of a worker.
pub const TASKS_MAX: usize = 65_536;

/// Consecutive tasks from the back of a LIFO queue before the one that has waited longest.
pub const LIFO_RUN_MAX: u32 = 3;

/// The largest future, in bytes, whose memory is reused. A larger one has its own.
pub const FUTURE_BYTES_KEPT_MAX: usize = 64 * 1024;

/// Memory of ended futures, in bytes, that a worker keeps for later ones.
pub const SPARE_FUTURES_BYTES_MAX: usize = 1024 * 1024;

/// Concurrent sleeps of a worker's timers.
pub const TIMERS_MAX: usize = 1 << 20;

/// A coroutine's stack, in bytes; only used pages take memory.
pub const STACK_BYTES: usize = 256 * 1024;

/// The smallest stack, in bytes: a smaller one can't even report a panic.
pub const STACK_BYTES_MIN: usize = 16 * 1024;

/// Concurrent coroutines with a stack, per worker.
pub const STACKS_MAX: usize = 4096;

/// Address space, in bytes, that a worker reserves at a time for stacks; more if one stack is larger.
pub const STACK_CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// Guard pages of the process that are memory mappings of their own: those of all stacks where the system has
/// no other kind (Linux before 6.13), otherwise one for each [`STACK_CHUNK_BYTES`]. With its stack each takes
/// two mappings; Linux allows 65,530 in all, which other parts of the process use too.
pub const GUARD_MAPPINGS_MAX: usize = 24_576;

/// Unused stacks of a worker that keep their memory.
pub const SPARE_STACKS_MAX: usize = 64;

/// The largest coroutine body (its closure's captures), in bytes, that is stored on its stack; a larger one
/// is boxed.
pub const BODY_BYTES_MAX: usize = 1024;

/// Bytes of a coroutine's label in the report of a stack overflow.
pub const LABEL_BYTES_MAX: usize = 256;
