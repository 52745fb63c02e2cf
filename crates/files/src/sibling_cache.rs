//! Caches the siblings of files that aren't in memory, for 500 ms.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::limits::{CACHED_SIBLINGS_MAX, CacheLimits};
use crate::now::Now;
use crate::siblings::Siblings;

/// A direct-mapped table of at most `CACHED_SIBLINGS_MAX` names.
///
/// A name is stored only as its hash. A collision is harmless, since a sibling is compared with its file when it is
/// opened.
pub(crate) struct SiblingCache {
    /// False if the file cache is disabled.
    is_on: bool,
    hasher: RandomState,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
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

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }

    /// Stores the siblings of a file.
    pub(crate) fn insert(&mut self, name: &[u8], now: Now, siblings: Siblings) {
        if !self.is_on {
            return;
        }
        let hash = self.hasher.hash_one(name);
        let slot = Slot { hash, checked_ms: now.ms, siblings };
        if self.slots.is_empty() {
            self.slots.resize(CACHED_SIBLINGS_MAX, slot);
        }
        self.slots[hash as usize % CACHED_SIBLINGS_MAX] = slot;
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
    fn what_was_seen_counts_for_a_moment() {
        let mut seen = SiblingCache::new(CacheLimits::default());
        assert_eq!(seen.get(b"a", at(1_000)), None);
        seen.insert(b"a", at(1_000), Siblings::NONE);
        assert_eq!(seen.get(b"a", at(1_499)), Some(Siblings::NONE));
        assert_eq!(seen.get(b"b", at(1_000)), None);
        assert_eq!(seen.get(b"a", at(1_500)), None);
        let mut off = SiblingCache::new(CacheLimits::none());
        off.insert(b"a", at(1_000), Siblings::NONE);
        assert_eq!(off.get(b"a", at(1_000)), None);
    }

    #[test]
    fn a_bounded_number_of_names_is_remembered() {
        let mut seen = SiblingCache::new(CacheLimits::default());
        let names: Vec<_> = (0..10 * CACHED_SIBLINGS_MAX).map(|number| number.to_string()).collect();
        for name in &names {
            seen.insert(name.as_bytes(), at(1_000), Siblings::NONE);
            assert!(seen.get(name.as_bytes(), at(1_000)).is_some(), "the last one is");
        }
        let is_remembered = |name: &&String| seen.get(name.as_bytes(), at(1_000)).is_some();
        let remembered = names.iter().filter(is_remembered).count();
        assert!((1..=CACHED_SIBLINGS_MAX).contains(&remembered), "{remembered}");
        assert_eq!(seen.slots.len(), CACHED_SIBLINGS_MAX);
    }
}
