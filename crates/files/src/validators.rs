//! What tells one version of a file from another: entity tag and modification time (RFC 9110 section 8.8).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater_io::fs::Meta;

/// A file's validators, taken from its metadata.
#[derive(Debug, Clone)]
pub(crate) struct Validators {
    etag: String,
    modified: SystemTime,
}

impl Validators {
    /// Time of modification in nanoseconds, and length. A time that lies ahead of `unix_seconds` is sent as now (RFC
    /// 9110 section 8.8.2.1).
    pub(crate) fn of(meta: &Meta, unix_seconds: u64) -> Self {
        let etag = format!("\"{:x}-{:x}-{:x}\"", meta.mtime.seconds, meta.mtime.nanoseconds, meta.len);
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
