//! The waker of a slot: made once, used by every task that the slot has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use crate::wakes::Wakes;

/// What the wakers of a slot point to. A waker of an earlier task of the slot wakes the present one: it is polled for nothing.
pub(crate) struct SlotWaker {
    slot: u32,
    /// Woken and not yet looked at: then one more wake says nothing new.
    woken: AtomicBool,
    wakes: Arc<Wakes>,
}

impl SlotWaker {
    pub(crate) fn new(slot: u32, wakes: Arc<Wakes>) -> Arc<Self> {
        Arc::new(Self { slot, woken: AtomicBool::new(false), wakes })
    }

    /// Whether the slot was woken since the last time; what its wakers wrote before is seen from here on, also that of those who
    /// found it woken already. (That is why it is an exchange: a plain store would not be ordered behind theirs.)
    pub(crate) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// The same, for who is content with an answer that is a moment old: whoever wakes meanwhile has the slot queued.
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

/// A waker as futures know it.
pub(crate) fn waker(slot: &Arc<SlotWaker>) -> Waker {
    Waker::from(Arc::clone(slot))
}
