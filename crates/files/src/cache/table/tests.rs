//! Bounds, probation and eviction, also against a simple model.

use std::collections::HashMap;

use super::{EVICTION_STEPS_MAX, Evictable, EvictingTable, PROBATION_SHARE, Section, USES_MAX};

/// A value of so many bytes.
impl Evictable for u64 {
    fn bytes(&self, _: &[u8]) -> u64 {
        *self
    }

    fn stays_on_probation(&self) -> bool {
        *self == INVENTED
    }
}

/// A value for names that clients invent.
const INVENTED: u64 = 61;

/// Returns three sections.
fn sections(entries_max: usize, bytes_max: u64) -> [Section<u64>; 3] {
    let all = EvictingTable::new(entries_max, bytes_max);
    [0, 1, 2].map(|number| Section::new(&all, number))
}

fn put(cache: &Section<u64>, name: &str, bytes: u64) {
    cache.insert(name.as_bytes(), bytes);
}

/// Returns the bytes of an entry, and counts a use.
fn get(cache: &Section<u64>, name: &str) -> Option<u64> {
    cache.get(name.as_bytes(), |bytes| Some(*bytes))
}

/// Returns the names in the cache, without counting uses, after checking the table.
fn names(cache: &Section<u64>) -> String {
    let table = cache.all.borrow();
    let slots: Vec<_> = (0..).zip(&table.slots).filter_map(|(at, slot)| Some((at, slot.as_ref()?))).collect();
    assert_eq!(table.index.iter().map(HashMap::len).sum::<usize>(), slots.len());
    assert_eq!(table.slots.len(), slots.len() + table.free.len());
    for (fifo, is_on_probation) in [(&table.probation, true), (&table.main, false)] {
        let of_fifo = slots.iter().filter(|(_, slot)| slot.is_on_probation == is_on_probation);
        assert_eq!(fifo.entries, of_fifo.clone().count());
        assert_eq!(fifo.bytes, of_fifo.map(|(_, slot)| slot.value).sum::<u64>());
    }
    assert!(table.probation.bytes + table.main.bytes <= table.bytes_max);
    assert!(slots.len() <= table.entries_max);
    assert!(table.evicted.len() <= 2 * table.entries_max);
    for (at, slot) in &slots {
        assert_eq!(table.slot(slot.section, &slot.name), Some(*at));
    }
    let mut names: Vec<_> = slots.iter().map(|(_, slot)| String::from_utf8_lossy(&slot.name)).collect();
    names.sort();
    names.concat()
}

#[test]
fn bounds_entries_and_keeps_used_ones() {
    let [cache, ..] = sections(3, 1_000);
    ["a", "b", "c"].iter().for_each(|name| put(&cache, name, 10));
    assert!(get(&cache, "a").is_some());
    put(&cache, "d", 10);
    assert_eq!(names(&cache), "acd");
    put(&cache, "e", 10);
    assert_eq!((names(&cache).len(), get(&cache, "e")), (3, Some(10)));
    let [none, ..] = sections(0, 100);
    put(&none, "a", 0);
    assert_eq!((names(&none), get(&none, "a")), (String::new(), None));
}

#[test]
fn bounds_the_bytes_of_entries() {
    let [cache, ..] = sections(10, 100);
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
fn separates_the_names_of_sections() {
    for cleared in 0..3 {
        let caches = sections(10, 100);
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
fn sections_share_one_bound() {
    let [one, other, _] = sections(10, 100);
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
    let [cache, ..] = sections(1_000, 1_000_000);
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
fn invented_names_evict_no_files_in_use() {
    let [cache, ..] = sections(1_000, 1_000_000);
    let hot: Vec<_> = (0..800).map(|number| format!("hot {number}")).collect();
    hot.iter().for_each(|name| put(&cache, name, 100));
    hot.iter().for_each(|name| assert!(get(&cache, name).is_some()));
    (0..5_000).for_each(|number| put(&cache, &format!("scanned {number}"), 100));
    let count = || hot.iter().filter(|name| cache.all.borrow().slot(0, name.as_bytes()).is_some()).count();
    let kept = count();
    for number in 0..20_000 {
        let name = format!("invented {number}");
        put(&cache, &name, INVENTED);
        // However often they are requested.
        (0..USES_MAX).for_each(|_| assert!(get(&cache, &name).is_some()));
    }
    assert!(kept > 790 && count() == kept, "{} of {kept}", count());
}

#[test]
fn a_name_that_returns_soon_enters_the_main_queue() {
    let share = usize::try_from(PROBATION_SHARE).expect("a small number");
    let [cache, ..] = sections(10 * share, 1_000_000);
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
    let [cache, ..] = sections(10 * EVICTION_STEPS_MAX, 1_000_000);
    let names: Vec<_> = (0..10 * EVICTION_STEPS_MAX).map(|number| number.to_string()).collect();
    names.iter().for_each(|name| put(&cache, name, 1));
    let uses = |name: &String| {
        let table = cache.all.borrow();
        table.slot(0, name.as_bytes()).map(|at| table.slots[at].as_ref().map(|slot| slot.uses.get()))
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
        let [cache, ..] = sections(entries_max, bytes_max);
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
            let mut expected: Vec<_> = model.queues.iter().flatten().map(|entry| entry.0.clone()).collect();
            expected.sort();
            assert_eq!(names(&cache), expected.concat(), "seed 7, bounds {entries_max} and {bytes_max}");
        }
    }
}
