//! What the names that were asked for have come to, remembered for a moment: an index, a page without its extension, a fallback. So
//! what is asked for again and again costs one look here, however many files were tried for it.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use crate::clock_cache::Kept;
use crate::held::Held;
use crate::limits::LOOKUP_NAME_BYTES_MAX;
use crate::now::Now;
use crate::shelf::Shelf;

/// A folder's part of one worker's lookups, by the names of the paths; in all at most `LOOKUPS_PER_CACHED_FILE` for each file that may be kept,
/// of names of at most `LOOKUP_NAME_BYTES_MAX`.
pub(crate) struct Lookups {
    found: Shelf<Lookup>,
}

/// What a name has come to.
pub(crate) struct Lookup {
    place: Place,
    seen_ms: Cell<u64>,
    was_used: Cell<bool>,
}

/// Where the file is.
enum Place {
    /// In memory, unless the cache has let it go.
    Held(Weak<Held>),
    /// Under another name, which is opened when it is asked for.
    Elsewhere(Box<[u8]>),
}

impl Lookups {
    pub(crate) fn new(found: Shelf<Lookup>) -> Self {
        Self { found }
    }

    /// The file in memory that this name came to a moment ago. It is used.
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

    /// The file in memory that this name came to when it was last looked for, a short while ago: for want of a descriptor to look anew.
    pub(crate) fn held_lately(&self, name: &[u8], now: Now) -> Option<Rc<Held>> {
        self.found.get(name, |lookup| match &lookup.place {
            Place::Held(held) if now.is_soon_after(lookup.seen_ms.get()) => held.upgrade(),
            _ => None,
        })
    }

    /// Writes the name of the file that this name came to a moment ago, if that isn't in memory.
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

    /// Notes that a name has come to a file in memory just now.
    pub(crate) fn note_held(&self, name: &[u8], held: &Rc<Held>, now: Now) {
        let is_same =
            |place: &Place| matches!(place, Place::Held(known) if known.as_ptr() == Rc::as_ptr(held));
        self.note(name, now, is_same, || Place::Held(Rc::downgrade(held)));
    }

    /// Notes that a name has come to the file of another name.
    pub(crate) fn note_elsewhere(&self, name: &[u8], file: &[u8], now: Now) {
        let is_same = |place: &Place| matches!(place, Place::Elsewhere(known) if known[..] == *file);
        self.note(name, now, is_same, || Place::Elsewhere(file.into()));
    }

    /// Forgets a name.
    pub(crate) fn remove(&self, name: &[u8]) {
        self.found.remove(name);
    }

    /// Removes all names of the folder.
    pub(crate) fn clear(&self) {
        self.found.clear();
    }

    /// What is looked at again is as it was nearly always: then it is only newer.
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
    /// What it came to, if that was a moment ago.
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
