//! Precompressed siblings of a file: `NAME.br`, `NAME.zst` and `NAME.gz`.
//!
//! A sibling is sent only if it can have the file's present content. [`is_current_sibling`] decides that, for
//! `shearwater precompress` too. A worker checks it again within a second, like the files themselves.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use shearwater_io::fs::{Coding, Kind, Meta, Opened, Root, Timestamp, is_current_sibling};

use crate::limits::{CACHED_SIBLINGS_MAX, CacheLimits};
use crate::negotiation::Codings;
use crate::now::Now;

/// A file's siblings and the metadata they are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Siblings {
    pub(crate) codings: Codings,
    /// The file's metadata; zeros without siblings.
    file: Meta,
}

impl Siblings {
    /// No siblings.
    pub(crate) const NONE: Self = {
        let time = Timestamp { seconds: 0, nanoseconds: 0 };
        let file = Meta { len: 0, mtime: time, ctime: time, ino: 0, dev: 0, links: 0 };
        Self { codings: Codings::NONE, file }
    };

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

    pub(crate) fn is_empty(self) -> bool {
        self.codings == Codings::NONE
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

/// A file or one of its siblings, by name (RFC 9110 section 3.2: the representations of one resource).
#[derive(Clone, Copy)]
pub(crate) struct Representation<'a> {
    /// The key in the cache: the file's name; for a sibling, its own name and a NUL. So it differs from the key of the
    /// same file requested by its own name.
    pub(crate) key: &'a [u8],
    /// The file's name, which determines the media type in any coding.
    pub(crate) name: &'a [u8],
    /// The coding of a sibling.
    pub(crate) coding: Option<Coding>,
    /// The siblings of a file; none for a sibling.
    pub(crate) siblings: Siblings,
}

impl<'a> Representation<'a> {
    pub(crate) const fn plain(name: &'a [u8], siblings: Siblings) -> Self {
        Self { key: name, name, coding: None, siblings }
    }

    /// Returns whether other clients may get another coding.
    pub(crate) fn varies(self) -> bool {
        self.coding.is_some() || !self.siblings.is_empty()
    }
}

/// Caches the siblings of files that aren't in memory, for 500 ms: a direct-mapped table of at most
/// `CACHED_SIBLINGS_MAX` names.
///
/// A name is stored only as its hash. A collision is harmless, since a sibling is compared with its file when it is
/// opened.
pub(crate) struct SiblingCache {
    /// False if the file cache is disabled.
    is_on: bool,
    hasher: RandomState,
    slots: Vec<SiblingSlot>,
}

#[derive(Clone, Copy)]
struct SiblingSlot {
    hash: u64,
    checked_ms: u64,
    siblings: Siblings,
}

impl SiblingCache {
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self { is_on: limits.cached_files_max > 0, hasher: RandomState::default(), slots: Vec::new() }
    }

    /// Returns the fresh siblings of a file.
    pub(crate) fn get(&self, name: &[u8], now: Now) -> Option<Siblings> {
        if self.slots.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(name);
        let slot = self.slots[hash as usize % CACHED_SIBLINGS_MAX];
        (slot.hash == hash && now.is_fresh(slot.checked_ms)).then_some(slot.siblings)
    }

    /// Stores the siblings of a file.
    pub(crate) fn insert(&mut self, name: &[u8], now: Now, siblings: Siblings) {
        if !self.is_on {
            return;
        }
        let hash = self.hasher.hash_one(name);
        let slot = SiblingSlot { hash, checked_ms: now.ms, siblings };
        if self.slots.is_empty() {
            self.slots.resize(CACHED_SIBLINGS_MAX, slot);
        }
        self.slots[hash as usize % CACHED_SIBLINGS_MAX] = slot;
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{CACHED_SIBLINGS_MAX, Now, SiblingCache, Siblings};
    use crate::limits::CacheLimits;

    fn at(ms: u64) -> Now {
        Now { ms, unix_seconds: 0 }
    }

    #[test]
    fn siblings_count_for_half_a_second() {
        let mut cache = SiblingCache::new(CacheLimits::default());
        assert_eq!(cache.get(b"a", at(1_000)), None);
        cache.insert(b"a", at(1_000), Siblings::NONE);
        let get = |name: &[u8], ms| cache.get(name, at(ms)).is_some();
        assert_eq!([get(b"a", 1_499), get(b"b", 1_000), get(b"a", 1_500)], [true, false, false]);
        let mut off = SiblingCache::new(CacheLimits::none());
        off.insert(b"a", at(1_000), Siblings::NONE);
        assert_eq!(off.get(b"a", at(1_000)), None);
    }

    #[test]
    fn bounds_the_number_of_cached_siblings() {
        let mut cache = SiblingCache::new(CacheLimits::default());
        let names: Vec<_> = (0..10 * CACHED_SIBLINGS_MAX).map(|number| number.to_string()).collect();
        for name in &names {
            cache.insert(name.as_bytes(), at(1_000), Siblings::NONE);
            assert!(cache.get(name.as_bytes(), at(1_000)).is_some(), "the last one is");
        }
        let is_remembered = |name: &&String| cache.get(name.as_bytes(), at(1_000)).is_some();
        let remembered = names.iter().filter(is_remembered).count();
        assert!((1..=CACHED_SIBLINGS_MAX).contains(&remembered), "{remembered}");
        assert_eq!(cache.slots.len(), CACHED_SIBLINGS_MAX);
    }
}
