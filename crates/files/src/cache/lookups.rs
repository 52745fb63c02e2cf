//! Caches lookups of path names for 500 ms, whose files aren't those that are tried first: a page without its extension,
//! a fallback, another index. A repeated request costs one lookup here, however many candidates were tried for it.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use crate::cache::cached_file::CachedFile;
use crate::cache::folder_cache::{Evictable, FolderCache, Uses};
use crate::limits::{LOOKUP_NAME_BYTES_MAX, LOOKUP_OVERHEAD_BYTES};
use crate::now::Now;

/// A folder's lookups by path name, of at most `LOOKUP_NAME_BYTES_MAX` bytes; all lookups of a worker have a share of its
/// cache.
pub(crate) type Lookups = FolderCache<Lookup>;

/// The result of a lookup.
pub(crate) struct Lookup {
    location: Location,
    checked_ms: Cell<u64>,
    bytes: u64,
    uses: Uses,
}

/// Location of the file.
enum Location {
    /// In memory, unless it was evicted.
    Cached(Weak<CachedFile>),
    /// Under another name, not in memory.
    OtherName(Box<[u8]>),
}

/// The file of a fresh lookup.
pub(crate) enum Known {
    /// In memory.
    Cached(Rc<CachedFile>),
    /// Not in memory; its name is in the buffer.
    OtherName,
}

impl Lookups {
    /// Returns the file of a fresh lookup. Marks a cached one as used, or writes the name of another to `file`.
    #[inline]
    pub(crate) fn known(&self, name: &[u8], now: Now, file: &mut Vec<u8>) -> Option<Known> {
        self.get(name, |lookup| match &lookup.location {
            _ if !now.is_fresh(lookup.checked_ms.get()) => None,
            Location::Cached(cached) => {
                let cached = cached.upgrade()?;
                cached.uses.add();
                Some(Known::Cached(cached))
            }
            Location::OtherName(name) => {
                name.as_ref().clone_into(file);
                Some(Known::OtherName)
            }
        })
    }

    /// Returns the cached file of a recent lookup, for requests without a free descriptor.
    pub(crate) fn recently_cached(&self, name: &[u8], now: Now) -> Option<Rc<CachedFile>> {
        self.get(name, |lookup| match &lookup.location {
            Location::Cached(cached) if now.is_recent(lookup.checked_ms.get()) => cached.upgrade(),
            _ => None,
        })
    }

    /// Stores the name of the file that was found for a name, and the file if it is in memory.
    pub(crate) fn note(&self, name: &[u8], file: &[u8], cached: Option<&Rc<CachedFile>>, now: Now) {
        if cached.is_none() && name == file {
            // A file of the same name is found as fast without an entry.
            return self.remove(name);
        }
        // The location is nearly always unchanged, and then only its time is updated.
        let renewed = self.get(name, |lookup| {
            let is_same = match (&lookup.location, cached) {
                (Location::Cached(known), Some(cached)) => known.as_ptr() == Rc::as_ptr(cached),
                (Location::OtherName(known), None) => **known == *file,
                _ => false,
            };
            is_same.then(|| lookup.checked_ms.set(now.ms))
        });
        if renewed.is_none() && name.len() <= LOOKUP_NAME_BYTES_MAX {
            let location = match cached {
                Some(cached) => Location::Cached(Rc::downgrade(cached)),
                None => Location::OtherName(file.into()),
            };
            let bytes = LOOKUP_OVERHEAD_BYTES + name.len() as u64 + file.len() as u64;
            let (checked_ms, uses) = (Cell::new(now.ms), Uses::default());
            self.insert(name, Lookup { location, checked_ms, bytes, uses });
        }
    }
}

impl Evictable for Lookup {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn uses(&self) -> &Uses {
        &self.uses
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, LOOKUP_NAME_BYTES_MAX, Lookups, Now};
    use crate::cache::cached_file::cached_for_test;
    use crate::cache::folder_cache::{EvictingTable, FolderCache};
    use crate::limits::UNCHECKED_MS_MAX;

    fn lookups(entries_max: usize) -> Lookups {
        FolderCache::new(&EvictingTable::new(entries_max, u64::MAX), 0)
    }

    fn at(ms: u64) -> Now {
        Now { ms, unix_seconds: 0 }
    }

    /// Returns `cached` or the other name of a lookup.
    fn known(lookups: &Lookups, name: &[u8], ms: u64) -> Option<String> {
        let mut file = Vec::new();
        match lookups.known(name, at(ms), &mut file)? {
            Known::Cached(_) => Some("cached".to_owned()),
            Known::OtherName => String::from_utf8(file).ok(),
        }
    }

    #[test]
    fn lookups_expire_after_half_a_second_or_with_their_file() {
        let lookups = lookups(10);
        let (cached, other) = (cached_for_test(1), cached_for_test(1));
        let is_cached = |ms| known(&lookups, b"a", ms).as_deref() == Some("cached");
        lookups.note(b"a", b"a", Some(&cached), at(1_000));
        assert!(is_cached(1_499) && !is_cached(1_500) && known(&lookups, b"b", 1_000).is_none());
        let lately = |ms| lookups.recently_cached(b"a", at(ms)).is_some();
        assert!(lately(1_500) && lately(999 + UNCHECKED_MS_MAX) && !lately(1_000 + UNCHECKED_MS_MAX));
        lookups.note(b"a", b"a", Some(&cached), at(1_500));
        assert!(is_cached(1_999));
        lookups.note(b"a", b"a", Some(&other), at(1_600));
        drop(cached);
        assert!(is_cached(1_600));
        drop(other);
        assert_eq!(known(&lookups, b"a", 1_600), None);
        lookups.note(b"a", b"b", None, at(1_600));
        assert_eq!(known(&lookups, b"a", 1_600), Some("b".to_owned()));
        assert_eq!(known(&lookups, b"a", 2_100), None);
        lookups.note(b"a", b"a", None, at(1_600));
        assert_eq!(known(&lookups, b"a", 1_600), None);
    }

    #[test]
    fn bounds_the_number_and_length_of_looked_up_names() {
        let (few, off) = (lookups(8), lookups(0));
        let cached = cached_for_test(1);
        for number in 0..100_u32 {
            few.note(&number.to_be_bytes(), b"f", Some(&cached), at(1_000));
        }
        let is_kept = |name: &[u8]| known(&few, name, 1_000).is_some();
        assert_eq!((0..100_u32).filter(|number| is_kept(&number.to_be_bytes())).count(), 8);
        for (len, is_short) in [(LOOKUP_NAME_BYTES_MAX, true), (LOOKUP_NAME_BYTES_MAX + 1, false)] {
            few.note(&vec![b'x'; len], b"f", Some(&cached), at(1_000));
            assert_eq!(is_kept(&vec![b'x'; len]), is_short);
        }
        off.note(b"a", b"f", Some(&cached), at(1_000));
        assert_eq!(known(&off, b"a", 1_000), None);
    }
}
