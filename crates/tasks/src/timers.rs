//! A worker's timers, on a clock that the worker drives: sleeps in a heap whose entries know their index, so that
//! any can be removed or changed. (A heap instead of a tree: in the steady state it allocates nothing.)

use std::cell::{Cell, RefCell};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::limits::TIMERS_MAX;

/// A worker's timers. They have no clock: the worker sets the time ([`set_now_ms`](Self::set_now_ms)) and
/// wakes those due ([`expire`](Self::expire)).
pub struct Timers {
    now_ms: Cell<u64>,
    /// Not borrowed while a waker is called, which may call back.
    heap: RefCell<DueHeap>,
    timers_max: usize,
}

impl Timers {
    /// Creates timers at time 0, for [`TIMERS_MAX`] sleeps.
    #[must_use]
    pub fn new() -> Rc<Self> {
        Self::with_max(TIMERS_MAX)
    }

    /// Creates timers at time 0, for `timers_max` concurrent sleeps. Further ones are polled in every turn
    /// until they are due.
    #[must_use]
    pub fn with_max(timers_max: usize) -> Rc<Self> {
        Rc::new(Self { now_ms: Cell::new(0), heap: RefCell::default(), timers_max })
    }

    /// Sets the time, in milliseconds of any monotonic clock.
    pub fn set_now_ms(&self, now_ms: u64) {
        self.now_ms.set(now_ms);
    }

    /// Returns the time set last.
    pub fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// Returns the end of the first sleep, if any.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.heap.borrow().first_due_ms()
    }

    /// Wakes tasks whose sleep has ended, in order of due time.
    pub fn expire(&self) {
        while let Some(waker) = self.take_due() {
            waker.wake();
        }
    }

    /// Sleeps from now on. Ends when the clock is set to its end or later; fractions of a millisecond are
    /// rounded up, and durations too long for the clock never end.
    pub fn sleep(self: &Rc<Self>, duration: Duration) -> Sleep {
        let whole_ms = duration.as_nanos().div_ceil(1_000_000);
        let due_ms = self.now_ms().saturating_add(u64::try_from(whole_ms).unwrap_or(u64::MAX));
        Sleep { timers: Rc::clone(self), due_ms, key: None }
    }

    /// Returns the number of sleeps.
    pub fn len(&self) -> usize {
        self.heap.borrow().len()
    }

    /// Returns whether there are no sleeps.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take_due(&self) -> Option<Waker> {
        self.heap.borrow_mut().take_due(self.now_ms())
    }

    /// Adds a waker for a time; returns `None` if there are too many.
    fn put(&self, due_ms: u64, waker: &Waker) -> Option<TimerKey> {
        if self.len() >= self.timers_max {
            return None;
        }
        let waker = waker.clone();
        Some(self.heap.borrow_mut().insert(due_ms, waker))
    }

    /// Replaces an entry's waker; returns whether the entry was present.
    fn replace(&self, key: TimerKey, waker: &Waker) -> bool {
        let waker = waker.clone();
        let before = self.heap.borrow_mut().waker_mut(key).map(|there| std::mem::replace(there, waker));
        before.is_some()
    }

    fn take(&self, key: TimerKey) {
        let waker = self.heap.borrow_mut().remove(key);
        drop(waker); // not while the heap is borrowed
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("now_ms", &self.now_ms())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// A future that ends at its time: [`Timers::sleep`]. Dropping it cancels it.
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct Sleep {
    timers: Rc<Timers>,
    due_ms: u64,
    /// Set while it is among the timers.
    key: Option<TimerKey>,
}

impl Sleep {
    /// Returns its end on the timers' clock.
    #[must_use]
    pub fn due_ms(&self) -> u64 {
        self.due_ms
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.timers.now_ms() >= self.due_ms && self.due_ms != u64::MAX {
            if let Some(key) = self.key.take() {
                self.timers.take(key);
            }
            return Poll::Ready(());
        }
        let waker = context.waker();
        if !self.key.is_some_and(|key| self.timers.replace(key, waker)) {
            self.key = self.timers.put(self.due_ms, waker);
        }
        if self.key.is_none() {
            waker.wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.timers.take(key);
        }
    }
}

/// Key of an entry. Keys of removed entries never match later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimerKey {
    entry: usize,
    /// Insertion order, for entries due at the same time.
    order: u64,
}

struct TimerEntry {
    due_ms: u64,
    order: u64,
    /// Its index in the heap.
    index: usize,
    /// `None` if the entry is free.
    waker: Option<Waker>,
}

/// Wakers by due time.
#[derive(Default)]
struct DueHeap {
    entries: Vec<TimerEntry>,
    free: Vec<usize>,
    /// A binary heap of entries: each is due no later than its two children.
    heap: Vec<usize>,
    inserted: u64,
}

impl DueHeap {
    fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns the earliest due time.
    fn first_due_ms(&self) -> Option<u64> {
        self.heap.first().map(|entry| self.entries[*entry].due_ms)
    }

    fn insert(&mut self, due_ms: u64, waker: Waker) -> TimerKey {
        let order = self.inserted;
        self.inserted += 1;
        let index = self.heap.len();
        let new = TimerEntry { due_ms, order, index, waker: Some(waker) };
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
        TimerKey { entry, order }
    }

    /// Removes the first entry if it is due by `now_ms`.
    fn take_due(&mut self, now_ms: u64) -> Option<Waker> {
        let first = *self.heap.first()?;
        if self.entries[first].due_ms > now_ms {
            return None;
        }
        self.remove_at(0)
    }

    /// Removes an entry; returns `None` if it was removed before.
    fn remove(&mut self, key: TimerKey) -> Option<Waker> {
        let index = self.entry(key)?.index;
        self.remove_at(index)
    }

    /// Returns an entry's waker; `None` if it was removed.
    fn waker_mut(&mut self, key: TimerKey) -> Option<&mut Waker> {
        self.entry(key)?.waker.as_mut()
    }

    fn entry(&mut self, key: TimerKey) -> Option<&mut TimerEntry> {
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
    use testkit::random::Rng;

    use super::*;

    #[test]
    fn agrees_with_a_sorted_list_over_many_steps() {
        let mut random = Rng::with_seed(7);
        let mut heap = DueHeap::default();
        let mut list: Vec<(u64, u64, TimerKey)> = Vec::new();
        let mut now_ms = 0;
        for _ in 0..if cfg!(miri) { 400 } else { 20_000 } {
            match random.u64(..4) {
                0 | 1 => {
                    let due_ms = now_ms + random.u64(..50);
                    let key = heap.insert(due_ms, Waker::noop().clone());
                    list.push((due_ms, key.order, key));
                }
                2 if !list.is_empty() => {
                    let at = random.usize(..list.len());
                    let (_, _, key) = list.remove(at);
                    assert!(heap.waker_mut(key).is_some() && heap.remove(key).is_some());
                    assert!(heap.waker_mut(key).is_none() && heap.remove(key).is_none(), "it was removed");
                }
                _ => {
                    now_ms += random.u64(..20);
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
}
