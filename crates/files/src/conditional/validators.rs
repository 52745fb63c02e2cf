//! Validators of a file's version: entity tag and modification time (RFC 9110 section 8.8).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater::engine::Item;
use shearwater_io::fs::{Coding, Meta};
use twox_hash::XxHash3_128;

/// Seconds within which a file may change and keep its `mtime`: some file systems store it with a resolution of two
/// seconds.
const SAME_MTIME_S: u64 = 2;

/// `mtime` values, in seconds, that tools set on every version of every file: 0 and 1 by package managers (Nix, Guix,
/// OSTree), 1980-01-01 in zip archives (the earliest time of the format), 1985-10-26 08:15 in npm packages.
const FIXED_MTIMES: [i64; 4] = [0, 1, 315_532_800, 499_162_500];

/// A file's validators.
#[derive(Debug, Clone)]
pub(crate) struct Validators {
    /// The entity tag in quotes, with `W/` if it is weak.
    pub(crate) etag: Option<String>,
    /// The modification time, in seconds, if it is known.
    pub(crate) modified: Option<SystemTime>,
    /// True if the date is a strong validator (RFC 9110 section 8.8.2.2): it identifies the version for clients that
    /// got it after that second. For clients that got it within that second it doesn't.
    pub(crate) is_date_strong: bool,
}

impl Validators {
    /// Returns the validators of a file with this metadata and content at `unix_seconds`.
    ///
    /// The tag of a cached file is a hash of its bytes. A file that is sent from its descriptor is never read as a
    /// whole: its tag consists of length and `mtime`, and is weak (RFC 9110 section 8.8.1) until the `mtime` is some
    /// seconds old. So copies on several machines have the same tag if their cache limits and, beyond these, their
    /// `mtime` are the same. The tag includes the coding: no two variants of a file share a tag.
    ///
    /// A time in the future is sent as now (RFC 9110 section 8.8.2.1). An `mtime` of [`FIXED_MTIMES`] counts as none:
    /// there is no date then, and no tag derived from it.
    pub(crate) fn of(meta: &Meta, content: &Item, coding: Option<Coding>, unix_seconds: u64) -> Self {
        let form = coding.map_or(String::new(), |coding| format!("-{}", coding.name()));
        let seconds = u64::try_from(meta.mtime.seconds).unwrap_or(0).min(unix_seconds);
        let is_settled = seconds + SAME_MTIME_S < unix_seconds;
        let has_mtime = !FIXED_MTIMES.contains(&meta.mtime.seconds);
        let etag = match content {
            Item::Shared(bytes) => Some(format!("\"{}{form}\"", hash(bytes))),
            Item::File(_) => has_mtime.then(|| {
                // Since 1970, possibly negative.
                let nanoseconds =
                    i128::from(meta.mtime.seconds) * 1_000_000_000 + i128::from(meta.mtime.nanoseconds);
                let weak = if is_settled { "" } else { "W/" };
                format!("{weak}\"{:x}-{:x}{form}\"", nanoseconds, meta.len)
            }),
        };
        // If the system set the time, it is that of the last change, and no other version has this second once it is
        // over. A build that sets all times to the same moment, or a move, shows in the `ctime`.
        let is_date_strong = is_settled && meta.mtime.seconds == meta.ctime.seconds;
        let modified = has_mtime.then(|| UNIX_EPOCH + Duration::from_secs(seconds));
        Self { etag, modified, is_date_strong }
    }

    /// Returns the validators of generated content, which has no date.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self { etag: Some(format!("\"{}\"", hash(bytes))), modified: None, is_date_strong: false }
    }
}

/// Returns a hash of 128 bits in hexadecimal, the same on all machines and in all versions. It isn't cryptographic: an
/// author can create two files with the same hash.
fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", XxHash3_128::oneshot(bytes))
}

#[cfg(test)]
mod tests {
    use super::Validators;

    #[test]
    fn tag_is_the_same_on_all_machines() {
        // The value of the reference implementation.
        let tag = Validators::of_bytes(b"abc").etag;
        assert_eq!(tag.as_deref(), Some("\"06b05ab6733a618578af5f94892f3950\""));
    }
}
