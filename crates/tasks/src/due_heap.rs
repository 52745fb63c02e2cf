//! Who is due when: a heap whose entries know their place in it, so that each can be taken out or changed at any time.
//!
//! A heap and not a tree: in the steady state it allocates nothing.

use std::task::Waker;

/// An entry of a heap. A key that was taken out is never mistaken for a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    entry: usize,
    /// Those that became due at the same time come in the order in which they were put in.
    order: u64,
}

struct Entry {
    due_ms: u64,
    order: u64,
    /// Where in the heap it stands.
    place: usize,
    /// None: the entry is free.
    waker: Option<Waker>,
}

/// Wakers by the time at which they are due.
#[derive(Default)]
pub(crate) struct DueHeap {
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// Entries, each due no later than the two at twice its place and one or two more.
    heap: Vec<usize>,
    put: u64,
}

impl DueHeap {
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// When the first one is due.
    pub(crate) fn first_due_ms(&self) -> Option<u64> {
        self.heap.first().map(|entry| self.entries[*entry].due_ms)
    }

    pub(crate) fn put(&mut self, due_ms: u64, waker: Waker) -> Key {
        let order = self.put;
        self.put += 1;
        let place = self.heap.len();
        let new = Entry { due_ms, order, place, waker: Some(waker) };
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
        self.rise(place);
        Key { entry, order }
    }

    /// Takes the first one out if it is due by then.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<Waker> {
        let first = *self.heap.first()?;
        if self.entries[first].due_ms > now_ms {
            return None;
        }
        self.take_at(0)
    }

    /// Takes an entry out; none where it is out already.
    pub(crate) fn take(&mut self, key: Key) -> Option<Waker> {
        let place = self.entry(key)?.place;
        self.take_at(place)
    }

    /// The waker of an entry; none where it is out.
    pub(crate) fn waker_mut(&mut self, key: Key) -> Option<&mut Waker> {
        self.entry(key)?.waker.as_mut()
    }

    fn entry(&mut self, key: Key) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(key.entry)?;
        (entry.order == key.order && entry.waker.is_some()).then_some(entry)
    }

    fn take_at(&mut self, place: usize) -> Option<Waker> {
        let entry = self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.entries[self.heap[place]].place = place;
            self.rise(place);
            self.sink(place);
        }
        self.free.push(entry);
        self.entries[entry].waker.take()
    }

    /// Moves the entry at a place up until who stands above it is due no later.
    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.before(place, (place - 1) / 2) {
            self.exchange(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// Moves the entry at a place down until both below it are due no earlier.
    fn sink(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let mut first = place;
            for below in [left, right] {
                if below < self.heap.len() && self.before(below, first) {
                    first = below;
                }
            }
            if first == place {
                return;
            }
            self.exchange(place, first);
            place = first;
        }
    }

    /// Whether the entry at one place is due before that at the other.
    fn before(&self, one: usize, other: usize) -> bool {
        let time = |place: usize| {
            let entry = &self.entries[self.heap[place]];
            (entry.due_ms, entry.order)
        };
        time(one) < time(other)
    }

    fn exchange(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.entries[self.heap[one]].place = one;
        self.entries[self.heap[other]].place = other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence of numbers that looks random and is the same each time.
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
                    let key = heap.put(due_ms, Waker::noop().clone());
                    list.push((due_ms, key.order, key));
                }
                2 if !list.is_empty() => {
                    let at = numbers.below(list.len() as u64);
                    let (_, _, key) = list.remove(at as usize);
                    assert!(heap.waker_mut(key).is_some() && heap.take(key).is_some());
                    assert!(heap.waker_mut(key).is_none() && heap.take(key).is_none(), "it is out");
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
        let keys: Vec<Key> = (0..20).map(|_| heap.put(5, Waker::noop().clone())).collect();
        for (number, key) in keys.iter().enumerate() {
            assert!(heap.waker_mut(*key).is_some() && heap.take_due(5).is_some());
            assert!(heap.waker_mut(*key).is_none(), "{number} was not the first");
        }
        assert_eq!(heap.len(), 0);
    }
}
