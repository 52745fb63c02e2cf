//! Precompressed siblings of a file: `NAME.br`, `NAME.zst` and `NAME.gz`. And which codings a response can have.
//!
//! A sibling is sent only if it can have the file's present content. `is_current_sibling` decides that, for
//! `shearwater precompress` too. A worker checks it again within a second, like the files themselves.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use shearwater_compress::negotiation::Codings;
use shearwater_io::fs::{Coding, Kind, Meta, OpenError, Opened, Root, Timestamp, is_current_sibling_by};

use crate::disk::Disk;
use crate::media_type::is_svgz;
use crate::settings::FolderSettings;

/// A file's siblings and the metadata they are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Siblings {
    pub(crate) codings: Codings,
    /// Codings whose names exist, even if they are no siblings: outdated ones, or something else.
    named: Codings,
    /// A hash of the metadata behind these names. A collision only delays that a name becomes a sibling or none: a
    /// sibling is checked itself before it is sent.
    seen: u64,
    /// The file is compressed on the fly.
    pub(crate) is_compressed: bool,
    /// The file's metadata; zeros if no name exists and the file isn't compressed.
    pub(crate) file: Meta,
}

impl Siblings {
    /// No siblings.
    pub(crate) const NONE: Self = {
        let time = Timestamp { seconds: 0, nanoseconds: 0 };
        let file = Meta { len: 0, mtime: time, ctime: time, ino: 0, dev: 0, links: 0 };
        Self { codings: Codings::NONE, named: Codings::NONE, seen: 0, is_compressed: false, file }
    };

    /// Looks for the siblings of a file. Restores `name` afterwards.
    pub(crate) fn find(
        disk: Disk<'_>,
        settings: &FolderSettings,
        name: &mut Vec<u8>,
        meta: &Meta,
    ) -> Result<Self, OpenError> {
        let (len, is_packed) = (name.len(), is_packed(name));
        let is_compressed = !is_packed && settings.compresses(name, meta.len);
        let mut siblings = Self { file: *meta, is_compressed, ..Self::NONE };
        for &coding in settings.codings.iter().filter(|_| !is_packed) {
            name.extend_from_slice(coding.extension().as_bytes());
            let opened = disk.open(name);
            name.truncate(len);
            match opened {
                Ok(opened) => {
                    siblings.note(coding, Some(&opened.meta));
                    if siblings.admit(coding, disk, &opened)? {
                        siblings.codings.add(coding);
                    }
                }
                Err(OpenError::NotFound) => {}
                Err(OpenError::WouldBlock) => return Err(OpenError::WouldBlock),
                Err(_) => siblings.note(coding, None),
            }
        }
        let is_alone = siblings.named == Codings::NONE && !is_compressed;
        Ok(if is_alone { Self::NONE } else { siblings })
    }

    /// Adds a name that exists to those seen.
    fn note(&mut self, coding: Coding, meta: Option<&Meta>) {
        self.named.add(coding);
        self.seen = FixedState::default().hash_one((self.seen, coding, meta));
    }

    /// Returns whether [`find`](Self::find) would find the same, by the metadata of the names alone. Restores `name`
    /// afterwards.
    ///
    /// `are_names_same` says that no name in the directory has come or gone since it last returned true. Then missing
    /// ones aren't looked for again.
    pub(crate) fn are_unchanged(
        self,
        root: &Root,
        codings: &[Coding],
        name: &mut Vec<u8>,
        are_names_same: bool,
    ) -> bool {
        let mut present = Self { named: Codings::NONE, seen: 0, ..self };
        let (len, is_packed) = (name.len(), is_packed(name));
        let may_exist = |coding: &&Coding| !is_packed && (!are_names_same || self.named.has(**coding));
        for &coding in codings.iter().filter(may_exist) {
            name.extend_from_slice(coding.extension().as_bytes());
            let found = root.compare_at(name);
            name.truncate(len);
            match found {
                Ok(meta) => present.note(coding, Some(&meta)),
                Err(OpenError::NotFound) => {}
                Err(_) => return false,
            }
        }
        present == self
    }

    /// Returns only the file that these are siblings of: a sibling has none itself, and is one of this version.
    pub(crate) const fn of_file_only(self) -> Self {
        Self { file: self.file, is_compressed: self.is_compressed, ..Self::NONE }
    }

    /// Returns whether the file is the only representation.
    pub(crate) fn is_empty(self) -> bool {
        self.available() == Codings::NONE
    }

    /// Returns the codings of siblings, and those in which the file can be compressed.
    pub(crate) const fn available(self) -> Codings {
        if self.is_compressed { Codings::ALL } else { self.codings }
    }

    /// Returns whether an opened sibling may be sent instead of the file.
    pub(crate) fn admit(self, coding: Coding, disk: Disk<'_>, opened: &Opened) -> Result<bool, OpenError> {
        if opened.kind != Kind::File {
            return Ok(false);
        }
        let read_at = |bytes: &mut [u8], offset| disk.read_at(opened, bytes, offset);
        is_current_sibling_by(coding, &opened.meta, &self.file, read_at).map_err(|_| OpenError::WouldBlock)
    }

    /// Passes the representation of a sibling to `act`. Restores `name` afterwards.
    pub(crate) fn with_sibling<R>(
        self,
        coding: Coding,
        name: &mut Vec<u8>,
        act: impl FnOnce(Representation<'_>) -> R,
    ) -> R {
        let len = name.len();
        name.extend_from_slice(coding.extension().as_bytes());
        name.push(0);
        let siblings = self.of_file_only();
        let result = act(Representation { key: name, name: &name[..len], coding: Some(coding), siblings });
        name.truncate(len);
        result
    }

    /// Returns whether an admitted sibling can have the file's present content.
    pub(crate) fn are_current(self, sibling: &Meta) -> bool {
        sibling.is_current_for(&self.file)
    }
}

/// Returns whether this is the name of a compressed file, which has no siblings.
fn is_packed(name: &[u8]) -> bool {
    is_svgz(name) || Coding::ALL.iter().any(|coding| name.ends_with(coding.extension().as_bytes()))
}

/// A file or one of its siblings, by name (RFC 9110 section 3.2: the representations of one resource).
#[derive(Clone, Copy)]
pub(crate) struct Representation<'a> {
    /// The key in the cache: the file's name; for a sibling, its own name and a NUL, so it differs from the key of the
    /// same file requested by its own name; for a file that was compressed, its name, a NUL and the coding.
    pub(crate) key: &'a [u8],
    /// The file's name, which determines the media type in any coding.
    pub(crate) name: &'a [u8],
    /// The coding of a sibling, or of a file that was compressed.
    pub(crate) coding: Option<Coding>,
    /// The siblings of a file; [`Siblings::of_file_only`] for a sibling.
    pub(crate) siblings: Siblings,
}

impl<'a> Representation<'a> {
    /// Returns the name of the file or sibling beneath the root.
    pub(crate) fn path(self) -> &'a [u8] {
        self.key.strip_suffix(b"\0").unwrap_or(self.key)
    }

    pub(crate) const fn plain(name: &'a [u8], siblings: Siblings) -> Self {
        Self { key: name, name, coding: None, siblings }
    }

    /// Returns whether other clients may get another coding.
    pub(crate) fn varies(self) -> bool {
        self.coding.is_some() || !self.siblings.is_empty()
    }
}
