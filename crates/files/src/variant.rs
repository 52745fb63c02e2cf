//! Variants of a file: plain, or in a coding (RFC 9110 section 3.2: the representations of one resource).

use crate::coding::Coding;
use crate::siblings::Siblings;

/// A variant of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The file itself, which may have siblings.
    Plain(Siblings),
    /// A precompressed sibling.
    Coded(Coding),
}

impl Variant {
    pub(crate) const fn coding(self) -> Option<Coding> {
        match self {
            Self::Plain(_) => None,
            Self::Coded(coding) => Some(coding),
        }
    }

    /// Returns the siblings of the plain file; those of a sibling are known from its file.
    pub(crate) const fn siblings(self) -> Siblings {
        match self {
            Self::Plain(siblings) => siblings,
            Self::Coded(_) => Siblings::NONE,
        }
    }

    /// Returns whether other clients may get another variant.
    pub(crate) const fn varies(self) -> bool {
        match self {
            Self::Plain(siblings) => !siblings.is_empty(),
            Self::Coded(_) => true,
        }
    }
}

/// A variant with its cache key and name.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// The file's name; for a sibling, its own name and a NUL. So it differs from the key of the same file requested by
    /// its own name.
    pub(crate) key: &'a [u8],
    /// The file's name, which determines the media type in any coding.
    pub(crate) name: &'a [u8],
    pub(crate) variant: Variant,
}

impl<'a> Entry<'a> {
    pub(crate) const fn plain(name: &'a [u8], siblings: Siblings) -> Self {
        Self { key: name, name, variant: Variant::Plain(siblings) }
    }

    /// Returns the entry of a sibling of the file that the first `name_len` bytes of `key` name.
    pub(crate) fn coded(key: &'a [u8], name_len: usize, coding: Coding) -> Self {
        Self { key, name: &key[..name_len], variant: Variant::Coded(coding) }
    }

    /// Returns the path beneath the root.
    pub(crate) fn path(self) -> &'a [u8] {
        self.key.strip_suffix(b"\0").unwrap_or(self.key)
    }
}
