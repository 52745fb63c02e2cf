//! Caches lookups of path names for 500 ms: an index, a page without its extension, a fallback. A repeated request
//! costs one lookup here, however many candidates were tried for it.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use crate::clock_cache::Kept;
use crate::held::Held;
use crate::limits::LOOKUP_NAME_BYTES_MAX;
use crate::now::Now;
use crate::shelf::Shelf;

/// A folder's lookups by path name: at most `LOOKUPS_PER_CACHED_FILE` for each file in the worker's cache, of names of
/// at most `LOOKUP_NAME_BYTES_MAX` bytes.
pub(crate) struct Lookups {
    found: Shelf<Lookup>,
}

/// The result of a lookup.
pub(crate) struct Lookup {
    place: Place,
    seen_ms: Cell<u64>,
    was_used: Cell<bool>,
}

/// Location of the file.
enum Place {
    /// In memory, unless it was evicted.
    Held(Weak<Held>),
    /// Under another name, not in memory.
    Elsewhere(Box<[u8]>),
}

impl Lookups {
    pub(crate) fn new(found: Shelf<Lookup>) -> Self {
        Self { found }
    }

    /// Returns the cached file of a fresh lookup and marks it as used.
    pub(crate) fn held(&self, name: &[u8], now: Now) -> Option<Rc<Held>> {
        self.found.get(name, |lookup| match lookup.place(now)? {
            Place::Held(held) => {
                let held = held.upgrade()?;
                held.mark_used();
                Some(held)
            }
            Place::Elsewhere(_) => None,
        })
    }

    /// Returns the cached file of a recent lookup, for requests without a free descriptor.
    pub(crate) fn held_lately(&self, name: &[u8], now: Now) -> Option<Rc<Held>> {
        self.found.get(name, |lookup| match &lookup.place {
            Place::Held(held) if now.is_soon_after(lookup.seen_ms.get()) => held.upgrade(),
            _ => None,
        })
    }

    /// Writes the file name of a fresh lookup, if the file isn't in memory.
    pub(crate) fn elsewhere(&self, name: &[u8], now: Now, file: &mut Vec<u8>) -> Option<()> {
        self.found.get(name, |lookup| match lookup.place(now)? {
            Place::Held(_) => None,
            Place::Elsewhere(name) => {
                file.clear();
                file.extend_from_slice(name);
                Some(())
            }
        })
    }

    /// Stores a cached file as the result of a lookup.
    pub(crate) fn note_held(&self, name: &[u8], held: &Rc<Held>, now: Now) {
        let is_same =
            |place: &Place| matches!(place, Place::Held(known) if known.as_ptr() == Rc::as_ptr(held));
        self.note(name, now, is_same, || Place::Held(Rc::downgrade(held)));
    }

    /// Stores the name of a file as the result of a lookup.
    pub(crate) fn note_elsewhere(&self, name: &[u8], file: &[u8], now: Now) {
        let is_same = |place: &Place| matches!(place, Place::Elsewhere(known) if known[..] == *file);
        self.note(name, now, is_same, || Place::Elsewhere(file.into()));
    }

    /// Removes a name.
    pub(crate) fn remove(&self, name: &[u8]) {
        self.found.remove(name);
    }

    /// Removes all names of the folder.
    pub(crate) fn clear(&self) {
        self.found.clear();
    }

    /// Stores a result. It is nearly always unchanged, and then only its time is updated.
    fn note(&self, name: &[u8], now: Now, is_same: impl Fn(&Place) -> bool, place: impl Fn() -> Place) {
        let renewed =
            self.found.get(name, |lookup| is_same(&lookup.place).then(|| lookup.seen_ms.set(now.ms)));
        match renewed {
            Some(()) => {}
            None if name.len() > LOOKUP_NAME_BYTES_MAX => {}
            None => {
                let lookup =
                    Lookup { place: place(), seen_ms: Cell::new(now.ms), was_used: Cell::new(false) };
                self.found.insert(name, lookup);
            }
        }
    }
}

impl Lookup {
    /// Returns the location, if it is fresh.
    fn place(&self, now: Now) -> Option<&Place> {
        now.is_just_after(self.seen_ms.get()).then_some(&self.place)
    }
}

impl Kept for Lookup {
    fn bytes(&self) -> u64 {
        0
    }

    fn was_used(&self) -> &Cell<bool> {
        &self.was_used
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOKUP_NAME_BYTES_MAX, Lookups, Now};
    use crate::file_cache::FileCache;
    use crate::held::held_for_test;
    use crate::limits::{CacheLimits, LOOKUPS_PER_CACHED_FILE, UNSEEN_MS_MAX};

    fn lookups(limits: CacheLimits) -> Lookups {
        Lookups::new(FileCache::new(limits).next().lookups)
    }

    fn elsewhere(lookups: &Lookups, name: &[u8], ms: u64) -> Option<Vec<u8>> {
        let mut file = Vec::new();
        lookups.elsewhere(name, at(ms), &mut file).map(|()| file)
    }

    fn at(ms: u64) -> Now {
        Now { ms, unix_seconds: 0 }
    }

    fn is_held(lookups: &Lookups, name: &[u8], ms: u64) -> bool {
        lookups.held(name, at(ms)).is_some()
    }

    #[test]
    fn what_was_found_counts_for_a_moment_and_while_it_is_kept() {
        let lookups = lookups(CacheLimits::default());
        let (held, other) = (held_for_test(1), held_for_test(1));
        lookups.note_held(b"a", &held, at(1_000));
        assert!(is_held(&lookups, b"a", 1_499));
        assert!(!is_held(&lookups, b"a", 1_500) && !is_held(&lookups, b"b", 1_000));
        let lately = |ms| lookups.held_lately(b"a", at(ms)).is_some();
        assert!(lately(1_500) && lately(999 + UNSEEN_MS_MAX) && !lately(1_000 + UNSEEN_MS_MAX));
        lookups.note_held(b"a", &held, at(1_500));
        assert!(is_held(&lookups, b"a", 1_999));
        lookups.note_held(b"a", &other, at(1_600));
        drop(held);
        assert!(is_held(&lookups, b"a", 1_600));
        drop(other);
        assert!(!is_held(&lookups, b"a", 1_600));
        lookups.note_elsewhere(b"a", b"b", at(1_600));
        assert_eq!(elsewhere(&lookups, b"a", 1_600), Some(b"b".to_vec()));
        assert!(!is_held(&lookups, b"a", 1_600) && elsewhere(&lookups, b"a", 2_100).is_none());
        lookups.remove(b"a");
        assert!(elsewhere(&lookups, b"a", 1_600).is_none());
    }

    #[test]
    fn a_bounded_number_of_names_is_remembered_and_no_long_one() {
        let limits = CacheLimits { cached_files_max: 4, ..CacheLimits::default() };
        let lookups = lookups(limits);
        let held = held_for_test(1);
        for number in 0..100_u32 {
            lookups.note_held(&number.to_be_bytes(), &held, at(1_000));
        }
        let kept = (0..100_u32).filter(|number| is_held(&lookups, &number.to_be_bytes(), 1_000)).count();
        assert_eq!(kept, 4 * LOOKUPS_PER_CACHED_FILE);
        for (len, is_kept) in [(LOOKUP_NAME_BYTES_MAX, true), (LOOKUP_NAME_BYTES_MAX + 1, false)] {
            lookups.note_held(&vec![b'x'; len], &held, at(1_000));
            assert_eq!(is_held(&lookups, &vec![b'x'; len], 1_000), is_kept);
        }
        let off = self::lookups(CacheLimits::none());
        off.note_held(b"a", &held, at(1_000));
        assert!(!is_held(&off, b"a", 1_000));
    }
}
