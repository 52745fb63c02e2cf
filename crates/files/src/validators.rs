//! What tells one version of a file from another: entity tag and modification time (RFC 9110 section 8.8).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater_io::fs::{Meta, Timestamp};

/// A file's validators, taken from its metadata.
#[derive(Debug, Clone)]
pub(crate) struct Validators {
    etag: String,
    modified: SystemTime,
}

impl Validators {
    /// The tag: times of modification and of change in nanoseconds, and length. Modification alone would not do: builds that set
    /// all times to the same moment replace a file by another of equal length. A time that lies ahead of `unix_seconds` is sent as now (RFC
    /// 9110 section 8.8.2.1).
    pub(crate) fn of(meta: &Meta, unix_seconds: u64) -> Self {
        let (changed, modified) = (nanoseconds(meta.ctime), nanoseconds(meta.mtime));
        let etag = format!("\"{modified:x}-{changed:x}-{:x}\"", meta.len);
        let seconds = u64::try_from(meta.mtime.seconds).unwrap_or(0).min(unix_seconds);
        Self { etag, modified: UNIX_EPOCH + Duration::from_secs(seconds) }
    }

    /// The strong entity tag, in quotes.
    pub(crate) fn etag(&self) -> &str {
        &self.etag
    }

    /// When it was modified, to the second.
    pub(crate) fn modified(&self) -> SystemTime {
        self.modified
    }

    /// The same, as a field value.
    pub(crate) fn last_modified(&self) -> String {
        httpdate::fmt_http_date(self.modified)
    }
}

/// Nanoseconds since 1970; a time before that counts as 1970.
fn nanoseconds(time: Timestamp) -> u128 {
    u128::try_from(time.seconds).unwrap_or(0) * 1_000_000_000 + u128::from(time.nanoseconds)
}
