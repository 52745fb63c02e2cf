//! Caches lookups of path names for 500 ms: an index, a page without its extension, a fallback. A repeated request
//! costs one lookup here, however many candidates were tried for it.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use crate::cached_file::CachedFile;
use crate::clock_cache::Evictable;
use crate::folder_cache::FolderCache;
use crate::limits::LOOKUP_NAME_BYTES_MAX;
use crate::now::Now;

/// A folder's lookups by path name: at most `LOOKUPS_PER_CACHED_FILE` for each file in the worker's cache, of names of
/// at most `LOOKUP_NAME_BYTES_MAX` bytes.
pub(crate) struct Lookups {
    found: FolderCache<Lookup>,
}

/// The result of a lookup.
pub(crate) struct Lookup {
    location: Location,
    checked_ms: Cell<u64>,
    was_used: Cell<bool>,
}

/// Location of the file.
enum Location {
    /// In memory, unless it was evicted.
    Cached(Weak<CachedFile>),
    /// Under another name, not in memory.
    OtherName(Box<[u8]>),
}

impl Lookups {
    pub(crate) fn new(found: FolderCache<Lookup>) -> Self {
        Self { found }
    }

    /// Returns the cached file of a fresh lookup and marks it as used.
    pub(crate) fn cached(&self, name: &[u8], now: Now) -> Option<Rc<CachedFile>> {
        self.found.get(name, |lookup| match lookup.location(now)? {
            Location::Cached(cached) => {
                let cached = cached.upgrade()?;
                cached.mark_used();
                Some(cached)
            }
            Location::OtherName(_) => None,
        })
    }

    /// Returns the cached file of a recent lookup, for requests without a free descriptor.
    pub(crate) fn recently_cached(&self, name: &[u8], now: Now) -> Option<Rc<CachedFile>> {
        self.found.get(name, |lookup| match &lookup.location {
            Location::Cached(cached) if now.is_recent(lookup.checked_ms.get()) => cached.upgrade(),
            _ => None,
        })
    }

    /// Writes the file name of a fresh lookup, if the file isn't in memory.
    pub(crate) fn other_name(&self, name: &[u8], now: Now, file: &mut Vec<u8>) -> Option<()> {
        self.found.get(name, |lookup| match lookup.location(now)? {
            Location::Cached(_) => None,
            Location::OtherName(name) => {
                file.clear();
                file.extend_from_slice(name);
                Some(())
            }
        })
    }

    /// Stores a cached file as the result of a lookup.
    pub(crate) fn note_cached(&self, name: &[u8], cached: &Rc<CachedFile>, now: Now) {
        let is_same =
            |old: &Location| matches!(old, Location::Cached(known) if known.as_ptr() == Rc::as_ptr(cached));
        self.note(name, now, is_same, || Location::Cached(Rc::downgrade(cached)));
    }

    /// Stores the name of a file as the result of a lookup.
    pub(crate) fn note_other_name(&self, name: &[u8], file: &[u8], now: Now) {
        let is_same =
            |location: &Location| matches!(location, Location::OtherName(known) if known[..] == *file);
        self.note(name, now, is_same, || Location::OtherName(file.into()));
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
    fn note(
        &self,
        name: &[u8],
        now: Now,
        is_same: impl Fn(&Location) -> bool,
        location: impl Fn() -> Location,
    ) {
        let renewed =
            self.found.get(name, |lookup| is_same(&lookup.location).then(|| lookup.checked_ms.set(now.ms)));
        match renewed {
            Some(()) => {}
            None if name.len() > LOOKUP_NAME_BYTES_MAX => {}
            None => {
                let lookup = Lookup {
                    location: location(),
                    checked_ms: Cell::new(now.ms),
                    was_used: Cell::new(false),
                };
                self.found.insert(name, lookup);
            }
        }
    }
}

impl Lookup {
    /// Returns the location, if it is fresh.
    fn location(&self, now: Now) -> Option<&Location> {
        now.is_fresh(self.checked_ms.get()).then_some(&self.location)
    }
}

impl Evictable for Lookup {
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
    use crate::cached_file::cached_for_test;
    use crate::file_cache::FileCache;
    use crate::limits::{CacheLimits, LOOKUPS_PER_CACHED_FILE, UNCHECKED_MS_MAX};

    fn lookups(limits: CacheLimits) -> Lookups {
        Lookups::new(FileCache::new(limits).next().lookups)
    }

    fn other_name(lookups: &Lookups, name: &[u8], ms: u64) -> Option<Vec<u8>> {
        let mut file = Vec::new();
        lookups.other_name(name, at(ms), &mut file).map(|()| file)
    }

    fn at(ms: u64) -> Now {
        Now { ms, unix_seconds: 0 }
    }

    fn is_cached(lookups: &Lookups, name: &[u8], ms: u64) -> bool {
        lookups.cached(name, at(ms)).is_some()
    }

    #[test]
    fn what_was_found_counts_for_a_moment_and_while_it_is_kept() {
        let lookups = lookups(CacheLimits::default());
        let (cached, other) = (cached_for_test(1), cached_for_test(1));
        lookups.note_cached(b"a", &cached, at(1_000));
        assert!(is_cached(&lookups, b"a", 1_499));
        assert!(!is_cached(&lookups, b"a", 1_500) && !is_cached(&lookups, b"b", 1_000));
        let lately = |ms| lookups.recently_cached(b"a", at(ms)).is_some();
        assert!(lately(1_500) && lately(999 + UNCHECKED_MS_MAX) && !lately(1_000 + UNCHECKED_MS_MAX));
        lookups.note_cached(b"a", &cached, at(1_500));
        assert!(is_cached(&lookups, b"a", 1_999));
        lookups.note_cached(b"a", &other, at(1_600));
        drop(cached);
        assert!(is_cached(&lookups, b"a", 1_600));
        drop(other);
        assert!(!is_cached(&lookups, b"a", 1_600));
        lookups.note_other_name(b"a", b"b", at(1_600));
        assert_eq!(other_name(&lookups, b"a", 1_600), Some(b"b".to_vec()));
        assert!(!is_cached(&lookups, b"a", 1_600) && other_name(&lookups, b"a", 2_100).is_none());
        lookups.remove(b"a");
        assert!(other_name(&lookups, b"a", 1_600).is_none());
    }

    #[test]
    fn a_bounded_number_of_names_is_remembered_and_no_long_one() {
        let limits = CacheLimits { cached_files_max: 4, ..CacheLimits::default() };
        let lookups = lookups(limits);
        let cached = cached_for_test(1);
        for number in 0..100_u32 {
            lookups.note_cached(&number.to_be_bytes(), &cached, at(1_000));
        }
        let kept = (0..100_u32).filter(|number| is_cached(&lookups, &number.to_be_bytes(), 1_000)).count();
        assert_eq!(kept, 4 * LOOKUPS_PER_CACHED_FILE);
        for (len, is_kept) in [(LOOKUP_NAME_BYTES_MAX, true), (LOOKUP_NAME_BYTES_MAX + 1, false)] {
            lookups.note_cached(&vec![b'x'; len], &cached, at(1_000));
            assert_eq!(is_cached(&lookups, &vec![b'x'; len], 1_000), is_kept);
        }
        let off = self::lookups(CacheLimits::none());
        off.note_cached(b"a", &cached, at(1_000));
        assert!(!is_cached(&off, b"a", 1_000));
    }
}
