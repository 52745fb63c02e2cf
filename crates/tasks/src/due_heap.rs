//! A heap of deadlines whose entries know their index, so that any can be removed or changed.
//!
//! A heap instead of a tree: in the steady state it allocates nothing.

use std::task::Waker;

/// Key of an entry. Keys of removed entries never match later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    entry: usize,
    /// Insertion order, for entries due at the same time.
    order: u64,
}

struct Entry {
    due_ms: u64,
    order: u64,
    /// Its index in the heap.
    index: usize,
    /// `None` if the entry is free.
    waker: Option<Waker>,
}

/// Wakers by due time.
#[derive(Default)]
pub(crate) struct DueHeap {
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// A binary heap of entries: each is due no later than its two children.
    heap: Vec<usize>,
    inserted: u64,
}

impl DueHeap {
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns the earliest due time.
    pub(crate) fn first_due_ms(&self) -> Option<u64> {
        self.heap.first().map(|entry| self.entries[*entry].due_ms)
    }

    pub(crate) fn insert(&mut self, due_ms: u64, waker: Waker) -> Key {
        let order = self.inserted;
        self.inserted += 1;
        let index = self.heap.len();
        let new = Entry { due_ms, order, index, waker: Some(waker) };
        let entry = match self.free.pop() {
            Some(entry) => {
                self.entries[entry] = new;
                entry
            }
            None => {
                self.entries.push(new);
                self.entries.len() - 1
            }
        };
        self.heap.push(entry);
        self.rise(index);
        Key { entry, order }
    }

    /// Removes the first entry if it is due by `now_ms`.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<Waker> {
        let first = *self.heap.first()?;
        if self.entries[first].due_ms > now_ms {
            return None;
        }
        self.remove_at(0)
    }

    /// Removes an entry; returns `None` if it was removed before.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Waker> {
        let index = self.entry(key)?.index;
        self.remove_at(index)
    }

    /// Returns an entry's waker; `None` if it was removed.
    pub(crate) fn waker_mut(&mut self, key: Key) -> Option<&mut Waker> {
        self.entry(key)?.waker.as_mut()
    }

    fn entry(&mut self, key: Key) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(key.entry)?;
        (entry.order == key.order && entry.waker.is_some()).then_some(entry)
    }

    fn remove_at(&mut self, index: usize) -> Option<Waker> {
        let entry = self.heap.swap_remove(index);
        if index < self.heap.len() {
            self.entries[self.heap[index]].index = index;
            self.rise(index);
            self.sink(index);
        }
        self.free.push(entry);
        self.entries[entry].waker.take()
    }

    /// Moves an entry up until its parent is due no later.
    fn rise(&mut self, mut index: usize) {
        while index > 0 && self.before(index, (index - 1) / 2) {
            self.exchange(index, (index - 1) / 2);
            index = (index - 1) / 2;
        }
    }

    /// Moves an entry down until its children are due no earlier.
    fn sink(&mut self, mut index: usize) {
        loop {
            let (left, right) = (2 * index + 1, 2 * index + 2);
            let mut first = index;
            for below in [left, right] {
                if below < self.heap.len() && self.before(below, first) {
                    first = below;
                }
            }
            if first == index {
                return;
            }
            self.exchange(index, first);
            index = first;
        }
    }

    /// Returns whether the first entry is due before the other.
    fn before(&self, one: usize, other: usize) -> bool {
        let time = |index: usize| {
            let entry = &self.entries[self.heap[index]];
            (entry.due_ms, entry.order)
        };
        time(one) < time(other)
    }

    fn exchange(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.entries[self.heap[one]].index = one;
        self.entries[self.heap[other]].index = other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pseudo-random sequence of numbers, always the same.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    #[test]
    fn agrees_with_a_sorted_list_over_many_steps() {
        let mut numbers = Numbers(7);
        let mut heap = DueHeap::default();
        let mut list: Vec<(u64, u64, Key)> = Vec::new();
        let mut now_ms = 0;
        for _ in 0..if cfg!(miri) { 400 } else { 20_000 } {
            match numbers.below(4) {
                0 | 1 => {
                    let due_ms = now_ms + numbers.below(50);
                    let key = heap.insert(due_ms, Waker::noop().clone());
                    list.push((due_ms, key.order, key));
                }
                2 if !list.is_empty() => {
                    let at = numbers.below(list.len() as u64);
                    let (_, _, key) = list.remove(at as usize);
                    assert!(heap.waker_mut(key).is_some() && heap.remove(key).is_some());
                    assert!(heap.waker_mut(key).is_none() && heap.remove(key).is_none(), "it was removed");
                }
                _ => {
                    now_ms += numbers.below(20);
                    let due = std::iter::from_fn(|| heap.take_due(now_ms)).count();
                    list.retain(|(due_ms, ..)| *due_ms > now_ms);
                    assert_eq!(heap.len(), list.len(), "{due} were due");
                }
            }
            list.sort_by_key(|(due_ms, order, _)| (*due_ms, *order));
            assert_eq!(heap.len(), list.len());
            assert_eq!(heap.first_due_ms(), list.first().map(|(due_ms, ..)| *due_ms));
        }
    }

    #[test]
    fn those_due_at_the_same_time_come_in_the_order_in_which_they_were_put() {
        let mut heap = DueHeap::default();
        let keys: Vec<Key> = (0..20).map(|_| heap.insert(5, Waker::noop().clone())).collect();
        for (number, key) in keys.iter().enumerate() {
            assert!(heap.waker_mut(*key).is_some() && heap.take_due(5).is_some());
            assert!(heap.waker_mut(*key).is_none(), "{number} was not the first");
        }
        assert_eq!(heap.len(), 0);
    }
}
