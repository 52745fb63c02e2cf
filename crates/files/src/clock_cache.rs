//! A cache by folder and name, bounded in entries and bytes, with clock eviction.

use std::cell::Cell;
use std::collections::HashMap;

use foldhash::fast::RandomState;

/// An entry with a size and a usage mark.
pub(crate) trait Evictable {
    /// Bytes that count towards the bound.
    fn bytes(&self) -> u64;
    /// Set by use, cleared by the clock's hand.
    fn was_used(&self) -> &Cell<bool>;
}

/// A bounded table with clock eviction: a circulating hand evicts the first entry that wasn't used since its last
/// visit.
pub(crate) struct ClockCache<V> {
    entries_max: usize,
    bytes_max: u64,
    /// Slots by name, one map for each folder: no name leads to a slot of another folder.
    index: Vec<HashMap<Box<[u8]>, usize, RandomState>>,
    slots: Vec<Slot<V>>,
    hand: usize,
    bytes: u64,
}

struct Slot<V> {
    folder: u32,
    name: Box<[u8]>,
    value: V,
}

impl<V: Evictable> ClockCache<V> {
    /// Creates a table of at most `entries_max` entries and `bytes_max` bytes.
    pub(crate) fn new(entries_max: usize, bytes_max: u64) -> Self {
        Self { entries_max, bytes_max, index: Vec::new(), slots: Vec::new(), hand: 0, bytes: 0 }
    }

    /// Returns an entry and marks it as used.
    pub(crate) fn get(&self, folder: u32, name: &[u8]) -> Option<&V> {
        let value = &self.slots[self.slot(folder, name)?].value;
        value.was_used().set(true);
        Some(value)
    }

    /// Inserts or replaces an entry, unless it exceeds the bound by itself.
    pub(crate) fn insert(&mut self, folder: u32, name: &[u8], value: V) {
        self.remove(folder, name);
        if self.entries_max == 0 || value.bytes() > self.bytes_max {
            return;
        }
        while self.slots.len() >= self.entries_max || self.bytes + value.bytes() > self.bytes_max {
            self.evict();
        }
        self.bytes += value.bytes();
        let folders = self.index.len().max(folder as usize + 1);
        self.index.resize_with(folders, HashMap::default);
        self.index[folder as usize].insert(name.into(), self.slots.len());
        self.slots.push(Slot { folder, name: name.into(), value });
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, folder: u32, name: &[u8]) {
        if let Some(at) = self.slot(folder, name) {
            self.remove_at(at);
        }
    }

    fn slot(&self, folder: u32, name: &[u8]) -> Option<usize> {
        self.index.get(folder as usize)?.get(name).copied()
    }

    /// Removes all entries of a folder.
    pub(crate) fn remove_folder(&mut self, folder: u32) {
        // From the end: the entry that moves to a free slot was checked before.
        for at in (0..self.slots.len()).rev() {
            if self.slots[at].folder == folder {
                self.remove_at(at);
            }
        }
    }

    /// Evicts the first entry that wasn't used since the hand's last visit. Terminates, since it clears the marks.
    fn evict(&mut self) {
        loop {
            self.hand %= self.slots.len();
            if !self.slots[self.hand].value.was_used().take() {
                return self.remove_at(self.hand);
            }
            self.hand += 1;
        }
    }

    fn remove_at(&mut self, at: usize) {
        let slot = self.slots.swap_remove(at);
        self.bytes -= slot.value.bytes();
        self.index[slot.folder as usize].remove(&slot.name);
        if let Some(moved) = self.slots.get(at) {
            self.index[moved.folder as usize].insert(moved.name.clone(), at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashMap;

    use super::{ClockCache, Evictable};

    struct Piece(u64, Cell<bool>);

    impl Evictable for Piece {
        fn bytes(&self) -> u64 {
            self.0
        }

        fn was_used(&self) -> &Cell<bool> {
            &self.1
        }
    }

    fn piece(bytes: u64) -> Piece {
        Piece(bytes, Cell::new(false))
    }

    fn names(clock: &ClockCache<Piece>) -> String {
        let has =
            |name: &char| (0..3).any(|folder| clock.slot(folder, name.to_string().as_bytes()).is_some());
        "abcdefgh".chars().filter(has).collect()
    }

    fn assert_sound(clock: &ClockCache<Piece>) {
        assert_eq!(clock.index.iter().map(HashMap::len).sum::<usize>(), clock.slots.len());
        assert_eq!(clock.bytes, clock.slots.iter().map(|slot| slot.value.0).sum::<u64>());
        for (at, slot) in clock.slots.iter().enumerate() {
            assert_eq!(clock.slot(slot.folder, &slot.name), Some(at));
        }
    }

    #[test]
    fn the_number_of_entries_is_bounded_and_what_is_used_stays() {
        let mut clock = ClockCache::new(3, 1_000);
        for name in ["a", "b", "c"] {
            clock.insert(0, name.as_bytes(), piece(10));
        }
        assert!(clock.get(0, b"a").is_some());
        clock.insert(0, b"d", piece(10));
        assert_eq!(names(&clock), "acd");
        clock.insert(0, b"e", piece(10));
        assert_sound(&clock);
        assert_eq!(clock.slots.len(), 3);
        assert!(clock.get(0, b"e").is_some());
    }

    #[test]
    fn their_bytes_are_bounded() {
        let mut clock = ClockCache::new(10, 100);
        clock.insert(0, b"a", piece(60));
        clock.insert(0, b"b", piece(40));
        assert_eq!(names(&clock), "ab");
        clock.insert(0, b"c", piece(50));
        assert_sound(&clock);
        assert!(clock.bytes <= 100);
        clock.insert(0, b"c", piece(1));
        clock.remove(0, b"c");
        clock.remove(0, b"c");
        assert_sound(&clock);
        assert!(clock.get(0, b"c").is_none());
        clock.insert(0, b"d", piece(101));
        assert!(clock.get(0, b"d").is_none());
        assert_sound(&clock);
    }

    #[test]
    fn what_is_of_a_folder_can_be_forgotten() {
        let mut clock = ClockCache::new(10, 100);
        for (name, folder) in [("a", 1), ("b", 0), ("c", 1), ("d", 1), ("e", 2), ("f", 1)] {
            clock.insert(folder, name.as_bytes(), piece(10));
        }
        clock.remove_folder(1);
        assert_sound(&clock);
        assert_eq!((names(&clock), clock.bytes), ("be".to_owned(), 20));
    }

    #[test]
    fn a_table_of_nothing_keeps_nothing() {
        let mut clock = ClockCache::new(0, 100);
        clock.insert(0, b"a", piece(0));
        assert!(clock.get(0, b"a").is_none());
    }
}
