//! Tasks woken by any thread since the worker's last check.

#![expect(unsafe_code, reason = "the worker's thread has a queue of its own, without a lock")]

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// State shared by wakers and their worker.
pub(crate) struct Wakes {
    own: OwnQueue,
    queue: Mutex<WakeQueue>,
    /// True if the locked queue may have entries: checked before the lock is taken.
    any: AtomicBool,
    /// The worker's thread, by [`this_thread`].
    worker: usize,
    /// Makes the worker's wait return.
    signal: Box<dyn Fn() + Send + Sync>,
}

/// Wakes by other threads.
struct WakeQueue {
    /// Woken slots. Each is in it once, unless its task was polled and woken again meanwhile.
    woken: Vec<u32>,
    /// True if the worker was signalled since its last check.
    signalled: bool,
    /// Takes the signal's place, once the worker has [slept](Wakes::sleep).
    sleeper: Option<Waker>,
    /// True once the worker is gone.
    closed: bool,
}

/// Wakes by the worker's own thread, which alone uses this.
struct OwnQueue(RefCell<OwnWakes>);

// SAFETY: `Wakes::with_own`, the only use, checks the thread: only one living thread has the number of the worker's, and a
// later one of the same number begins after its end. What it holds may be dropped on any thread.
unsafe impl Sync for OwnQueue {}

#[derive(Default)]
struct OwnWakes {
    /// As in [`WakeQueue`].
    woken: Vec<u32>,
    sleeper: Option<Waker>,
    /// True if the next wake is to wake `sleeper`.
    sleeps: bool,
}

impl Wakes {
    /// Creates the wakes of the worker on this thread.
    pub(crate) fn new(signal: impl Fn() + Send + Sync + 'static) -> Self {
        let queue = WakeQueue { woken: Vec::new(), signalled: false, sleeper: None, closed: false };
        Self {
            own: OwnQueue(RefCell::default()),
            queue: Mutex::new(queue),
            any: AtomicBool::new(false),
            worker: this_thread(),
            signal: Box::new(signal),
        }
    }

    /// Calls `with` with the worker's own state; returns `None` on other threads, and if a waker's code calls back.
    fn with_own<T>(&self, with: impl FnOnce(&mut OwnWakes) -> T) -> Option<T> {
        if this_thread() != self.worker {
            return None;
        }
        Some(with(&mut *self.own.0.try_borrow_mut().ok()?))
    }

    /// Queues a woken slot. Signals the worker if another thread is the first to wake one since its last check, or if it
    /// sleeps.
    pub(crate) fn push(&self, slot: u32) {
        let pushed = self.with_own(|own| {
            own.woken.push(slot);
            if mem::take(&mut own.sleeps) { own.sleeper.clone() } else { None }
        });
        match pushed {
            Some(sleeper) => sleeper.into_iter().for_each(Waker::wake),
            None => self.push_locked(slot),
        }
    }

    fn push_locked(&self, slot: u32) {
        let mut queue = self.lock();
        if queue.closed {
            return;
        }
        queue.woken.push(slot);
        self.any.store(true, Ordering::Release);
        if mem::replace(&mut queue.signalled, true) {
            return;
        }
        let sleeper = queue.sleeper.clone();
        drop(queue);
        match sleeper {
            Some(sleeper) => sleeper.wake(),
            None => (self.signal)(),
        }
    }

    /// Has the next wake by any thread wake `waker`, and those of other threads from now on.
    pub(crate) fn sleep(&self, waker: &Waker) {
        let slept = self.with_own(|own| {
            own.sleeps = own.woken.is_empty();
            let is_same = own.sleeper.as_ref().is_some_and(|sleeper| sleeper.will_wake(waker));
            (own.sleeps, (!is_same).then(|| own.sleeper.replace(waker.clone())))
        });
        let Some((sleeps, before)) = slept else { return };
        if !sleeps {
            // Woken since the last check.
            waker.wake_by_ref();
        }
        if let Some(before) = before {
            let before_locked = self.lock().sleeper.replace(waker.clone());
            drop((before, before_locked)); // not while it is locked
        }
    }

    /// Has wakes by the worker's own thread wake nobody until it [sleeps](Self::sleep) again.
    pub(crate) fn rise(&self) {
        self.with_own(|own| own.sleeps = false);
    }

    /// Moves the woken slots into an empty list, whose memory is reused.
    pub(crate) fn take(&self, empty: &mut Vec<u32>) {
        debug_assert!(empty.is_empty());
        self.with_own(|own| {
            own.sleeps = false;
            mem::swap(&mut own.woken, empty);
        });
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut queue = self.lock();
        empty.append(&mut queue.woken);
        queue.signalled = false;
        self.any.store(false, Ordering::Release);
    }

    /// Ignores all wakes from now on.
    pub(crate) fn close(&self) {
        let own = self.with_own(mem::take);
        let mut queue = self.lock();
        queue.closed = true;
        let sleeper = queue.sleeper.take();
        queue.woken = Vec::new();
        drop(queue);
        drop((own, sleeper)); // not while it is locked
    }

    /// Locks the queue. Only running out of memory panics under the lock, and leaves the queue intact.
    fn lock(&self) -> MutexGuard<'_, WakeQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Target of a slot's wakers. A waker of an earlier task wakes the present one spuriously.
pub(crate) struct SlotWaker {
    slot: u32,
    /// Woken and not yet taken: further wakes are redundant.
    woken: AtomicBool,
    wakes: Arc<Wakes>,
}

impl SlotWaker {
    pub(crate) fn new(slot: u32, wakes: Arc<Wakes>) -> Arc<Self> {
        Arc::new(Self { slot, woken: AtomicBool::new(false), wakes })
    }

    /// Takes the wake, and synchronises with all wakers, including those that found it set. (Hence the
    /// exchange: a plain store would not be ordered after their writes.)
    pub(crate) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Clears the wake without synchronising: concurrent wakes queue the slot again.
    pub(crate) fn clear(&self) {
        if self.woken.load(Ordering::Relaxed) {
            self.take();
        }
    }
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.wakes.push(self.slot);
        }
    }
}

/// Returns a number unique among living threads: the address of a thread-local.
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
