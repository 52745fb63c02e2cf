//! The small files that a worker keeps in memory, by name: bounded in number and bytes, the unused going first.

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::RandomState;

use crate::held::Held;
use crate::limits::CacheLimits;

/// One worker's cache. What goes when there is no room is found by a hand that goes round and spares once what was used since
/// it came by last (the clock algorithm).
pub(crate) struct Cache {
    limits: CacheLimits,
    index: HashMap<Box<[u8]>, usize, RandomState>,
    slots: Vec<Slot>,
    hand: usize,
    bytes: u64,
}

struct Slot {
    name: Box<[u8]>,
    held: Rc<Held>,
    was_used: bool,
}

impl Cache {
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self { limits, index: HashMap::default(), slots: Vec::new(), hand: 0, bytes: 0 }
    }

    /// Whether a file of this size may be kept.
    pub(crate) fn takes(&self, len: u64) -> bool {
        let limits = self.limits;
        limits.cached_files_max > 0 && len <= limits.cached_file_bytes_max && len <= limits.cached_bytes_max
    }

    /// The file of this name, whatever its age.
    pub(crate) fn get(&mut self, name: &[u8]) -> Option<Rc<Held>> {
        let slot = &mut self.slots[*self.index.get(name)?];
        slot.was_used = true;
        Some(Rc::clone(&slot.held))
    }

    /// Keeps a file that [`takes`](Self::takes) lets in, in the place of what had its name.
    pub(crate) fn insert(&mut self, name: &[u8], held: Rc<Held>) {
        self.remove(name);
        while self.slots.len() >= self.limits.cached_files_max
            || self.bytes + held.len() > self.limits.cached_bytes_max
        {
            self.evict();
        }
        self.bytes += held.len();
        self.index.insert(name.into(), self.slots.len());
        self.slots.push(Slot { name: name.into(), held, was_used: false });
    }

    /// Forgets a name.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        if let Some(&at) = self.index.get(name) {
            self.remove_at(at);
        }
    }

    /// Lets go of the first that was not used since the hand came by. It ends: each is spared once at most.
    fn evict(&mut self) {
        loop {
            self.hand %= self.slots.len();
            let slot = &mut self.slots[self.hand];
            if !std::mem::take(&mut slot.was_used) {
                return self.remove_at(self.hand);
            }
            self.hand += 1;
        }
    }

    fn remove_at(&mut self, at: usize) {
        let slot = self.slots.swap_remove(at);
        self.bytes -= slot.held.len();
        self.index.remove(&slot.name);
        if let Some(moved) = self.slots.get(at) {
            self.index.insert(moved.name.clone(), at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;
    use crate::held::held_for_test as held;
    use crate::limits::CacheLimits;

    fn names(cache: &mut Cache) -> String {
        "abcdefgh".chars().filter(|name| cache.index.contains_key(name.to_string().as_bytes())).collect()
    }

    fn assert_sound(cache: &Cache) {
        assert_eq!(cache.index.len(), cache.slots.len());
        assert_eq!(cache.bytes, cache.slots.iter().map(|slot| slot.held.len()).sum::<u64>());
        for (at, slot) in cache.slots.iter().enumerate() {
            assert_eq!(cache.index.get(&slot.name), Some(&at));
        }
    }

    #[test]
    fn the_number_of_files_is_bounded_and_what_is_used_stays() {
        let mut cache = Cache::new(CacheLimits { cached_files_max: 3, ..CacheLimits::default() });
        for name in ["a", "b", "c"] {
            cache.insert(name.as_bytes(), held(10));
        }
        assert!(cache.get(b"a").is_some());
        cache.insert(b"d", held(10));
        assert_eq!(names(&mut cache), "acd");
        cache.insert(b"e", held(10));
        assert_sound(&cache);
        assert_eq!(cache.slots.len(), 3);
        assert!(cache.get(b"e").is_some());
    }

    #[test]
    fn the_bytes_of_files_are_bounded() {
        let limits =
            CacheLimits { cached_bytes_max: 100, cached_file_bytes_max: 60, ..CacheLimits::default() };
        let mut cache = Cache::new(limits);
        assert!(cache.takes(60) && !cache.takes(61));
        cache.insert(b"a", held(60));
        cache.insert(b"b", held(40));
        assert_eq!(names(&mut cache), "ab");
        cache.insert(b"c", held(50));
        assert_sound(&cache);
        assert!(cache.bytes <= 100);
        cache.insert(b"c", held(1));
        cache.remove(b"c");
        cache.remove(b"c");
        assert_sound(&cache);
        assert!(cache.get(b"c").is_none());
        assert!(!Cache::new(CacheLimits::none()).takes(0));
    }
}
