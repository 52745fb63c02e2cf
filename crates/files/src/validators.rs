//! What tells one version of a file from another: entity tag and modification time (RFC 9110 section 8.8).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater_io::fs::{Meta, Timestamp};

use crate::coding::Coding;

/// A file's validators, taken from its metadata.
#[derive(Debug, Clone)]
pub(crate) struct Validators {
    etag: String,
    modified: Option<SystemTime>,
    is_date_strong: bool,
}

impl Validators {
    /// The tag: times of modification and of change in nanoseconds, length, and which file it is. Modification alone would not do: builds
    /// that set all times to the same moment replace a file by another of equal length; and two that were written within one tick of the
    /// system's clock, to be exchanged by a link later, differ in their inodes alone (or, on mounted images of releases, in their devices). And the coding: two forms of one file are never taken for one another. A time that lies ahead of `unix_seconds` is sent as now (RFC
    /// 9110 section 8.8.2.1).
    pub(crate) fn of(meta: &Meta, coding: Option<Coding>, unix_seconds: u64) -> Self {
        let (changed, modified) = (nanoseconds(meta.ctime), nanoseconds(meta.mtime));
        let form = coding.map_or(String::new(), |coding| format!("-{}", coding.name()));
        let etag = format!("\"{modified:x}-{changed:x}-{:x}-{:x}-{:x}{form}\"", meta.len, meta.dev, meta.ino);
        let seconds = u64::try_from(meta.mtime.seconds).unwrap_or(0).min(unix_seconds);
        // Where the system itself has set the time it is that of the last change, and no other version is of that second once it is over. A
        // build that sets all times to the same moment, or a move to another place, shows in the other one.
        let is_date_strong = meta.mtime.seconds == meta.ctime.seconds && seconds < unix_seconds;
        Self { etag, modified: Some(UNIX_EPOCH + Duration::from_secs(seconds)), is_date_strong }
    }

    /// Those of something that has a tag alone, in its quotes.
    pub(crate) const fn of_tag(etag: String) -> Self {
        Self { etag, modified: None, is_date_strong: false }
    }

    /// The strong entity tag, in quotes.
    pub(crate) fn etag(&self) -> &str {
        &self.etag
    }

    /// When it was modified, to the second, if that can be told.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// Whether that date alone tells the version that a client was given after that second (RFC 9110 section 8.8.2.2). One who was given
    /// an earlier one, within it, may not ask by the date.
    pub(crate) fn is_date_strong(&self) -> bool {
        self.is_date_strong
    }

    /// The same, as a field value.
    pub(crate) fn last_modified(&self) -> Option<String> {
        self.modified.map(httpdate::fmt_http_date)
    }
}

/// Nanoseconds since 1970; a time before that counts as 1970.
fn nanoseconds(time: Timestamp) -> u128 {
    u128::try_from(time.seconds).unwrap_or(0) * 1_000_000_000 + u128::from(time.nanoseconds)
}

#[cfg(test)]
mod tests {
    use shearwater_io::fs::{Meta, Timestamp};

    use super::Validators;
    use crate::coding::Coding;

    #[test]
    fn whatever_differs_gives_another_tag() {
        let time = |nanoseconds| Timestamp { seconds: 7, nanoseconds };
        let meta = Meta { len: 3, mtime: time(1), ctime: time(2), ino: 1, dev: 1, links: 1 };
        let tag = |meta: Meta, coding| Validators::of(&meta, coding, 100).etag().to_owned();
        let tags = [
            tag(meta, None),
            tag(meta, Some(Coding::Gzip)),
            tag(Meta { len: 4, ..meta }, None),
            tag(Meta { mtime: time(3), ..meta }, None),
            tag(Meta { ctime: time(3), ..meta }, None),
            tag(Meta { ino: 2, ..meta }, None),
            tag(Meta { dev: 2, ..meta }, None),
        ];
        for (number, tag) in tags.iter().enumerate() {
            assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
            assert!(!tags[..number].contains(tag), "{tag}");
        }
        assert_eq!(tag(meta, None), tag(Meta { links: 2, ..meta }, None), "a name more is no other version");
    }
}
