//! Caches the siblings of files that aren't in memory, for 500 ms.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::limits::{CacheLimits, SEEN_FILES_MAX};
use crate::now::Now;
use crate::siblings::Siblings;

/// A direct-mapped table of at most `SEEN_FILES_MAX` names.
///
/// A name is stored only as its hash. A collision is harmless, since a sibling is compared with its file when it is
/// opened.
pub(crate) struct Seen {
    /// False if the file cache is disabled.
    is_on: bool,
    hasher: RandomState,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    seen_ms: u64,
    siblings: Siblings,
}

impl Seen {
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self { is_on: limits.cached_files_max > 0, hasher: RandomState::default(), places: Vec::new() }
    }

    /// Returns the fresh siblings of a file.
    pub(crate) fn get(&self, name: &[u8], now: Now) -> Option<Siblings> {
        if self.places.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(name);
        let place = self.places[hash as usize % SEEN_FILES_MAX];
        (place.hash == hash && now.is_just_after(place.seen_ms)).then_some(place.siblings)
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
    }

    /// Stores the siblings of a file.
    pub(crate) fn note(&mut self, name: &[u8], now: Now, siblings: Siblings) {
        if !self.is_on {
            return;
        }
        let hash = self.hasher.hash_one(name);
        let place = Place { hash, seen_ms: now.ms, siblings };
        if self.places.is_empty() {
            self.places.resize(SEEN_FILES_MAX, place);
        }
        self.places[hash as usize % SEEN_FILES_MAX] = place;
    }
}

#[cfg(test)]
mod tests {
    use super::{Now, SEEN_FILES_MAX, Seen, Siblings};
    use crate::limits::CacheLimits;

    fn at(ms: u64) -> Now {
        Now { ms, unix_seconds: 0 }
    }

    #[test]
    fn what_was_seen_counts_for_a_moment() {
        let mut seen = Seen::new(CacheLimits::default());
        assert_eq!(seen.get(b"a", at(1_000)), None);
        seen.note(b"a", at(1_000), Siblings::NONE);
        assert_eq!(seen.get(b"a", at(1_499)), Some(Siblings::NONE));
        assert_eq!(seen.get(b"b", at(1_000)), None);
        assert_eq!(seen.get(b"a", at(1_500)), None);
        let mut off = Seen::new(CacheLimits::none());
        off.note(b"a", at(1_000), Siblings::NONE);
        assert_eq!(off.get(b"a", at(1_000)), None);
    }

    #[test]
    fn a_bounded_number_of_names_is_remembered() {
        let mut seen = Seen::new(CacheLimits::default());
        let names: Vec<_> = (0..10 * SEEN_FILES_MAX).map(|number| number.to_string()).collect();
        for name in &names {
            seen.note(name.as_bytes(), at(1_000), Siblings::NONE);
            assert!(seen.get(name.as_bytes(), at(1_000)).is_some(), "the last one is");
        }
        let is_remembered = |name: &&String| seen.get(name.as_bytes(), at(1_000)).is_some();
        let remembered = names.iter().filter(is_remembered).count();
        assert!((1..=SEEN_FILES_MAX).contains(&remembered), "{remembered}");
        assert_eq!(seen.places.len(), SEEN_FILES_MAX);
    }
}
