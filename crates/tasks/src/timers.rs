//! A worker's timers, on a clock that the worker drives.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::due_heap::{DueHeap, Key};
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
    fn put(&self, due_ms: u64, waker: &Waker) -> Option<Key> {
        if self.len() >= self.timers_max {
            return None;
        }
        let waker = waker.clone();
        Some(self.heap.borrow_mut().insert(due_ms, waker))
    }

    /// Replaces an entry's waker; returns whether the entry was present.
    fn replace(&self, key: Key, waker: &Waker) -> bool {
        let waker = waker.clone();
        let before = self.heap.borrow_mut().waker_mut(key).map(|there| std::mem::replace(there, waker));
        before.is_some()
    }

    fn take(&self, key: Key) {
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
    key: Option<Key>,
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
