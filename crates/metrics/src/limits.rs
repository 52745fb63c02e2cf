//! Limits of metrics and of the admin listener, each with a line in `docs/limits.md`.

/// Sites that are counted by name, since the start of the process. Requests of further ones are counted as `(other)`.
pub const SITES_COUNTED_MAX: usize = 256;

/// Messages to the operator that are kept from before the start. Further ones are dropped.
pub const EARLY_MESSAGES_MAX: usize = 20;

/// Connections to the admin listener at a time.
pub const ADMIN_CONNECTIONS_MAX: usize = 64;

/// Bytes of the head of a request to the admin listener.
pub const ADMIN_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Bytes of the body of a request to the admin listener, which needs none.
pub const ADMIN_BODY_BYTES_MAX: u64 = 1024;

/// Memory for unfinished requests to the admin listener, in bytes.
pub const ADMIN_BUFFERED_BYTES_MAX: usize = 1024 * 1024;

/// Time that the end of the admin listener waits for its last responses, in milliseconds.
pub const ADMIN_DRAIN_MS: u64 = 1000;
