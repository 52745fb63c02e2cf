//! As what a file is sent: as it is, or in a coding (RFC 9110 section 3.2: the representations of one resource).

use crate::coding::Coding;
use crate::siblings::Siblings;

/// One of the forms that a file is sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The file itself, which may have siblings.
    Plain(Siblings),
    /// A sibling in its place.
    Coded(Coding),
}

impl Variant {
    pub(crate) const fn coding(self) -> Option<Coding> {
        match self {
            Self::Plain(_) => None,
            Self::Coded(coding) => Some(coding),
        }
    }

    /// What else the file could be sent as. A sibling is in the place of a file whose siblings are known.
    pub(crate) const fn siblings(self) -> Siblings {
        match self {
            Self::Plain(siblings) => siblings,
            Self::Coded(_) => Siblings::NONE,
        }
    }

    /// Whether another client may be sent another one.
    pub(crate) const fn varies(self) -> bool {
        match self {
            Self::Plain(siblings) => !siblings.is_empty(),
            Self::Coded(_) => true,
        }
    }
}

/// What is kept and sent: under which key, by which name and as what.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// The file's name; for a sibling its own name and a NUL, which no name has: for its own sake it is kept as another.
    pub(crate) key: &'a [u8],
    /// The file's name: it tells the media type, whatever the coding.
    pub(crate) name: &'a [u8],
    pub(crate) variant: Variant,
}

impl<'a> Entry<'a> {
    pub(crate) const fn plain(name: &'a [u8], siblings: Siblings) -> Self {
        Self { key: name, name, variant: Variant::Plain(siblings) }
    }

    /// A sibling of the file at the start of `key`, which is as long as `name_len`.
    pub(crate) fn coded(key: &'a [u8], name_len: usize, coding: Coding) -> Self {
        Self { key, name: &key[..name_len], variant: Variant::Coded(coding) }
    }

    /// Where it lies beneath the root.
    pub(crate) fn path(self) -> &'a [u8] {
        self.key.strip_suffix(b"\0").unwrap_or(self.key)
    }
}
