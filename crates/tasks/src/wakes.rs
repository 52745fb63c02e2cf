//! The tasks that were woken, by any thread, since the worker last looked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What wakers and their worker share.
pub(crate) struct Wakes {
    queue: Mutex<Queue>,
    /// Whether there may be something in the queue: a worker looks here before it takes the lock.
    any: AtomicBool,
    /// The worker's thread, as [`this_thread`] tells it.
    worker: usize,
    /// Makes the worker's wait return.
    signal: Box<dyn Fn() + Send + Sync>,
}

struct Queue {
    /// Slots. One is in it once, but where its task was polled meanwhile and was woken again.
    woken: Vec<u32>,
    /// Whether the worker was signalled since it last looked.
    signalled: bool,
    /// The worker is gone.
    closed: bool,
}

impl Wakes {
    /// Of the worker on this thread.
    pub(crate) fn new(signal: impl Fn() + Send + Sync + 'static) -> Self {
        let queue = Queue { woken: Vec::new(), signalled: false, closed: false };
        Self {
            queue: Mutex::new(queue),
            any: AtomicBool::new(false),
            worker: this_thread(),
            signal: Box::new(signal),
        }
    }

    /// Notes that a slot was woken; tells the worker where it may not notice: from another thread, the first time since it looked.
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

    /// Gives what was woken, in exchange for an empty list whose memory is used next.
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

    /// From now on nothing is noted and nobody is told.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.woken = Vec::new();
    }

    /// Nothing panics while it is held but where memory runs out, and then the queue is whole.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that tells the threads apart that live at the same time: the address of something that each has one of.
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
