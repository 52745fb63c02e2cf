//! A worker's tasks: futures in recycled slots, polled after a wake.

use std::alloc::Layout;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::limits::{LIFO_RUN_MAX, TASKS_MAX};
use crate::ready::{Order, Ready};
use crate::stored::{FutureBlocks, Stored};
use crate::wakes::{SlotWaker, Wakes};

/// Options of a worker's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Order of ready tasks.
    pub order: Order,
    /// With [`Order::Lifo`]: consecutive tasks from the back before one from the front; 0 is [`Order::Fifo`].
    pub lifo_run_max: u32,
    /// Concurrent tasks; at most `u32::MAX`.
    pub tasks_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { order: Order::default(), lifo_run_max: LIFO_RUN_MAX, tasks_max: TASKS_MAX }
    }
}

/// A task of one worker. Unique while fewer than 2³² later tasks have used its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId {
    slot: u32,
    generation: u32,
}

/// Result of polling a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// It waits to be woken.
    Pending,
    /// It has ended: its future is dropped and its slot free.
    Ready,
    /// There is no such task.
    Gone,
}

/// A slot for a task.
struct TaskSlot {
    /// Its present task's future; `None` if free.
    stored: Option<Stored>,
    tag: u64,
    /// Number of earlier tasks.
    generation: u32,
    /// True if it is in the ready queue.
    in_ready: bool,
    woken: Arc<SlotWaker>,
    waker: Waker,
}

/// One worker's tasks.
///
/// They stay on the thread that made them. Nothing runs by itself: once a turn the worker takes the wakes
/// ([`collect`](Self::collect)) and polls the [`next`](Self::next) tasks. It collects once more before it
/// waits, and doesn't wait while tasks are [`ready`](Self::ready), because the worker's own actions may have
/// woken some.
///
/// Each slot makes two allocations, once; a task makes none if an earlier one of its size has ended.
pub struct Tasks {
    slots: Vec<TaskSlot>,
    /// Free slots. The last one used is reused first: its memory is warm.
    free: Vec<u32>,
    blocks: FutureBlocks,
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
    /// Creates the tasks of the worker on this thread. `wake` makes its wait return.
    ///
    /// `wake` is called from other threads only, when one of them wakes a task, once until the next
    /// [`collect`](Self::collect). It must not panic. A thread's writes before `wake` must be visible when
    /// the wait returns, even if it was about to return anyway: a write to an event counter is right, a check
    /// of a flag that is already set is not.
    pub fn new(options: Options, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            blocks: FutureBlocks::new(),
            ready: Ready::new(options.order, options.lifo_run_max),
            wakes: Arc::new(Wakes::new(wake)),
            collected: Vec::new(),
            tasks_max: options.tasks_max.min(u32::MAX as usize),
        }
    }

    /// Makes a task of a future, which is neither polled nor ready: the caller polls it first. `tag` is the
    /// caller's, for example to identify its request.
    ///
    /// # Errors
    /// Returns the future if there are [`Options::tasks_max`] tasks.
    pub fn spawn<F: Future<Output = ()> + 'static>(&mut self, tag: u64, future: F) -> Result<TaskId, F> {
        let Some(index) = self.free_slot() else { return Err(future) };
        let block = self.blocks.take(Layout::new::<F>());
        let slot = &mut self.slots[index as usize];
        slot.stored = Some(Stored::new(block, future));
        slot.tag = tag;
        Ok(TaskId { slot: index, generation: slot.generation })
    }

    /// Frees the memory kept for later futures. Slots stay.
    pub fn forget_spare(&mut self) {
        self.blocks.free_spare();
    }

    /// Calls `poll` with the waker of the next [spawned](Self::spawn) task, so that work that is ready at
    /// once needs no task.
    ///
    /// A pending future can then be spawned without another poll: a wake since then counts. Nothing may be
    /// spawned or end in between. Returns `None` if there are [`Options::tasks_max`] tasks.
    pub fn poll_now<T>(&mut self, poll: impl FnOnce(&mut Context<'_>) -> T) -> Option<T> {
        if self.free.is_empty() {
            let index = self.free_slot()?;
            self.free.push(index);
        }
        let slot = &self.slots[*self.free.last()? as usize];
        slot.woken.clear();
        Some(poll(&mut Context::from_waker(&slot.waker)))
    }

    /// Polls a task, whether or not it was woken.
    ///
    /// # Panics
    /// Panics if the future does. It is dropped and its slot free by then.
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

    /// Drops a task's future. Does nothing if there is no such task. Its wakers stay valid, and wake nothing
    /// or, spuriously, a later task of the slot.
    ///
    /// # Panics
    /// Panics if dropping the future does. Its slot is free by then.
    pub fn cancel(&mut self, id: TaskId) {
        if self.slot_of(id).is_none() {
            return;
        }
        if let Err(panic) = self.release(id.slot) {
            resume_unwind(panic);
        }
    }

    /// Returns the task's tag; `None` if it has ended.
    #[must_use]
    pub fn tag(&self, id: TaskId) -> Option<u64> {
        let slot = self.slots.get(id.slot as usize)?;
        (slot.stored.is_some() && slot.generation == id.generation).then_some(slot.tag)
    }

    /// Changes the task's tag. Does nothing if it has ended.
    pub fn set_tag(&mut self, id: TaskId, tag: u64) {
        if let Some(slot) = self.slot_of(id) {
            slot.tag = tag;
        }
    }

    /// Wakes the task, polled before or not. Does nothing if it has ended.
    pub fn wake(&mut self, id: TaskId) {
        if let Some(slot) = self.slot_of(id) {
            // A late wake of an earlier task of the slot would hide this one.
            slot.woken.clear();
            slot.waker.wake_by_ref();
        }
    }

    /// Moves the tasks that any thread has woken into the ready queue.
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

    /// Has wakes wake `waker`: for a worker that another event loop polls instead of a wait that `wake` ends. A wake by
    /// this thread does so once, until the next [`collect`](Self::collect).
    ///
    /// Called at the end of a poll. `waker` is woken at once if this thread has woken a task since the last
    /// [`collect`](Self::collect); the caller polls again if tasks are [`ready`](Self::ready).
    pub fn sleep(&mut self, waker: &Waker) {
        self.wakes.sleep(waker);
    }

    /// Has wakes by this thread wake nobody until the next [`sleep`](Self::sleep): the worker is being polled.
    pub fn rise(&mut self) {
        self.wakes.rise();
    }

    /// Returns the length of the ready queue. Tasks cancelled or polled meanwhile count until
    /// [`next`](Self::next) skips them.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns the task to poll next. The caller must poll it: its wake is cleared.
    #[expect(
        clippy::should_implement_trait,
        reason = "tasks are polled between two calls, so an iterator can't borrow them"
    )]
    pub fn next(&mut self) -> Option<TaskId> {
        while let Some(index) = self.ready.take() {
            let slot = &mut self.slots[index as usize];
            slot.in_ready = false;
            // Not woken: polled out of turn meanwhile.
            if slot.woken.take() && slot.stored.is_some() {
                return Some(TaskId { slot: index, generation: slot.generation });
            }
        }
        None
    }

    /// Returns true if no further task can be spawned.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= self.tasks_max
    }

    /// Returns the number of tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether there are no tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a free slot; returns `None` if there are too many tasks.
    fn free_slot(&mut self) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        let index =
            u32::try_from(self.slots.len()).ok().filter(|index| (*index as usize) < self.tasks_max)?;
        let woken = SlotWaker::new(index, Arc::clone(&self.wakes));
        let waker = Waker::from(Arc::clone(&woken));
        self.slots.push(TaskSlot { stored: None, tag: 0, generation: 0, in_ready: false, woken, waker });
        Some(index)
    }

    /// Returns the slot of a present task.
    fn slot_of(&mut self, id: TaskId) -> Option<&mut TaskSlot> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.generation == id.generation && slot.stored.is_some()).then_some(slot)
    }

    /// Drops a slot's future and frees the slot; returns the future's panic, if any.
    fn release(&mut self, index: u32) -> thread::Result<()> {
        let slot = &mut self.slots[index as usize];
        let Some(stored) = slot.stored.take() else { return Ok(()) };
        slot.generation = slot.generation.wrapping_add(1);
        let (block, dropped) = stored.end();
        self.blocks.release(block);
        self.free.push(index);
        dropped
    }
}

impl Drop for Tasks {
    /// Drops every future, even if one of them panics; the first panic then continues.
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

/// Yields to the other ready tasks: pending once, and woken at once.
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
