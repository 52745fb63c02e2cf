//! A worker's table by section and name, bounded in entries and bytes, with S3-FIFO eviction.
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

/// A value of a table.
pub(crate) trait Evictable {
    /// Returns the bytes that count towards the bound, for an entry of this name.
    fn bytes(&self, name: &[u8]) -> u64;

    /// Returns whether it counts as a file in the statistics.
    fn is_file(&self) -> bool {
        false
    }

    /// Returns whether it stays on probation however often it is used: clients can invent names for it, and must not
    /// evict what is in the main queue by them.
    fn stays_on_probation(&self) -> bool {
        false
    }
}

/// A bounded table with S3-FIFO eviction.
pub(crate) struct EvictingTable<V> {
    entries_max: usize,
    bytes_max: u64,
    /// Slots by name, one map for each section: no name leads to a slot of another section.
    index: Vec<HashMap<Rc<[u8]>, usize, RandomState>>,
    slots: Vec<Option<TableSlot<V>>>,
    free: Vec<usize>,
    links: Links,
    probation: Fifo,
    main: Fifo,
    evicted: RecentlyEvicted,
    files: usize,
    counters: Arc<CacheCounters>,
}

struct TableSlot<V> {
    section: u32,
    is_on_probation: bool,
    /// Uses that eviction hasn't taken into account yet, at most `USES_MAX`.
    uses: Cell<u8>,
    name: Rc<[u8]>,
    bytes: u64,
    value: V,
}

/// A section of a table: names of its own, and the bounds of the whole table.
pub(crate) struct Section<V> {
    all: Rc<RefCell<EvictingTable<V>>>,
    number: u32,
}

impl<V: Evictable> Section<V> {
    /// Returns the section with this number.
    pub(crate) fn new(all: &Rc<RefCell<EvictingTable<V>>>, number: u32) -> Self {
        Self { all: Rc::clone(all), number }
    }

    /// Returns the counters of the whole table.
    pub(crate) fn counters(&self) -> Arc<CacheCounters> {
        Arc::clone(&self.all.borrow().counters)
    }

    /// Passes an entry to `look` and counts a use.
    #[inline]
    pub(crate) fn get<R>(&self, name: &[u8], look: impl FnOnce(&V) -> Option<R>) -> Option<R> {
        let all = self.all.borrow();
        let slot = all.slots[all.slot(self.number, name)?].as_ref()?;
        slot.uses.set((slot.uses.get() + 1).min(USES_MAX));
        look(&slot.value)
    }

    /// Inserts or replaces an entry, unless it exceeds the bound by itself.
    pub(crate) fn insert(&self, name: &[u8], value: V) {
        self.all.borrow_mut().insert(self.number, name, value);
    }

    /// Removes an entry.
    pub(crate) fn remove(&self, name: &[u8]) {
        let mut all = self.all.borrow_mut();
        if let Some(at) = all.slot(self.number, name) {
            all.remove_at(at);
        }
    }

    /// Removes all entries of this section.
    pub(crate) fn clear(&self) {
        let mut all = self.all.borrow_mut();
        let Some(names) = all.index.get_mut(self.number as usize).map(std::mem::take) else { return };
        for at in names.into_values() {
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
            files: 0,
            counters,
        }))
    }

    /// Returns the number of entries.
    pub(crate) const fn entries(&self) -> usize {
        self.probation.entries + self.main.entries
    }

    #[inline(never)]
    fn slot(&self, section: u32, name: &[u8]) -> Option<usize> {
        self.index.get(section as usize)?.get(name).copied()
    }

    fn insert(&mut self, section: u32, name: &[u8], value: V) {
        // A new version takes the place of the old one.
        let replaced = self.slot(section, name).and_then(|at| self.remove_at(at));
        let bytes = value.bytes(name);
        if self.entries_max == 0 || bytes > self.bytes_max {
            return;
        }
        let was_evicted = self.evicted.take(section, name);
        while self.entries() >= self.entries_max
            || self.probation.bytes + self.main.bytes + bytes > self.bytes_max
        {
            self.evict();
        }
        let is_on_probation =
            value.stays_on_probation() || replaced.map_or(!was_evicted, |slot| slot.is_on_probation);
        let name: Rc<[u8]> = name.into();
        let at = self.free.pop().unwrap_or(self.slots.len());
        if at == self.slots.len() {
            self.slots.push(None);
        }
        let sections = self.index.len().max(section as usize + 1);
        self.index.resize_with(sections, HashMap::default);
        self.index[section as usize].insert(Rc::clone(&name), at);
        self.files += usize::from(value.is_file());
        let uses = Cell::default();
        self.slots[at] = Some(TableSlot { section, is_on_probation, uses, name, bytes, value });
        let fifo = if is_on_probation { &mut self.probation } else { &mut self.main };
        fifo.push(&mut self.links, at, bytes);
        self.count();
    }

    fn count(&self) {
        self.counters.set_size(self.files, self.probation.bytes + self.main.bytes);
    }

    /// Evicts an entry: the oldest on probation while these exceed their share, else the oldest of the main queue.
    /// A used one is kept: it enters the main queue, or begins anew with one use less.
    ///
    /// Each step is constant work. After `EVICTION_STEPS_MAX` of them the next entry is evicted even if it was used.
    fn evict(&mut self) {
        for step in 0.. {
            let is_on_probation = self.evicts_probation();
            let fifo = if is_on_probation { &mut self.probation } else { &mut self.main };
            let Some(at) = fifo.oldest() else { return };
            let Some(slot) = &mut self.slots[at] else { return };
            let uses_left = slot.uses.get().checked_sub(1);
            slot.uses.set(uses_left.unwrap_or(0));
            if step == EVICTION_STEPS_MAX || uses_left.is_none() {
                if let Some(slot) = self.remove_at(at).filter(|_| is_on_probation) {
                    self.evicted.add(slot.section, &slot.name, self.entries());
                }
                return;
            }
            fifo.unlink(&mut self.links, at, slot.bytes);
            slot.is_on_probation = slot.value.stays_on_probation();
            let next = if slot.is_on_probation { &mut self.probation } else { &mut self.main };
            next.push(&mut self.links, at, slot.bytes);
        }
    }

    /// Returns whether the next entry to evict is one on probation.
    fn evicts_probation(&self) -> bool {
        let is_beyond_share = self.probation.bytes > self.bytes_max / PROBATION_SHARE
            || self.probation.entries as u64 > self.entries_max as u64 / PROBATION_SHARE;
        self.main.entries == 0 || is_beyond_share
    }

    fn remove_at(&mut self, at: usize) -> Option<TableSlot<V>> {
        let slot = self.slots[at].take()?;
        let fifo = if slot.is_on_probation { &mut self.probation } else { &mut self.main };
        fifo.unlink(&mut self.links, at, slot.bytes);
        self.index[slot.section as usize].remove(&slot.name);
        self.free.push(at);
        self.files -= usize::from(slot.value.is_file());
        self.count();
        Some(slot)
    }
}

#[cfg(test)]
mod tests;
