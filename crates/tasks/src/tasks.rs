//! A worker's tasks: futures in recycled slots, polled by the worker when they were woken.

use std::alloc::Layout;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::block::Blocks;
use crate::limits::{LIFO_RUN_MAX, TASKS_MAX};
use crate::ready::{Order, Ready};
use crate::stored::Stored;
use crate::waker::{SlotWaker, waker};
use crate::wakes::Wakes;

/// How a worker's tasks are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Which of the ready tasks is next.
    pub order: Order,
    /// With [`Order::Lifo`]: tasks taken from the back in a row before one is taken from the front; 0 is [`Order::Fifo`].
    pub lifo_run_max: u32,
    /// Tasks at the same time; at most `u32::MAX`.
    pub tasks_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { order: Order::default(), lifo_run_max: LIFO_RUN_MAX, tasks_max: TASKS_MAX }
    }
}

/// A task of one worker. It stays unique while fewer than 2³² later tasks have had its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId {
    slot: u32,
    generation: u32,
}

/// What has become of a task that was polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// It waits to be woken.
    Pending,
    /// It has ended: its future is dropped, its slot free.
    Ready,
    /// There is no such task any more.
    Gone,
}

/// A place for a task.
struct Slot {
    /// Its present task's future; none: free.
    stored: Option<Stored>,
    tag: u64,
    /// Tasks that it had before.
    generation: u32,
    /// Whether it stands in the ready queue.
    in_ready: bool,
    woken: Arc<SlotWaker>,
    waker: Waker,
}

/// One worker's tasks.
///
/// They stay on the thread that made them. Nothing runs by itself: the worker takes the wakes ([`collect`](Self::collect)) once
/// a turn and polls what is [`next`](Self::next). It collects once more before it waits, and doesn't wait while something is
/// [`ready`](Self::ready): a task may have been woken by what the worker did since.
///
/// Per slot two allocations are made, once; a task needs none where an earlier one of its size has ended.
pub struct Tasks {
    slots: Vec<Slot>,
    /// Slots without a task. The last one used is the next: its memory is warm.
    free: Vec<u32>,
    blocks: Blocks,
    ready: Ready,
    wakes: Arc<Wakes>,
    /// Taken from the wakes; empty between two calls.
    collected: Vec<u32>,
    tasks_max: usize,
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("len", &self.len())
            .field("ready", &self.ready())
            .finish_non_exhaustive()
    }
}

impl Tasks {
    /// The tasks of the worker on this thread. `wake` makes its wait return: it is called from other threads only, when one of them wakes
    /// a task, once until the next [`collect`](Self::collect). It must not panic. What a thread did before it called `wake` has to be
    /// seen when the wait returns, also where that was about to return anyway: a write to an event counter is right, a flag that
    /// is looked at and found set is not.
    pub fn new(options: Options, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            blocks: Blocks::new(),
            ready: Ready::new(options.order, options.lifo_run_max),
            wakes: Arc::new(Wakes::new(wake)),
            collected: Vec::new(),
            tasks_max: options.tasks_max.min(u32::MAX as usize),
        }
    }

    /// Makes a task of a future, which is not polled yet and not ready: the caller polls it for the first time.
    /// `tag` is the caller's, to know by whose request it runs.
    ///
    /// # Errors
    /// The future, where there are [`Options::tasks_max`] already.
    pub fn spawn<F: Future<Output = ()> + 'static>(&mut self, tag: u64, future: F) -> Result<TaskId, F> {
        let Some(index) = self.free_slot() else { return Err(future) };
        let block = self.blocks.take(Layout::new::<F>());
        let slot = &mut self.slots[index as usize];
        slot.stored = Some(Stored::new(block, future));
        slot.tag = tag;
        Ok(TaskId { slot: index, generation: slot.generation })
    }

    /// Frees the memory that is kept for the next futures. Slots stay.
    pub fn forget_spare(&mut self) {
        self.blocks.forget_spare();
    }

    /// Looks at something with the waker of the task that is [spawned](Self::spawn) next: what is ready at once needs no task. What isn't may
    /// be spawned then without being polled once more: it counts as woken where it was woken since. Nothing may be spawned or end in between.
    ///
    /// None where there are [`Options::tasks_max`] already.
    pub fn look<T>(&mut self, look: impl FnOnce(&mut Context<'_>) -> T) -> Option<T> {
        if self.free.is_empty() {
            let index = self.free_slot()?;
            self.free.push(index);
        }
        let slot = &self.slots[*self.free.last()? as usize];
        slot.woken.clear();
        Some(look(&mut Context::from_waker(&slot.waker)))
    }

    /// Polls a task, whether it was woken or not.
    ///
    /// # Panics
    /// With what the future panics. It is dropped and its slot free by then.
    pub fn poll(&mut self, id: TaskId) -> Polled {
        let Some(slot) = self.slot_of(id) else { return Polled::Gone };
        slot.woken.clear();
        let Some(stored) = &mut slot.stored else { return Polled::Gone };
        let mut context = Context::from_waker(&slot.waker);
        let polled = catch_unwind(AssertUnwindSafe(|| stored.poll(&mut context)));
        if let Ok(Poll::Pending) = polled {
            return Polled::Pending;
        }
        let dropped = self.release(id.slot);
        match polled.and(dropped) {
            Ok(()) => Polled::Ready,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Drops a task's future where it is. Nothing happens where there is no such task. Its wakers may still be used, and wake nobody, or a later
    /// task of the slot for nothing.
    ///
    /// # Panics
    /// With what the future panics while it is dropped. Its slot is free by then.
    pub fn cancel(&mut self, id: TaskId) {
        if self.slot_of(id).is_none() {
            return;
        }
        if let Err(panic) = self.release(id.slot) {
            resume_unwind(panic);
        }
    }

    /// What the task was tagged with; none where it has ended.
    #[must_use]
    pub fn tag(&self, id: TaskId) -> Option<u64> {
        let slot = self.slots.get(id.slot as usize)?;
        (slot.stored.is_some() && slot.generation == id.generation).then_some(slot.tag)
    }

    /// Moves the tasks that were woken, by this thread or others, into the ready queue.
    pub fn collect(&mut self) {
        self.wakes.take(&mut self.collected);
        for index in self.collected.drain(..) {
            let slot = &mut self.slots[index as usize];
            if slot.stored.is_some() && !slot.in_ready {
                slot.in_ready = true;
                self.ready.push(index);
            }
        }
    }

    /// How many stand in the ready queue. Those that were cancelled or polled meanwhile count until [`next`](Self::next) passes over them.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The task to be polled next. Who takes it has to poll it: it counts as woken no more.
    #[expect(
        clippy::should_implement_trait,
        reason = "between two calls the tasks are polled: no iterator could be held"
    )]
    pub fn next(&mut self) -> Option<TaskId> {
        while let Some(index) = self.ready.take() {
            let slot = &mut self.slots[index as usize];
            slot.in_ready = false;
            // Not woken: polled meanwhile by who didn't wait for its turn.
            if slot.woken.take() && slot.stored.is_some() {
                return Some(TaskId { slot: index, generation: slot.generation });
            }
        }
        None
    }

    /// How many tasks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A slot without a task, taken off the list of those; none where there are too many tasks.
    fn free_slot(&mut self) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        let index =
            u32::try_from(self.slots.len()).ok().filter(|index| (*index as usize) < self.tasks_max)?;
        let woken = SlotWaker::new(index, Arc::clone(&self.wakes));
        let waker = waker(&woken);
        self.slots.push(Slot { stored: None, tag: 0, generation: 0, in_ready: false, woken, waker });
        Some(index)
    }

    /// The slot of a task that is there.
    fn slot_of(&mut self, id: TaskId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.generation == id.generation && slot.stored.is_some()).then_some(slot)
    }

    /// Drops a slot's future and frees the slot; gives what the future panicked with.
    fn release(&mut self, index: u32) -> thread::Result<()> {
        let slot = &mut self.slots[index as usize];
        let Some(stored) = slot.stored.take() else { return Ok(()) };
        slot.generation = slot.generation.wrapping_add(1);
        let (block, dropped) = stored.end();
        self.blocks.give_back(block);
        self.free.push(index);
        dropped
    }
}

impl Drop for Tasks {
    /// Drops every future, also where one of them panics; the first panic goes on then.
    fn drop(&mut self) {
        self.wakes.close();
        let mut first = Ok(());
        for index in 0..self.slots.len() {
            let dropped = self.release(u32::try_from(index).unwrap_or(u32::MAX));
            first = first.and(dropped);
        }
        if let Err(panic) = first
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}
