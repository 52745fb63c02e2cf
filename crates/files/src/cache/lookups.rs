//! Caches lookups of path names for 500 ms, whose files aren't those that are tried first: a page without its extension,
//! a fallback, another index. A repeated request costs one lookup here, however many candidates were tried for it.

use std::cell::Cell;
use std::rc::Rc;

use crate::cache::entry::{CacheEntry, FileTable, NameKind};
use crate::cache::table::Section;
use crate::limits::LOOKUP_NAME_BYTES_MAX;
use crate::now::Now;

/// A folder's lookups by path name, of at most `LOOKUP_NAME_BYTES_MAX` bytes.
pub(crate) struct Lookups(Section<CacheEntry>);

/// The result of a lookup.
pub(crate) struct Lookup {
    /// Name of the file.
    pub(super) file: Box<[u8]>,
    checked_ms: Cell<u64>,
}

impl Lookups {
    pub(crate) fn new(table: &FileTable, folder: u32) -> Self {
        Self(NameKind::Lookup.section(table, folder))
    }

    /// Writes the file's name of a fresh lookup to `file`. Returns false if there is none.
    #[inline]
    pub(crate) fn fresh(&self, name: &[u8], now: Now, file: &mut Vec<u8>) -> bool {
        self.known(name, |checked_ms| now.is_fresh(checked_ms), file)
    }

    /// Writes the file's name of a recent lookup to `file`, for requests without a free descriptor. Returns false if there
    /// is none.
    pub(crate) fn recent(&self, name: &[u8], now: Now, file: &mut Vec<u8>) -> bool {
        self.known(name, |checked_ms| now.is_recent(checked_ms), file)
    }

    #[inline]
    fn known(&self, name: &[u8], is_valid: impl FnOnce(u64) -> bool, file: &mut Vec<u8>) -> bool {
        let known = self.0.get(name, |entry| match entry {
            CacheEntry::Lookup(lookup) if is_valid(lookup.checked_ms.get()) => {
                lookup.file.as_ref().clone_into(file);
                Some(())
            }
            _ => None,
        });
        known.is_some()
    }

    /// Stores the name of the file that was found for a name.
    pub(crate) fn note(&self, name: &[u8], file: &[u8], now: Now) {
        // The file is nearly always the same, and then only its time is updated.
        let renewed = self.0.get(name, |entry| match entry {
            CacheEntry::Lookup(lookup) if *lookup.file == *file => {
                lookup.checked_ms.set(now.ms);
                Some(())
            }
            _ => None,
        });
        if renewed.is_none() && name.len() <= LOOKUP_NAME_BYTES_MAX {
            let lookup = Lookup { file: file.into(), checked_ms: Cell::new(now.ms) };
            self.0.insert(name, CacheEntry::Lookup(Rc::new(lookup)));
        }
    }

    /// Removes a lookup.
    pub(crate) fn remove(&self, name: &[u8]) {
        self.0.remove(name);
    }

    /// Removes all lookups of the folder.
    pub(crate) fn clear(&self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOKUP_NAME_BYTES_MAX, Lookups, Now};
    use crate::cache::table::EvictingTable;
    use crate::limits::RECENT_MS_MAX;

    fn lookups(entries_max: usize) -> Lookups {
        Lookups::new(&EvictingTable::new(entries_max, u64::MAX), 0)
    }

    fn at(ms: u64) -> Now {
        Now { ms, unix_seconds: 0 }
    }

    /// Returns the file of a fresh lookup.
    fn fresh(lookups: &Lookups, name: &[u8], ms: u64) -> Option<String> {
        let mut file = Vec::new();
        lookups.fresh(name, at(ms), &mut file).then(|| String::from_utf8(file).expect("a name"))
    }

    #[test]
    fn lookups_expire_after_half_a_second() {
        let lookups = lookups(10);
        let is_fresh = |ms| fresh(&lookups, b"a", ms).as_deref() == Some("f");
        lookups.note(b"a", b"f", at(1_000));
        assert!(is_fresh(1_499) && !is_fresh(1_500) && fresh(&lookups, b"b", 1_000).is_none());
        let is_recent = |ms| lookups.recent(b"a", at(ms), &mut Vec::new());
        assert!(is_recent(1_500) && is_recent(999 + RECENT_MS_MAX) && !is_recent(1_000 + RECENT_MS_MAX));
        lookups.note(b"a", b"f", at(1_500));
        assert!(is_fresh(1_999));
        lookups.note(b"a", b"b", at(1_600));
        assert_eq!(fresh(&lookups, b"a", 2_099), Some("b".to_owned()));
        assert_eq!(fresh(&lookups, b"a", 2_100), None);
        lookups.remove(b"a");
        assert_eq!(fresh(&lookups, b"a", 1_600), None);
    }

    #[test]
    fn bounds_the_number_and_length_of_looked_up_names() {
        let (few, off) = (lookups(8), lookups(0));
        for number in 0..100_u32 {
            few.note(&number.to_be_bytes(), b"f", at(1_000));
        }
        let is_kept = |name: &[u8]| fresh(&few, name, 1_000).is_some();
        assert_eq!((0..100_u32).filter(|number| is_kept(&number.to_be_bytes())).count(), 8);
        for (len, is_short) in [(LOOKUP_NAME_BYTES_MAX, true), (LOOKUP_NAME_BYTES_MAX + 1, false)] {
            few.note(&vec![b'x'; len], b"f", at(1_000));
            assert_eq!(is_kept(&vec![b'x'; len]), is_short);
        }
        off.note(b"a", b"f", at(1_000));
        assert_eq!(fresh(&off, b"a", 1_000), None);
    }
}
