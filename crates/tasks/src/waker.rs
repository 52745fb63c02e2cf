//! A slot's waker: created once, shared by all tasks of the slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use crate::wakes::Wakes;

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

/// Returns a `Waker` of the slot.
pub(crate) fn waker(slot: &Arc<SlotWaker>) -> Waker {
    Waker::from(Arc::clone(slot))
}
