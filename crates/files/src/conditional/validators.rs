//! Validators of a file's version: entity tag and modification time (RFC 9110 section 8.8).

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater_io::fs::{Coding, Meta, Timestamp};
use twox_hash::XxHash3_128;

/// Seconds within which a file may change and keep its times: some file systems store them with a resolution of two
/// seconds.
const SAME_TIME_S: u64 = 2;

/// Keys of this process, so that a tag of metadata reveals none of it.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A file's validators.
#[derive(Debug, Clone)]
pub(crate) struct Validators {
    /// The entity tag in quotes, with `W/` if it is weak.
    pub(crate) etag: Option<String>,
    /// The modification time, in seconds, if it is known.
    pub(crate) modified: Option<SystemTime>,
    /// True if an equal or later date of a client means that it has this version (`If-Modified-Since`).
    pub(crate) is_date_meaningful: bool,
    /// True if the date is a strong validator (RFC 9110 section 8.8.2.2): it identifies the version for clients that
    /// got it after that second. For clients that got it within that second it doesn't.
    pub(crate) is_date_strong: bool,
}

/// The hash of a file's content, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentHash {
    /// The hash of all its bytes.
    Known(u128),
    /// Being computed, or waiting for it.
    Unknown,
    /// Such a file is never hashed.
    TooLarge,
}

impl ContentHash {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::Known(XxHash3_128::oneshot(bytes))
    }

    /// Returns the text of the hash, the same on all machines and in all versions. It isn't cryptographic: an author
    /// can create two files with the same hash.
    fn text(hash: u128) -> String {
        format!("{hash:032x}")
    }
}

impl Validators {
    /// Returns the validators of a file with this metadata and content at `unix_seconds`.
    ///
    /// The tag is a hash of the bytes, so it is the same on several machines. Until the hash is known, the metadata
    /// identifies the version for this process, device and inode included: a link that switches folders may lead to a
    /// file of the same length and time. There is no tag yet if the times were set or the file may still change
    /// within them. The tag of a file that is too large consists of length and `mtime`, and is weak (RFC 9110 section
    /// 8.8.1) until the `mtime` is some seconds old. The tag includes the coding: no two variants of a file share one.
    ///
    /// A time in the future is sent as now (RFC 9110 section 8.8.2.1).
    pub(crate) fn of(meta: &Meta, hash: ContentHash, coding: Option<Coding>, unix_seconds: u64) -> Self {
        let form = coding.map_or(String::new(), |coding| format!("-{}", coding.name()));
        let is_settled = is_past(meta.mtime, unix_seconds);
        let etag = match hash {
            ContentHash::Known(hash) => Some(format!("\"{}{form}\"", ContentHash::text(hash))),
            ContentHash::Unknown => (was_written(meta) && is_past(meta.ctime, unix_seconds))
                .then(|| format!("\"{:016x}-{:x}{form}\"", KEYS.hash_one(meta), meta.len)),
            ContentHash::TooLarge => {
                // Since 1970, possibly negative.
                let nanoseconds =
                    i128::from(meta.mtime.seconds) * 1_000_000_000 + i128::from(meta.mtime.nanoseconds);
                let weak = if is_settled { "" } else { "W/" };
                Some(format!("{weak}\"{:x}-{:x}{form}\"", nanoseconds, meta.len))
            }
        };
        let is_date_meaningful = match hash {
            ContentHash::Known(_) => !may_be_fixed(meta),
            ContentHash::Unknown => was_written(meta),
            ContentHash::TooLarge => true,
        };
        // If the system set the time, it is that of the last change, and no other version has this second once it is
        // over. A build that sets all times to the same moment, or a move, shows in the `ctime`.
        let is_date_strong = is_date_meaningful && is_settled && meta.mtime.seconds == meta.ctime.seconds;
        let seconds = u64::try_from(meta.mtime.seconds).unwrap_or(0).min(unix_seconds);
        let modified = Some(UNIX_EPOCH + Duration::from_secs(seconds));
        Self { etag, modified, is_date_meaningful, is_date_strong }
    }

    /// Returns the validators of generated content, which has no date.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let etag = Some(format!("\"{}\"", ContentHash::text(XxHash3_128::oneshot(bytes))));
        Self { etag, modified: None, is_date_meaningful: false, is_date_strong: false }
    }
}

/// Returns whether a time is over, so that a later change shows in it.
pub(crate) fn is_past(time: Timestamp, unix_seconds: u64) -> bool {
    u64::try_from(time.seconds).unwrap_or(0) + SAME_TIME_S < unix_seconds
}

/// Returns whether the system set both times of a file when it was written.
fn was_written(meta: &Meta) -> bool {
    let latest = Timestamp { seconds: meta.mtime.seconds + SAME_TIME_S as i64, ..meta.mtime };
    !may_be_fixed(meta) && (meta.mtime..=latest).contains(&meta.ctime)
}

/// Returns whether every version of a file may have its `mtime`. Builds, archives and images set whole seconds
/// (`SOURCE_DATE_EPOCH`); some read-only file systems have them as `ctime` too. The system itself records fractions.
const fn may_be_fixed(meta: &Meta) -> bool {
    meta.mtime.nanoseconds == 0
}

#[cfg(test)]
mod tests {
    use shearwater_io::fs::{Meta, Timestamp};

    use super::{ContentHash, Validators};

    fn meta(mtime: (i64, u32), ctime: (i64, u32), ino: u64) -> Meta {
        let time = |(seconds, nanoseconds)| Timestamp { seconds, nanoseconds };
        Meta { len: 7, mtime: time(mtime), ctime: time(ctime), ino, dev: 1, links: 1 }
    }

    /// A build may write two folders within a moment, give their files one time, and switch a link later.
    #[test]
    fn unhashed_files_have_a_tag_only_if_they_were_written_at_their_time() {
        for (mtime, ctime, now, has_tag, is_date_meaningful) in [
            ((100, 5), (100, 5), 103, true, true),
            ((100, 5), (102, 5), 105, true, true),
            // It may change within its times.
            ((100, 5), (100, 5), 102, false, true),
            ((100, 5), (102, 5), 104, false, true),
            // The time was set: before, later, to a whole second.
            ((100, 5), (102, 6), 109, false, false),
            ((1, 5), (100, 5), 109, false, false),
            ((101, 0), (100, 5), 109, false, false),
            ((100, 6), (100, 5), 109, false, false),
            ((100, 0), (100, 5), 109, false, false),
            ((100, 0), (100, 0), 109, false, false),
        ] {
            let of = |ino| Validators::of(&meta(mtime, ctime, ino), ContentHash::Unknown, None, now);
            let [first, second] = [1, 2].map(of);
            let found = (first.etag.is_some(), first.is_date_meaningful);
            assert_eq!(found, (has_tag, is_date_meaningful), "{mtime:?} {ctime:?} {now}");
            assert_eq!(of(1).etag, first.etag);
            assert_eq!(second.etag == first.etag, !has_tag, "another file of the same length and times");
            assert!(first.etag.is_none_or(|tag| tag.starts_with('"')), "strong");
        }
    }

    #[test]
    fn dates_of_hashed_files_count_unless_they_may_be_fixed() {
        let hash = ContentHash::of(b"content");
        for (mtime, hash, is_date_meaningful) in
            [((1, 5), hash, true), ((1, 0), hash, false), ((1, 0), ContentHash::TooLarge, true)]
        {
            let validators = Validators::of(&meta(mtime, (100, 5), 1), hash, None, 109);
            assert_eq!(validators.is_date_meaningful, is_date_meaningful, "{mtime:?} {hash:?}");
        }
        let tags = [1, 2].map(|ino| Validators::of(&meta((1, 0), (100, 5), ino), hash, None, 109).etag);
        assert_eq!(tags[0], tags[1], "the content alone counts");
    }

    #[test]
    fn tag_is_the_same_on_all_machines() {
        // The value of the reference implementation.
        let tag = Validators::of_bytes(b"abc").etag;
        assert_eq!(tag.as_deref(), Some("\"06b05ab6733a618578af5f94892f3950\""));
    }
}
