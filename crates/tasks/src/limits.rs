//! Every bound of a worker's tasks, by name, with its default. `docs/limits.md` says what happens at each.

/// Tasks that a worker has at the same time.
pub const TASKS_MAX: usize = 65_536;

/// Tasks taken from the back of a LIFO queue in a row, before the one that has waited longest gets its turn.
pub const LIFO_RUN_MAX: u32 = 3;

/// The largest future, in bytes, whose memory may be kept for the next one of its size. A larger one has its own.
pub const FUTURE_BYTES_KEPT_MAX: usize = 64 * 1024;

/// Memory of ended futures, in bytes, that a worker keeps for the next ones.
pub const SPARE_FUTURES_BYTES_MAX: usize = 1024 * 1024;

/// Sleeps that a worker's timers know at the same time.
pub const TIMERS_MAX: usize = 1 << 20;

/// A coroutine's stack, in bytes; the system maps what is used of it.
pub const STACK_BYTES: usize = 256 * 1024;

/// The smallest stack, in bytes: below it not even a panic can be told.
pub const STACK_BYTES_MIN: usize = 16 * 1024;

/// Coroutines of a worker that have a stack at the same time.
pub const STACKS_MAX: usize = 4096;

/// Stacks without a coroutine that a worker keeps for the next ones.
pub const SPARE_STACKS_MAX: usize = 64;

/// The largest body of a coroutine (what its closure holds), in bytes, that is put on its stack; a larger one gets there by a box.
pub const BODY_BYTES_MAX: usize = 1024;

/// Bytes of a coroutine's label that are told when its stack overflows.
pub const LABEL_BYTES_MAX: usize = 256;
