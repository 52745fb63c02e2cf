//! Files that hold another file's content in a coding, beside it: `NAME.br`, `NAME.zst` and `NAME.gz`.
//!
//! A sibling that is older than its file is of an earlier content and is left out. So is one of a later time that was there before
//! the file came into its place: an earlier version that is put back keeps its own, earlier time. What a worker has found it looks at again within a
//! second, as it does with the files themselves.

use shearwater_io::fs::{Kind, Meta, Opened, Root, Timestamp};

use crate::coding::{Coding, Codings};

/// A file's siblings, and what they are held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Siblings {
    codings: Codings,
    /// When the file was modified; nothing is told of it without siblings.
    mtime: Timestamp,
    /// When it was changed, or came into its place.
    ctime: Timestamp,
}

impl Siblings {
    /// No siblings.
    pub(crate) const NONE: Self = Self { codings: Codings::NONE, mtime: Self::NO_TIME, ctime: Self::NO_TIME };

    const NO_TIME: Timestamp = Timestamp { seconds: 0, nanoseconds: 0 };

    /// Looks for those of the file of this name, in these codings. `name` is as before afterwards.
    pub(crate) fn look(root: &Root, codings: &[Coding], name: &mut Vec<u8>, meta: &Meta) -> Self {
        let mut siblings = Self { mtime: meta.mtime, ctime: meta.ctime, ..Self::NONE };
        let len = name.len();
        // What is packed already has none.
        let is_packed = Coding::ALL.iter().any(|coding| name.ends_with(coding.extension().as_bytes()));
        for &coding in codings.iter().filter(|_| !is_packed) {
            name.extend_from_slice(coding.extension().as_bytes());
            if root.open_beneath(name).is_ok_and(|opened| siblings.admit(&opened)) {
                siblings.codings.add(coding);
            }
            name.truncate(len);
        }
        if siblings.is_empty() { Self::NONE } else { siblings }
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.codings.is_empty()
    }

    pub(crate) const fn codings(self) -> Codings {
        self.codings
    }

    /// Whether what was opened may be sent in the file's place.
    pub(crate) fn admit(self, opened: &Opened) -> bool {
        opened.kind == Kind::File && self.are_not_newer_than(&opened.meta)
    }

    /// Whether a sibling isn't older than the file. Programs that pack a file give its time to what they make, and some of them cut off
    /// the fraction of the second. One of a later time is of this content only if the file was in its place by then.
    pub(crate) fn are_not_newer_than(self, sibling: &Meta) -> bool {
        let (file, made) = (self.mtime, sibling.mtime);
        let is_of_its_time = made == file || made.nanoseconds == 0 && made.seconds == file.seconds;
        is_of_its_time || made > file && sibling.ctime >= self.ctime
    }
}

#[cfg(test)]
mod tests {
    use shearwater_io::fs::{Meta, Timestamp};

    use super::Siblings;

    #[test]
    fn a_sibling_may_have_lost_the_fraction_of_its_second() {
        let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        let siblings = Siblings { mtime: time(10, 500), ctime: time(20, 0), ..Siblings::NONE };
        for (mtime, is_sent) in [
            (time(10, 500), true),
            (time(10, 501), true),
            (time(11, 0), true),
            (time(10, 0), true),
            (time(10, 499), false),
            (time(9, 999_999_999), false),
            (time(9, 0), false),
        ] {
            let meta = Meta { len: 1, mtime, ctime: time(20, 0), ino: 1, dev: 1, links: 1 };
            assert_eq!(siblings.are_not_newer_than(&meta), is_sent, "{mtime:?}");
        }
    }

    #[test]
    fn a_sibling_of_a_later_time_is_left_out_if_it_was_there_before_the_file() {
        let time = |seconds| Timestamp { seconds, nanoseconds: 0 };
        let siblings = Siblings { mtime: time(10), ctime: time(20), ..Siblings::NONE };
        for (mtime, ctime, is_sent) in [(15, 19, false), (15, 20, true), (15, 21, true), (10, 19, true)] {
            let meta = Meta { len: 1, mtime: time(mtime), ctime: time(ctime), ino: 1, dev: 1, links: 1 };
            assert_eq!(siblings.are_not_newer_than(&meta), is_sent, "{mtime} {ctime}");
        }
    }
}
