//! Tasks woken by any thread since the worker's last check.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Wake;

/// State shared by wakers and their worker.
pub(crate) struct Wakes {
    queue: Mutex<WakeQueue>,
    /// True if the queue may have entries: checked before the lock is taken.
    any: AtomicBool,
    /// The worker's thread, by [`this_thread`].
    worker: usize,
    /// Makes the worker's wait return.
    signal: Box<dyn Fn() + Send + Sync>,
}

struct WakeQueue {
    /// Woken slots. Each is in it once, unless its task was polled and woken again meanwhile.
    woken: Vec<u32>,
    /// True if the worker was signalled since its last check.
    signalled: bool,
    /// True once the worker is gone.
    closed: bool,
}

impl Wakes {
    /// Creates the wakes of the worker on this thread.
    pub(crate) fn new(signal: impl Fn() + Send + Sync + 'static) -> Self {
        let queue = WakeQueue { woken: Vec::new(), signalled: false, closed: false };
        Self {
            queue: Mutex::new(queue),
            any: AtomicBool::new(false),
            worker: this_thread(),
            signal: Box::new(signal),
        }
    }

    /// Queues a woken slot; signals the worker if another thread is the first to wake one since its last
    /// check.
    pub(crate) fn push(&self, slot: u32) {
        let foreign = this_thread() != self.worker;
        let mut queue = self.lock();
        if queue.closed {
            return;
        }
        queue.woken.push(slot);
        self.any.store(true, Ordering::Release);
        let signal = foreign && !queue.signalled;
        queue.signalled |= foreign;
        drop(queue);
        if signal {
            (self.signal)();
        }
    }

    /// Swaps the woken slots with an empty list, whose memory is reused.
    pub(crate) fn take(&self, empty: &mut Vec<u32>) {
        debug_assert!(empty.is_empty());
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut queue = self.lock();
        std::mem::swap(&mut queue.woken, empty);
        queue.signalled = false;
        self.any.store(false, Ordering::Release);
    }

    /// Ignores all wakes from now on.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.woken = Vec::new();
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
