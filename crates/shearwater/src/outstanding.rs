//! Work on other threads that handlers of an app under test wait for: the test knows by it what it has to wait for itself.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

thread_local! {
    /// That of the app whose worker turns on this thread; a server's worker has none.
    static CURRENT: RefCell<Option<Arc<Outstanding>>> = const { RefCell::new(None) };
}

/// Counts the pieces of one app.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    count: Mutex<Count>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    /// Begun, and neither done nor dropped.
    begun: usize,
    /// Done or dropped.
    over: u64,
}

/// How a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// There is nothing to wait for.
    Nothing,
    /// A piece is over.
    Over,
    /// None was in time.
    InVain,
}

impl Outstanding {
    /// That of the app whose worker turns on this thread, if it is one under test.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
    }

    /// Does something, with this as the current one.
    pub(crate) fn during<R>(self: &Arc<Self>, action: impl FnOnce() -> R) -> R {
        let _back = Back(CURRENT.replace(Some(Arc::clone(self))));
        action()
    }

    /// A piece begins.
    pub(crate) fn begin(&self) {
        self.locked().begun += 1;
    }

    /// A piece is over: whom it wakes is woken by now.
    pub(crate) fn end(&self) {
        let mut count = self.locked();
        count.begun -= 1;
        count.over += 1;
        drop(count);
        self.changed.notify_all();
    }

    /// How many pieces are over.
    pub(crate) fn over(&self) -> u64 {
        self.locked().over
    }

    /// Waits until more than `seen` pieces are over, or there is none.
    pub(crate) fn wait(&self, seen: u64, patience: Duration) -> Waited {
        let waits = |count: &mut Count| count.over == seen && count.begun > 0;
        let waited = self.changed.wait_timeout_while(self.locked(), patience, waits);
        let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match (count.over == seen, count.begun) {
            (false, _) => Waited::Over,
            (true, 0) => Waited::Nothing,
            (true, _) => Waited::InVain,
        }
    }

    /// What is under this lock is whole at every step.
    fn locked(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts back what was current before, also behind a panic.
struct Back(Option<Arc<Outstanding>>);

impl Drop for Back {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
