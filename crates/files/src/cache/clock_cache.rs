//! A worker's cache by folder and name, bounded in entries and bytes, with clock eviction.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

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
    slots: Vec<CacheSlot<V>>,
    hand: usize,
    bytes: u64,
}

struct CacheSlot<V> {
    folder: u32,
    name: Box<[u8]>,
    value: V,
}

/// A folder's part of a cache that all folders of a worker share, with one bound.
pub(crate) struct FolderCache<V> {
    all: Rc<RefCell<ClockCache<V>>>,
    folder: u32,
}

impl<V: Evictable> FolderCache<V> {
    /// Returns the part of the folder with this number.
    pub(crate) fn new(all: &Rc<RefCell<ClockCache<V>>>, folder: u32) -> Self {
        Self { all: Rc::clone(all), folder }
    }

    /// Passes an entry to `look` and marks it as used.
    #[inline]
    pub(crate) fn get<R>(&self, name: &[u8], look: impl FnOnce(&V) -> Option<R>) -> Option<R> {
        let all = self.all.borrow();
        let value = &all.slots[all.slot(self.folder, name)?].value;
        value.was_used().set(true);
        look(value)
    }

    /// Inserts or replaces an entry, unless it exceeds the bound by itself.
    pub(crate) fn insert(&self, name: &[u8], value: V) {
        self.all.borrow_mut().insert(self.folder, name, value);
    }

    /// Removes an entry.
    pub(crate) fn remove(&self, name: &[u8]) {
        let mut all = self.all.borrow_mut();
        if let Some(at) = all.slot(self.folder, name) {
            all.remove_at(at);
        }
    }

    /// Removes all entries of this folder.
    pub(crate) fn clear(&self) {
        let mut all = self.all.borrow_mut();
        // From the end: the entry that moves to a free slot was checked before.
        for at in (0..all.slots.len()).rev() {
            if all.slots[at].folder == self.folder {
                all.remove_at(at);
            }
        }
    }
}

impl<V: Evictable> ClockCache<V> {
    /// Creates a table of at most `entries_max` entries and `bytes_max` bytes.
    pub(crate) fn new(entries_max: usize, bytes_max: u64) -> Rc<RefCell<Self>> {
        let (index, slots) = (Vec::new(), Vec::new());
        Rc::new(RefCell::new(Self { entries_max, bytes_max, index, slots, hand: 0, bytes: 0 }))
    }

    #[inline(never)]
    fn slot(&self, folder: u32, name: &[u8]) -> Option<usize> {
        self.index.get(folder as usize)?.get(name).copied()
    }

    fn insert(&mut self, folder: u32, name: &[u8], value: V) {
        if let Some(at) = self.slot(folder, name) {
            self.remove_at(at);
        }
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
        self.slots.push(CacheSlot { folder, name: name.into(), value });
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

    use super::{ClockCache, Evictable, FolderCache};

    struct TestEntry(u64, Cell<bool>);

    impl Evictable for TestEntry {
        fn bytes(&self) -> u64 {
            self.0
        }

        fn was_used(&self) -> &Cell<bool> {
            &self.1
        }
    }

    /// Returns the parts of three folders.
    fn folders(entries_max: usize, bytes_max: u64) -> [FolderCache<TestEntry>; 3] {
        let all = ClockCache::new(entries_max, bytes_max);
        [0, 1, 2].map(|folder| FolderCache::new(&all, folder))
    }

    fn put(cache: &FolderCache<TestEntry>, name: &str, bytes: u64) {
        cache.insert(name.as_bytes(), TestEntry(bytes, Cell::new(false)));
    }

    /// Returns the bytes of an entry, and marks it as used.
    fn get(cache: &FolderCache<TestEntry>, name: &str) -> Option<u64> {
        cache.get(name.as_bytes(), |piece| Some(piece.0))
    }

    /// Returns the names in the cache, without marking them, after checking the table.
    fn names(cache: &FolderCache<TestEntry>) -> String {
        let clock = cache.all.borrow();
        assert_eq!(clock.index.iter().map(HashMap::len).sum::<usize>(), clock.slots.len());
        assert_eq!(clock.bytes, clock.slots.iter().map(|slot| slot.value.0).sum::<u64>());
        assert!(clock.bytes <= clock.bytes_max && clock.slots.len() <= clock.entries_max);
        for (at, slot) in clock.slots.iter().enumerate() {
            assert_eq!(clock.slot(slot.folder, &slot.name), Some(at));
        }
        let mut names: Vec<_> = clock.slots.iter().map(|slot| String::from_utf8_lossy(&slot.name)).collect();
        names.sort();
        names.concat()
    }

    #[test]
    fn bounds_entries_and_keeps_used_ones() {
        let [cache, ..] = folders(3, 1_000);
        ["a", "b", "c"].iter().for_each(|name| put(&cache, name, 10));
        assert!(get(&cache, "a").is_some());
        put(&cache, "d", 10);
        assert_eq!(names(&cache), "acd");
        put(&cache, "e", 10);
        assert_eq!((names(&cache).len(), get(&cache, "e")), (3, Some(10)));
        let [none, ..] = folders(0, 100);
        put(&none, "a", 0);
        assert_eq!((names(&none), get(&none, "a")), (String::new(), None));
    }

    #[test]
    fn bounds_the_bytes_of_entries() {
        let [cache, ..] = folders(10, 100);
        put(&cache, "a", 60);
        put(&cache, "b", 40);
        assert_eq!(names(&cache), "ab");
        put(&cache, "c", 50);
        assert_eq!(names(&cache).len(), 2);
        put(&cache, "c", 1);
        (0..2).for_each(|_| cache.remove(b"c"));
        put(&cache, "d", 101);
        assert_eq!((get(&cache, "c"), get(&cache, "d"), names(&cache).len()), (None, None, 1));
    }

    #[test]
    fn separates_the_names_of_folders() {
        for cleared in 0..3 {
            let caches = folders(10, 100);
            for name in ["a", "b", "a"] {
                (1..).zip(&caches).for_each(|(bytes, cache)| put(cache, name, bytes));
            }
            caches[1].remove(b"a");
            caches[cleared].clear();
            assert_eq!(names(&caches[0]).len(), if cleared == 1 { 4 } else { 3 });
            for (folder, cache) in caches.iter().enumerate() {
                let kept = |is_there| (is_there && folder != cleared).then_some(folder as u64 + 1);
                assert_eq!([get(cache, "a"), get(cache, "b")], [kept(folder != 1), kept(true)]);
            }
        }
    }

    #[test]
    fn folders_share_one_bound() {
        let [one, other, _] = folders(10, 100);
        put(&one, "a", 60);
        put(&other, "a", 60);
        assert_eq!((get(&one, "a"), get(&other, "a")), (None, Some(60)));
        (0..20).for_each(|number| put(&other, &number.to_string(), 1));
        put(&one, "b", 1);
        let kept = (0..20).filter(|number| get(&other, &number.to_string()).is_some()).count();
        assert!((8..10).contains(&kept), "{kept}");
        assert_eq!(get(&one, "b"), Some(1));
    }
}
