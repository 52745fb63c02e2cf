//! Limits of metrics and of the admin listener, each with a line in `docs/limits.md`.

/// Sites that are counted by name, since the start of the process. Requests of further ones are counted as `(other)`.
pub const SITES_COUNTED_MAX: usize = 256;

/// Certificates on the status page and in metrics: those that end first.
pub const CERTIFICATES_SHOWN_MAX: usize = 256;

/// Messages to the operator that are kept from before the start. Further ones are dropped.
pub const EARLY_MESSAGES_MAX: usize = 20;

/// Seconds of the history in `/status.json`.
pub const HISTORY_SECONDS_MAX: usize = 300;

/// Findings of the verdict that are listed, the worst first. Further ones are counted.
pub const FINDINGS_MAX: usize = 20;

/// Bytes of a message within a finding; the rest is cut.
pub const FINDING_BYTES_MAX: usize = 240;

/// Bytes of the last reload's errors that are kept; the rest is cut.
pub const RELOAD_ERRORS_BYTES_MAX: usize = 4096;

/// Connections to the admin listener at a time.
pub const ADMIN_CONNECTIONS_MAX: usize = 64;

/// Bytes of the head of a request to the admin listener.
pub const ADMIN_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Bytes of the body of a request to the admin listener, which needs none.
pub const ADMIN_BODY_BYTES_MAX: u64 = 1024;

/// Memory for unfinished requests to the admin listener, in bytes.
pub const ADMIN_BUFFERED_BYTES_MAX: usize = 1024 * 1024;

/// Time for a request's head or body to the admin listener, and for the client's end of a connection, in milliseconds.
pub const ADMIN_RECEIVE_MS: u64 = 2000;

/// Time between two requests of a connection to the admin listener, in milliseconds.
pub const ADMIN_IDLE_MS: u64 = 5000;

/// Interval in which a client of the admin listener must read at the minimum rate, in milliseconds.
pub const ADMIN_WRITE_MS: u64 = 5000;

/// Requests of a connection to the admin listener, so that busy clients leave room for waiting ones.
pub const ADMIN_REQUESTS_MAX: u32 = 100;

/// Time that the end of the admin listener waits for its last responses, in milliseconds.
pub const ADMIN_DRAIN_MS: u64 = 1000;
