//! Precompressed siblings of a file: `NAME.br`, `NAME.zst` and `NAME.gz`.
//!
//! A sibling is sent only if it can have the file's present content. [`is_current_sibling`] decides that, for
//! `shearwater precompress` too. A worker checks it again within a second, like the files themselves.

use shearwater_io::fs::{Kind, Meta, Opened, Root, Timestamp, is_current_sibling};

use crate::coding::{Coding, Codings};

/// A file's siblings and the metadata they are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Siblings {
    codings: Codings,
    /// The file's metadata; zeros without siblings.
    file: Meta,
}

impl Siblings {
    /// No siblings.
    pub(crate) const NONE: Self = Self { codings: Codings::NONE, file: Self::NO_FILE };

    const NO_TIME: Timestamp = Timestamp { seconds: 0, nanoseconds: 0 };
    const NO_FILE: Meta =
        Meta { len: 0, mtime: Self::NO_TIME, ctime: Self::NO_TIME, ino: 0, dev: 0, links: 0 };

    /// Looks for the siblings of a file in these codings. Restores `name` afterwards.
    pub(crate) fn find(root: &Root, codings: &[Coding], name: &mut Vec<u8>, meta: &Meta) -> Self {
        let mut siblings = Self { codings: Codings::NONE, file: *meta };
        let len = name.len();
        // A compressed file has no siblings.
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

    /// Returns whether an opened sibling may be sent instead of the file.
    pub(crate) fn admit(self, opened: &Opened) -> bool {
        opened.kind == Kind::File && is_current_sibling(&opened.file, &opened.meta, &self.file)
    }

    /// Returns whether an admitted sibling can have the file's present content.
    pub(crate) fn are_current(self, sibling: &Meta) -> bool {
        sibling.is_current_for(&self.file)
    }
}
