//! Tasks woken by any thread since the worker's last check.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// State shared by wakers and their worker.
pub(crate) struct Wakes {
    queue: Mutex<Queue>,
    /// True if the queue may have entries: checked before the lock is taken.
    any: AtomicBool,
    /// The worker's thread, by [`this_thread`].
    worker: usize,
    /// Makes the worker's wait return.
    signal: Box<dyn Fn() + Send + Sync>,
}

struct Queue {
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
        let queue = Queue { woken: Vec::new(), signalled: false, closed: false };
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
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a number unique among living threads: the address of a thread-local.
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
