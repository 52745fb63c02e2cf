//! Shared helpers: a worker's turn, futures completed by the test, and values that record their drop.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use shearwater_tasks::{Options, Polled, TaskId, Tasks};

/// Creates tasks with the default options and an ignored signal.
pub(crate) fn tasks() -> Tasks {
    Tasks::new(Options::default(), || ())
}

/// Spawns a task, expecting room for it.
pub(crate) fn spawn(tasks: &mut Tasks, future: impl Future<Output = ()> + 'static) -> TaskId {
    let Ok(id) = tasks.spawn(0, future) else { panic!("there is room for it") };
    id
}

/// Takes the wakes and polls each ready task once; returns the results.
pub(crate) fn turn(tasks: &mut Tasks) -> Vec<(TaskId, Polled)> {
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
pub(crate) struct Event(Rc<EventState>);

#[derive(Default)]
struct EventState {
    happened: Cell<bool>,
    polls: Cell<usize>,
    wakers: RefCell<Vec<Waker>>,
}

impl Event {
    pub(crate) fn happen(&self) {
        self.0.happened.set(true);
        self.wake();
    }

    /// Wakes the waiting tasks spuriously.
    pub(crate) fn wake(&self) {
        for waker in self.0.wakers.take() {
            waker.wake();
        }
    }

    /// Returns the wakers of the waiting tasks.
    pub(crate) fn take_wakers(&self) -> Vec<Waker> {
        self.0.wakers.take()
    }

    pub(crate) fn polls(&self) -> usize {
        self.0.polls.get()
    }

    pub(crate) fn wait(&self) -> Wait {
        Wait(self.clone())
    }
}

/// Waits for an [`Event`].
pub(crate) struct Wait(Event);

impl Future for Wait {
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

/// Counts its dropped [`Dropped`] values.
#[derive(Clone, Default)]
pub(crate) struct Drops(Rc<Cell<usize>>);

impl Drops {
    pub(crate) fn count(&self) -> usize {
        self.0.get()
    }

    pub(crate) fn one(&self) -> Dropped {
        Dropped(self.clone())
    }
}

/// Counts its own drop in its [`Drops`].
pub(crate) struct Dropped(Drops);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() + 1);
    }
}

/// Returns the message of a panic.
pub(crate) fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("other things")
}
