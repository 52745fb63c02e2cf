//! Memory that a worker reuses between requests.

use std::cell::RefCell;
use std::pin::Pin;

use tokio::runtime::Handle;

use crate::budget::Budget;
use crate::head_pool::HeadPool;
use crate::limits::SPARE_SLOTS_BYTES_MAX;
use crate::service::HttpService;

/// The pools of one worker.
pub(crate) struct WorkerPool<S: HttpService> {
    pub(crate) budget: Budget,
    pub(crate) heads: RefCell<HeadPool>,
    pub(crate) futures: SlotPool<S::ResponseFuture>,
    pub(crate) bodies: SlotPool<S::ResponseBody>,
}

impl<S: HttpService> WorkerPool<S> {
    pub(crate) fn new(runtime: &Handle) -> Self {
        Self {
            budget: Budget::new(runtime),
            heads: RefCell::new(HeadPool::new()),
            futures: SlotPool::new(),
            bodies: SlotPool::new(),
        }
    }
}

/// Minimum size in bytes that a slot counts as.
const SLOT_BYTES_MIN: usize = 64;

/// A pinned slot with a value.
pub(crate) struct PinnedSlot<T>(Pin<Box<Option<T>>>);

impl<T> PinnedSlot<T> {
    /// Returns the value.
    pub(crate) fn get(&mut self) -> Pin<&mut T> {
        self.0.as_mut().as_pin_mut().expect("a slot in use has a value")
    }
}

/// A worker's free slots for one type.
pub(crate) struct SlotPool<T> {
    free: RefCell<Vec<PinnedSlot<T>>>,
}

impl<T> SlotPool<T> {
    /// Maximum number of free slots.
    const KEPT_MAX: usize = {
        let bytes = size_of::<Option<T>>();
        SPARE_SLOTS_BYTES_MAX / if bytes < SLOT_BYTES_MIN { SLOT_BYTES_MIN } else { bytes }
    };

    pub(crate) fn new() -> Self {
        Self { free: RefCell::default() }
    }

    /// Puts a value into a free or new slot.
    pub(crate) fn take(&self, value: T) -> PinnedSlot<T> {
        let free = self.free.borrow_mut().pop();
        match free {
            Some(mut slot) => {
                slot.0.set(Some(value));
                slot
            }
            None => PinnedSlot(Box::pin(Some(value))),
        }
    }

    /// Drops the value and keeps the slot.
    pub(crate) fn put(&self, mut slot: PinnedSlot<T>) {
        slot.0.set(None);
        let mut free = self.free.borrow_mut();
        if free.len() < Self::KEPT_MAX {
            free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::{SLOT_BYTES_MIN, SPARE_SLOTS_BYTES_MAX, SlotPool};

    #[test]
    fn drops_the_value_and_reuses_its_slot() {
        let slots = SlotPool::new();
        let value = Rc::new(17);
        let mut slot = slots.take(Rc::clone(&value));
        let address = std::ptr::from_ref(&*slot.get());
        slots.put(slot);
        assert_eq!(Rc::strong_count(&value), 1);
        let mut again = slots.take(Rc::new(18));
        assert_eq!(std::ptr::from_ref(&*again.get()), address);
        assert_eq!(**again.get(), 18);
    }

    #[test]
    fn keeps_a_bounded_number_of_bytes() {
        fn kept<T: Clone>(value: &T) -> usize {
            let slots = SlotPool::new();
            let taken: Vec<_> = (0..SPARE_SLOTS_BYTES_MAX)
                .step_by(SLOT_BYTES_MIN / 2)
                .map(|_| slots.take(value.clone()))
                .collect();
            taken.into_iter().for_each(|slot| slots.put(slot));
            slots.free.borrow().len()
        }
        assert_eq!(kept(&()), SPARE_SLOTS_BYTES_MAX / SLOT_BYTES_MIN);
        let kilobyte = kept(&[0u8; 1024]);
        assert!(kilobyte > 0 && kilobyte * 1024 <= SPARE_SLOTS_BYTES_MAX, "{kilobyte}");
    }
}
