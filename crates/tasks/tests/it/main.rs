//! The crate's tests: tasks, wakes from this thread and others, timers, and (if stacks can be switched) coroutines;
//! and their helpers: a worker's turn, futures completed by the test, and values that count their drops.

#[cfg(not(miri))]
mod coroutines;
mod tasks;
mod timers;
mod wakes;

use std::cell::{Cell, RefCell};
#[cfg(not(miri))]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[cfg(not(miri))]
use shearwater_tasks::limits::STACK_BYTES_MIN;
#[cfg(not(miri))]
use shearwater_tasks::{Coroutine, StackOptions, Stacks, Suspend};
use shearwater_tasks::{Options, Polled, TaskId, Tasks};

/// Creates tasks with the default options and an ignored signal.
fn tasks() -> Tasks {
    Tasks::new(Options::default(), || ())
}

/// Spawns a task, expecting room for it.
fn spawn(tasks: &mut Tasks, future: impl Future<Output = ()> + 'static) -> TaskId {
    let Ok(id) = tasks.spawn(0, future) else { panic!("there is room for it") };
    id
}

/// Takes the wakes and polls each ready task once; returns the results.
fn turn(tasks: &mut Tasks) -> Vec<(TaskId, Polled)> {
    tasks.collect();
    let ready = tasks.ready();
    let mut polled = Vec::new();
    while let Some(id) = tasks.next() {
        polled.push((id, tasks.poll(id)));
    }
    assert!(polled.len() <= ready, "what is woken meanwhile waits for the next turn");
    polled
}

/// An event that the test triggers. Each future waits for it once.
#[derive(Clone, Default)]
struct TestEvent(Rc<EventState>);

#[derive(Default)]
struct EventState {
    happened: Cell<bool>,
    polls: Cell<usize>,
    wakers: RefCell<Vec<Waker>>,
}

impl TestEvent {
    fn happen(&self) {
        self.0.happened.set(true);
        self.wake();
    }

    /// Wakes the waiting tasks spuriously.
    fn wake(&self) {
        for waker in self.0.wakers.take() {
            waker.wake();
        }
    }

    /// Returns the wakers of the waiting tasks.
    fn take_wakers(&self) -> Vec<Waker> {
        self.0.wakers.take()
    }

    fn polls(&self) -> usize {
        self.0.polls.get()
    }

    fn wait(&self) -> TestWait {
        TestWait(self.clone())
    }
}

/// Waits for an [`TestEvent`].
struct TestWait(TestEvent);

impl Future for TestWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let state = &self.0.0;
        state.polls.set(state.polls.get() + 1);
        if state.happened.get() {
            return Poll::Ready(());
        }
        state.wakers.borrow_mut().push(context.waker().clone());
        Poll::Pending
    }
}

/// Counts its dropped [`CountedDrop`] values.
#[derive(Clone, Default)]
struct Drops(Rc<Cell<usize>>);

impl Drops {
    fn count(&self) -> usize {
        self.0.get()
    }

    fn one(&self) -> CountedDrop {
        CountedDrop(self.clone())
    }
}

/// Counts its own drop in its [`Drops`].
struct CountedDrop(Drops);

impl Drop for CountedDrop {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() + 1);
    }
}

/// Returns the message of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("another type")
}

/// A worker's tasks and stacks.
#[cfg(not(miri))]
struct CoroutineWorker {
    tasks: Tasks,
    stacks: Rc<Stacks>,
    /// Numbers of the bodies that have begun.
    began: Rc<RefCell<Vec<usize>>>,
}

#[cfg(not(miri))]
impl CoroutineWorker {
    fn new() -> Self {
        Self::with(StackOptions::default())
    }

    fn with(options: StackOptions) -> Self {
        let stacks = Stacks::new(options).expect("the system has memory");
        Self { tasks: tasks(), stacks, began: Rc::default() }
    }

    fn with_stacks(stacks_max: usize, spare_max: usize) -> Self {
        Self::with(StackOptions { stack_bytes: STACK_BYTES_MIN * 4, spare_max, stacks_max })
    }

    /// Makes a task of a body.
    fn spawn(&mut self, body: impl FnOnce(&Suspend<'_>) + 'static) -> TaskId {
        spawn(&mut self.tasks, Coroutine::new(&self.stacks, "test".into(), body))
    }

    /// Makes a task of a body, which waits in its first poll.
    fn start(&mut self, body: impl FnOnce(&Suspend<'_>) + 'static) -> TaskId {
        let id = self.spawn(body);
        assert_eq!(self.tasks.poll(id), Polled::Pending);
        id
    }

    /// Starts a task that holds a stack until the event.
    fn hold(&mut self, number: usize, event: &TestEvent) -> TaskId {
        let (began, wait) = (Rc::clone(&self.began), event.wait());
        self.start(move |suspend| {
            began.borrow_mut().push(number);
            suspend.wait(wait);
        })
    }

    fn turn(&mut self) -> Vec<Polled> {
        turn(&mut self.tasks).into_iter().map(|(_, polled)| polled).collect()
    }

    /// Returns the message of the panic that polling a task causes.
    fn poll_panics(&mut self, id: TaskId) -> String {
        let panic = catch_unwind(AssertUnwindSafe(|| self.tasks.poll(id))).unwrap_err();
        message(&*panic).to_owned()
    }

    /// Asserts the numbers of tasks, of stacks in use and of spare ones.
    #[track_caller]
    fn assert_left(&self, tasks: usize, lent: usize, spare: usize) {
        assert_eq!((self.tasks.len(), self.stacks.lent(), self.stacks.spare()), (tasks, lent, spare));
    }

    /// Asserts the numbers of stacks in use and of waiting coroutines, and which bodies have begun.
    #[track_caller]
    fn assert_queue(&self, lent: usize, waiting: usize, began: &[usize]) {
        assert_eq!((self.stacks.lent(), self.stacks.waiting()), (lent, waiting));
        assert_eq!(*self.began.borrow(), began);
    }
}
