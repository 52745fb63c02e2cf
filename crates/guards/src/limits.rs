//! Limits of guards.

use std::time::Duration;

/// Users of an htpasswd file.
pub const USERS_MAX: usize = 10_000;

/// Size of an htpasswd file, in bytes.
pub const HTPASSWD_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Highest cost of a bcrypt hash: about a second of a core.
pub const BCRYPT_COST_MAX: u32 = 14;

/// Most memory of an argon2id hash, in KiB. Each of the [`VERIFY_THREADS_MAX`] threads may use as much.
pub const ARGON2_MEMORY_KIB_MAX: u32 = 64 * 1024;

/// Most passes of an argon2id hash.
pub const ARGON2_PASSES_MAX: u32 = 10;

/// Threads of the process that verify passwords. They have the lowest priority.
pub const VERIFY_THREADS_MAX: usize = 2;

/// Passwords of the process that wait for a thread; a request beyond them gets a `503`.
pub const VERIFY_WAITING_MAX: usize = 64;

/// Time after which a waiting password isn't verified any more: its request gets a `503`.
pub const VERIFY_WAIT_MAX: Duration = Duration::from_millis(1500);

/// Time for verifying a password that has waited for [`VERIFY_WAIT_MAX`]; then its request gets a `503`, too.
pub const VERIFY_MARGIN: Duration = Duration::from_millis(500);

/// Verified credentials that are cached for each htpasswd file.
pub const VERIFIED_MAX: usize = 4096;

/// Time for which verified credentials are cached.
pub const VERIFIED_FOR: Duration = Duration::from_secs(3600);

/// Wrong passwords of an address before it has to wait.
pub const FAILURES_MAX: u32 = 10;

/// Time after which an address that has to wait may try another password.
pub const FAILURE_EVERY: Duration = Duration::from_secs(6);

/// User name and password in bytes; longer ones are no valid ones.
pub const CREDENTIALS_BYTES_MAX: usize = 768;

/// Addresses of a table (of a rate limit, or of those with wrong passwords). Further ones share one allowance for each of
/// the table's [`SHARDS`] parts.
pub const ADDRESSES_MAX: usize = 65_536;

/// Parts of a table of addresses, each with a lock of its own.
pub const SHARDS: usize = 64;
