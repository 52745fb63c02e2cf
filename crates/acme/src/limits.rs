//! Bounds of this crate. `docs/limits.md` lists them.

/// Largest number of certificates of a manager.
pub const CERTIFICATES_MAX: usize = 1000;

/// Largest number of names in a certificate. Most CAs accept no more.
pub const NAMES_PER_CERTIFICATE_MAX: usize = 100;

/// Largest number of certificates that are checked or ordered at the same time.
pub const ORDERS_AT_ONCE_MAX: usize = 4;

/// Largest duration of an order, in seconds. The next attempt resumes it.
pub const ORDER_SECONDS_MAX: u64 = 300;

/// Seconds without new orders after the CA itself failed: unreachable, busy, or a rate limit.
pub const CA_PAUSE_SECONDS: u64 = 60;

/// Delay before the second attempt, in seconds. Each further failure doubles it.
pub const RETRY_SECONDS_MIN: u64 = 60;

/// Largest delay between attempts, in seconds.
pub const RETRY_SECONDS_MAX: u64 = 86_400;

/// Largest `Retry-After` of a CA that is honoured, in seconds.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 7 * 86_400;

/// Repetitions of a request whose nonce the CA rejected. Each is up to three requests of the ACME library.
pub const NONCE_ATTEMPTS_MAX: usize = 50;

/// Duration of a request to the CA, in seconds: lookup, connect, TLS and response.
pub const REQUEST_SECONDS_MAX: u64 = 30;

/// Largest response of a CA, in bytes.
pub const RESPONSE_BYTES_MAX: usize = 1 << 18;

/// Largest file of the storage, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 18;

/// Interval of retrying a lock that another process holds, in seconds.
pub const LOCK_POLL_SECONDS: u64 = 5;

/// Seconds after which such a lock is reported. No order takes that long.
pub const LOCKED_SECONDS_MAX: u64 = 2 * ORDER_SECONDS_MAX;

/// Interval at which the storage is checked for newer certificates of other instances, in seconds.
pub const STORAGE_POLL_SECONDS: u64 = 60;

/// Age at which files of interrupted instances are removed, in seconds: temporary files, challenges.
pub const LEFTOVER_SECONDS: u64 = 86_400;

/// Longest token of a challenge, in bytes.
pub const TOKEN_BYTES_MAX: usize = 128;

/// Challenges of other instances that are kept in memory.
pub const SHARED_CHALLENGES_MAX: usize = 1000;

/// Interval at which challenges of other instances are copied from the storage, in seconds.
pub const CHALLENGE_POLL_SECONDS: u64 = 1;

/// Shortest time between two certificates for the same names, in seconds, whatever the CA suggests.
pub const REISSUE_SECONDS_MIN: u64 = 6 * 3600;
