//! Names that left a cache's probation queue lately: they enter the main queue when they return.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// Names as fingerprints, in a direct-mapped table.
///
/// It grows with its cache, to less than two fingerprints for each entry, and discards its names then. A collision only
/// admits an entry to the main queue that should have been on probation.
#[derive(Default)]
pub(crate) struct RecentlyEvicted {
    fingerprints: Vec<u32>,
    hasher: RandomState,
}

impl RecentlyEvicted {
    /// Returns a name's place and its fingerprint, which isn't 0.
    fn fingerprint(&self, folder: u32, name: &[u8]) -> (usize, u32) {
        let hash = self.hasher.hash_one((folder, name));
        (hash as usize % self.fingerprints.len().max(1), (hash >> 32) as u32 | 1)
    }

    /// Adds a name. `entries` is the present number of the cache's entries.
    pub(crate) fn add(&mut self, folder: u32, name: &[u8], entries: usize) {
        if self.fingerprints.len() < entries.max(1) {
            self.fingerprints = vec![0; entries.max(1).next_power_of_two()];
        }
        let (at, fingerprint) = self.fingerprint(folder, name);
        self.fingerprints[at] = fingerprint;
    }

    /// Removes a name. Returns whether it was there.
    pub(crate) fn take(&mut self, folder: u32, name: &[u8]) -> bool {
        let (at, fingerprint) = self.fingerprint(folder, name);
        let found = self.fingerprints.get_mut(at).filter(|found| **found == fingerprint);
        found.map(|found| *found = 0).is_some()
    }
}

#[cfg(test)]
impl RecentlyEvicted {
    /// Returns the number of fingerprints that there is room for.
    pub(crate) fn len(&self) -> usize {
        self.fingerprints.len()
    }
}

#[cfg(test)]
mod tests {
    use super::RecentlyEvicted;

    #[test]
    fn remembers_about_as_many_names_as_the_cache_has_entries() {
        let mut evicted = RecentlyEvicted::default();
        assert!(!evicted.take(0, b"a"));
        for number in 0..100_000_u32 {
            evicted.add(7, &number.to_be_bytes(), 1_000);
        }
        assert_eq!(evicted.len(), 1_024);
        assert!(evicted.take(7, &99_999_u32.to_be_bytes()), "the last one");
        assert!(!evicted.take(7, &99_999_u32.to_be_bytes()), "once");
        assert!(!evicted.take(8, &99_998_u32.to_be_bytes()), "of another folder");
        let remembered = (0..100_000_u32).filter(|number| evicted.take(7, &number.to_be_bytes())).count();
        assert!((500..1_024).contains(&remembered), "{remembered}");
    }
}
