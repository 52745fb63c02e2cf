//! Limits of a log, each with a line in `docs/limits.md`.

use std::time::Duration;

/// Bytes of lines that each worker may have waiting for the writing thread. Further lines are dropped and counted.
pub const LOG_BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes in a worker's buffer at which the writing thread is woken before its interval ends.
pub const LOG_WAKE_BYTES: usize = 256 * 1024;

/// Attempts of a worker to append a line while the writing thread takes lines. A try fails only if the thread begins to
/// take them again meanwhile; a line that fails each time is dropped and counted.
pub(crate) const LOG_LOCK_TRIES_MAX: usize = 8;

/// Memory that an emptied buffer keeps, in bytes.
pub const SPARE_LOG_BYTES_MAX: usize = 512 * 1024;

/// Interval between two batches while lines arrive.
pub const LOG_INTERVAL: Duration = Duration::from_millis(50);

/// Bytes of one value in a line, before escaping, so that no client chooses where it is cut. The rest is cut and marked.
pub const LOG_VALUE_BYTES_MAX: usize = 8 * 1024;

/// User name and password of a request, in bytes; a longer one has no user name in its line.
pub const CREDENTIALS_BYTES_MAX: usize = 768;

/// Bytes of a line without its end. Values of a longer one are cut to half of the length, until it fits.
pub const LOG_LINE_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a format string.
pub const LOG_FORMAT_BYTES_MAX: usize = 4 * 1024;

/// Different request fields of a format string: as many as a server records for its listeners.
pub const LOG_FIELDS_MAX: usize = 16;

/// Bytes of a message to a syslog daemon, with its header. The rest of the line is cut.
pub const SYSLOG_BYTES_MAX: usize = 8 * 1024;

/// Bytes of a line for a syslog daemon: it fits a message, so that a JSON object isn't cut.
pub const SYSLOG_LINE_BYTES_MAX: usize = SYSLOG_BYTES_MAX - 512;

/// Interval at which a destination that fails is tried again, and between two reports of one kind.
pub const LOG_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Time that the end of a log waits for its last lines to be written.
pub const LOG_END_WAIT_MAX: Duration = Duration::from_secs(2);
