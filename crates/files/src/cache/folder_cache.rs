//! A worker's cache by folder and name, bounded in entries and bytes, with S3-FIFO eviction.
//!
//! Most names of a long tail are requested once. So new entries pass through a probation queue of a tenth of the bounds,
//! and only those that are requested again there, or soon after they left it, enter the main queue. A scan of any length
//! evicts nothing from the main queue (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::cache::fifo::{Fifo, Links};
use crate::cache::recently_evicted::RecentlyEvicted;
use crate::cache::statistics::CacheCounters;
use crate::limits::{EVICTION_STEPS_MAX, PROBATION_SHARE, USES_MAX};

/// An entry with a size and a count of its uses.
pub(crate) trait Evictable {
    /// Bytes that count towards the bound. Never changes.
    fn bytes(&self) -> u64;
    fn uses(&self) -> &Uses;
}

/// Number of uses of an entry that eviction hasn't taken into account yet, at most `USES_MAX`.
#[derive(Default)]
pub(crate) struct Uses(Cell<u8>);

impl Uses {
    pub(crate) fn add(&self) {
        self.0.set((self.0.get() + 1).min(USES_MAX));
    }

    /// Takes one use away. Returns false if there is none.
    fn take(&self) -> bool {
        let left = self.0.get().checked_sub(1);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// A bounded table with S3-FIFO eviction.
pub(crate) struct EvictingTable<V> {
    entries_max: usize,
    bytes_max: u64,
    /// Slots by name, one map for each folder: no name leads to a slot of another folder.
    index: Vec<HashMap<Rc<[u8]>, usize, RandomState>>,
    slots: Vec<Option<CacheSlot<V>>>,
    free: Vec<usize>,
    links: Links,
    probation: Fifo,
    main: Fifo,
    evicted: RecentlyEvicted,
    counters: Arc<CacheCounters>,
}

struct CacheSlot<V> {
    folder: u32,
    name: Rc<[u8]>,
    value: V,
    is_on_probation: bool,
}

/// A folder's part of a cache that all folders of a worker share, with one bound.
pub(crate) struct FolderCache<V> {
    all: Rc<RefCell<EvictingTable<V>>>,
    folder: u32,
}

impl<V: Evictable> FolderCache<V> {
    /// Returns the part of the folder with this number.
    pub(crate) fn new(all: &Rc<RefCell<EvictingTable<V>>>, folder: u32) -> Self {
        Self { all: Rc::clone(all), folder }
    }

    /// Returns the counters of the whole cache.
    pub(crate) fn counters(&self) -> Arc<CacheCounters> {
        Arc::clone(&self.all.borrow().counters)
    }

    /// Passes an entry to `look` and counts a use.
    #[inline]
    pub(crate) fn get<R>(&self, name: &[u8], look: impl FnOnce(&V) -> Option<R>) -> Option<R> {
        let all = self.all.borrow();
        let value = &all.slots[all.slot(self.folder, name)?].as_ref()?.value;
        value.uses().add();
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
        let Some(of_folder) = all.index.get_mut(self.folder as usize).map(std::mem::take) else { return };
        for at in of_folder.into_values() {
            all.remove_at(at);
        }
    }
}

impl<V: Evictable> EvictingTable<V> {
    /// Creates a table of at most `entries_max` entries and `bytes_max` bytes.
    pub(crate) fn new(entries_max: usize, bytes_max: u64) -> Rc<RefCell<Self>> {
        Self::counted(entries_max, bytes_max, Arc::default())
    }

    pub(crate) fn counted(
        entries_max: usize,
        bytes_max: u64,
        counters: Arc<CacheCounters>,
    ) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            entries_max,
            bytes_max,
            index: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            links: Links::default(),
            probation: Fifo::default(),
            main: Fifo::default(),
            evicted: RecentlyEvicted::default(),
            counters,
        }))
    }

    /// Returns the number of entries.
    pub(crate) const fn entries(&self) -> usize {
        self.probation.entries + self.main.entries
    }

    #[inline(never)]
    fn slot(&self, folder: u32, name: &[u8]) -> Option<usize> {
        self.index.get(folder as usize)?.get(name).copied()
    }

    fn insert(&mut self, folder: u32, name: &[u8], value: V) {
        // A new version takes the place of the old one.
        let replaced = self.slot(folder, name).and_then(|at| self.remove_at(at));
        let bytes = value.bytes();
        if self.entries_max == 0 || bytes > self.bytes_max {
            return;
        }
        let was_evicted = self.evicted.take(folder, name);
        while self.entries() >= self.entries_max
            || self.probation.bytes + self.main.bytes + bytes > self.bytes_max
        {
            self.evict();
        }
        let is_on_probation = replaced.map_or(!was_evicted, |slot| slot.is_on_probation);
        let name: Rc<[u8]> = name.into();
        let at = self.free.pop().unwrap_or(self.slots.len());
        if at == self.slots.len() {
            self.slots.push(None);
        }
        let folders = self.index.len().max(folder as usize + 1);
        self.index.resize_with(folders, HashMap::default);
        self.index[folder as usize].insert(Rc::clone(&name), at);
        self.slots[at] = Some(CacheSlot { folder, name, value, is_on_probation });
        let fifo = if is_on_probation { &mut self.probation } else { &mut self.main };
        fifo.push(&mut self.links, at, bytes);
        self.count();
    }

    fn count(&self) {
        self.counters.set_size(self.entries(), self.probation.bytes + self.main.bytes);
    }

    /// Evicts an entry: the oldest on probation while these exceed their share, else the oldest of the main queue.
    /// A used one is kept: it enters the main queue, or begins there again with one use less.
    ///
    /// Each step is constant work. After `EVICTION_STEPS_MAX` of them the next entry is evicted even if it was used.
    fn evict(&mut self) {
        for step in 0.. {
            let is_on_probation = self.evicts_probation();
            let fifo = if is_on_probation { &mut self.probation } else { &mut self.main };
            let Some(at) = fifo.oldest() else { return };
            let Some(slot) = &mut self.slots[at] else { return };
            if step == EVICTION_STEPS_MAX || !slot.value.uses().take() {
                if let Some(slot) = self.remove_at(at).filter(|_| is_on_probation) {
                    self.evicted.add(slot.folder, &slot.name, self.entries());
                }
                return;
            }
            slot.is_on_probation = false;
            let bytes = slot.value.bytes();
            fifo.unlink(&mut self.links, at, bytes);
            self.main.push(&mut self.links, at, bytes);
        }
    }

    /// Returns whether the next entry to evict is one on probation.
    fn evicts_probation(&self) -> bool {
        let is_beyond_share = self.probation.bytes > self.bytes_max / PROBATION_SHARE
            || self.probation.entries as u64 > self.entries_max as u64 / PROBATION_SHARE;
        self.main.entries == 0 || is_beyond_share
    }

    fn remove_at(&mut self, at: usize) -> Option<CacheSlot<V>> {
        let slot = self.slots[at].take()?;
        let fifo = if slot.is_on_probation { &mut self.probation } else { &mut self.main };
        fifo.unlink(&mut self.links, at, slot.value.bytes());
        self.index[slot.folder as usize].remove(&slot.name);
        self.free.push(at);
        self.count();
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{EVICTION_STEPS_MAX, Evictable, EvictingTable, FolderCache, PROBATION_SHARE, USES_MAX, Uses};

    struct TestEntry(u64, Uses);

    impl Evictable for TestEntry {
        fn bytes(&self) -> u64 {
            self.0
        }

        fn uses(&self) -> &Uses {
            &self.1
        }
    }

    /// Returns the parts of three folders.
    fn folders(entries_max: usize, bytes_max: u64) -> [FolderCache<TestEntry>; 3] {
        let all = EvictingTable::new(entries_max, bytes_max);
        [0, 1, 2].map(|folder| FolderCache::new(&all, folder))
    }

    fn put(cache: &FolderCache<TestEntry>, name: &str, bytes: u64) {
        cache.insert(name.as_bytes(), TestEntry(bytes, Uses::default()));
    }

    /// Returns the bytes of an entry, and counts a use.
    fn get(cache: &FolderCache<TestEntry>, name: &str) -> Option<u64> {
        cache.get(name.as_bytes(), |entry| Some(entry.0))
    }

    /// Returns the names in the cache, without counting uses, after checking the table.
    fn names(cache: &FolderCache<TestEntry>) -> String {
        let table = cache.all.borrow();
        let slots: Vec<_> =
            (0..).zip(&table.slots).filter_map(|(at, slot)| Some((at, slot.as_ref()?))).collect();
        assert_eq!(table.index.iter().map(HashMap::len).sum::<usize>(), slots.len());
        assert_eq!(table.slots.len(), slots.len() + table.free.len());
        for (fifo, is_on_probation) in [(&table.probation, true), (&table.main, false)] {
            let of_fifo = slots.iter().filter(|(_, slot)| slot.is_on_probation == is_on_probation);
            assert_eq!(fifo.entries, of_fifo.clone().count());
            assert_eq!(fifo.bytes, of_fifo.map(|(_, slot)| slot.value.0).sum::<u64>());
        }
        assert!(table.probation.bytes + table.main.bytes <= table.bytes_max);
        assert!(slots.len() <= table.entries_max);
        assert!(table.evicted.len() <= 2 * table.entries_max);
        for (at, slot) in &slots {
            assert_eq!(table.slot(slot.folder, &slot.name), Some(*at));
        }
        let mut names: Vec<_> = slots.iter().map(|(_, slot)| String::from_utf8_lossy(&slot.name)).collect();
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

    #[test]
    fn a_scan_evicts_no_files_in_use() {
        let [cache, ..] = folders(1_000, 1_000_000);
        let hot: Vec<_> = (0..800).map(|number| format!("hot {number}")).collect();
        // A cache with room keeps everything; the second use shows once something must be evicted.
        hot.iter().for_each(|name| put(&cache, name, 100));
        hot.iter().for_each(|name| assert!(get(&cache, name).is_some()));
        (0..100_000).for_each(|number| put(&cache, &format!("scanned {number}"), 100));
        let kept = hot.iter().filter(|name| get(&cache, name).is_some()).count();
        // One of each `EVICTION_STEPS_MAX` while they leave probation, none of them later.
        assert!(kept >= hot.len() - hot.len() / EVICTION_STEPS_MAX - 1, "{kept} of {}", hot.len());
        (0..100_000).for_each(|number| put(&cache, &format!("scanned again {number}"), 100));
        assert_eq!(hot.iter().filter(|name| get(&cache, name).is_some()).count(), kept);
        assert!(names(&cache).len() > 800);
    }

    #[test]
    fn a_name_that_returns_soon_enters_the_main_queue() {
        let share = usize::try_from(PROBATION_SHARE).expect("a small number");
        let [cache, ..] = folders(10 * share, 1_000_000);
        (0..10 * share).for_each(|number| put(&cache, &format!("hot {number}"), 1));
        (0..10 * share).for_each(|number| assert!(get(&cache, &format!("hot {number}")).is_some()));
        let is_on_probation = |name: &str| {
            let table = cache.all.borrow();
            table.slots[table.slot(0, name.as_bytes())?].as_ref().map(|slot| slot.is_on_probation)
        };
        put(&cache, "new", 1);
        assert_eq!(is_on_probation("new"), Some(true));
        let evicting = (0..).map(|number| format!("scanned {number}"));
        let mut evicting = evicting.inspect(|name| put(&cache, name, 1));
        assert!(evicting.by_ref().take(100 * share).any(|_| is_on_probation("new").is_none()));
        put(&cache, "new", 1);
        assert_eq!(is_on_probation("new"), Some(false));
        put(&cache, "new", 2);
        assert_eq!(is_on_probation("new"), Some(false), "a new version stays in the queue of the old one");
    }

    #[test]
    fn eviction_takes_a_bounded_number_of_steps() {
        let [cache, ..] = folders(10 * EVICTION_STEPS_MAX, 1_000_000);
        let names: Vec<_> = (0..10 * EVICTION_STEPS_MAX).map(|number| number.to_string()).collect();
        names.iter().for_each(|name| put(&cache, name, 1));
        let uses = |name: &String| {
            let table = cache.all.borrow();
            table
                .slot(0, name.as_bytes())
                .map(|at| table.slots[at].as_ref().map(|slot| slot.value.uses().0.get()))
        };
        for name in &names {
            (0..2 * USES_MAX).for_each(|_| assert!(get(&cache, name).is_some()));
            assert_eq!(uses(name), Some(Some(USES_MAX)));
        }
        put(&cache, "one more", 1);
        let taken = names.iter().filter(|name| uses(name) == Some(Some(USES_MAX - 1))).count();
        let evicted = names.iter().filter(|name| uses(name).is_none()).count();
        assert_eq!((taken, evicted), (EVICTION_STEPS_MAX, 1));
    }

    /// The same cache in the simplest way: a list for each queue, oldest first. Without the memory of evicted names.
    struct Model {
        queues: [Vec<(String, u64, u8)>; 2],
        bounds: (usize, u64),
    }

    impl Model {
        fn find(&mut self, name: &str) -> Option<(usize, usize)> {
            let at = |queue: &Vec<(String, u64, u8)>| queue.iter().position(|entry| entry.0 == name);
            (0..2).find_map(|queue| Some((queue, at(&self.queues[queue])?)))
        }

        fn get(&mut self, name: &str) -> Option<u64> {
            let (queue, at) = self.find(name)?;
            let entry = &mut self.queues[queue][at];
            entry.2 = (entry.2 + 1).min(USES_MAX);
            Some(entry.1)
        }

        fn totals(&self) -> (usize, u64) {
            (self.queues.iter().map(Vec::len).sum(), self.queues.iter().flatten().map(|entry| entry.1).sum())
        }

        /// Inserts an entry into the queue of its old version, or the given one.
        fn insert(&mut self, name: &str, bytes: u64, queue: usize) {
            let replaced = self.find(name).map(|(queue, at)| (queue, self.queues[queue].remove(at)).0);
            let (entries_max, bytes_max) = self.bounds;
            if bytes > bytes_max {
                return;
            }
            while self.totals().0 >= entries_max || self.totals().1 + bytes > bytes_max {
                self.evict();
            }
            self.queues[replaced.unwrap_or(queue)].push((name.to_owned(), bytes, 0));
        }

        fn evict(&mut self) {
            loop {
                let (entries_max, bytes_max) = self.bounds;
                let probation_bytes: u64 = self.queues[0].iter().map(|entry| entry.1).sum();
                let is_beyond = probation_bytes > bytes_max / PROBATION_SHARE
                    || self.queues[0].len() as u64 > entries_max as u64 / PROBATION_SHARE;
                let queue = usize::from(!(self.queues[1].is_empty() || is_beyond));
                let (name, bytes, uses) = self.queues[queue].remove(0);
                if uses == 0 {
                    return;
                }
                self.queues[1].push((name, bytes, uses - 1));
            }
        }
    }

    #[test]
    fn evicts_as_a_simple_model_does() {
        let mut random = testkit::random::Rng::with_seed(7);
        for (entries_max, bytes_max) in [(1, 50), (2, 1_000), (10, 100), (25, 300), (1_000, 200)] {
            let [cache, ..] = folders(entries_max, bytes_max);
            let mut model = Model { queues: [Vec::new(), Vec::new()], bounds: (entries_max, bytes_max) };
            for _ in 0..5_000 {
                // Low names are requested more often.
                let names_max = random.u32(1..60);
                let name = random.u32(0..names_max).to_string();
                match random.u32(0..20) {
                    0 => {
                        cache.remove(name.as_bytes());
                        model.find(&name).map(|(queue, at)| model.queues[queue].remove(at));
                    }
                    1..8 => {
                        let bytes = random.u64(1..60);
                        let was_evicted = {
                            let mut table = cache.all.borrow_mut();
                            let was_evicted = table.evicted.take(0, name.as_bytes());
                            if was_evicted {
                                let entries = table.entries();
                                table.evicted.add(0, name.as_bytes(), entries);
                            }
                            was_evicted
                        };
                        put(&cache, &name, bytes);
                        model.insert(&name, bytes, usize::from(was_evicted));
                    }
                    _ => assert_eq!(get(&cache, &name), model.get(&name), "{name}"),
                }
                let mut expected: Vec<_> =
                    model.queues.iter().flatten().map(|entry| entry.0.clone()).collect();
                expected.sort();
                assert_eq!(names(&cache), expected.concat(), "seed 7, bounds {entries_max} and {bytes_max}");
            }
        }
    }
}
