//! Counts offloaded work of an app under test, so that the test can wait for it.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

thread_local! {
    /// The counter of the app whose worker is running on this thread; `None` for a server's worker.
    static CURRENT: RefCell<Option<Arc<Outstanding>>> = const { RefCell::new(None) };
}

/// A counter of one app's offloaded work.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    count: Mutex<Count>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    /// Started, and neither done nor abandoned.
    begun: usize,
    /// Done or abandoned.
    finished: u64,
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// No work is outstanding.
    Nothing,
    /// A piece of work finished.
    Finished,
    /// No work finished in time.
    TimedOut,
}

impl Outstanding {
    /// Returns the counter of the app under test whose worker is running on this thread.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
    }

    /// Runs `action` with this as the current counter.
    pub(crate) fn during<R>(self: &Arc<Self>, action: impl FnOnce() -> R) -> R {
        let _restore = Restore(CURRENT.replace(Some(Arc::clone(self))));
        action()
    }

    /// Counts a piece of work as started.
    pub(crate) fn begin(&self) {
        self.lock().begun += 1;
    }

    /// Counts a piece of work as finished, after its task was woken.
    pub(crate) fn end(&self) {
        let mut count = self.lock();
        count.begun -= 1;
        count.finished += 1;
        drop(count);
        self.changed.notify_all();
    }

    /// Returns the number of finished pieces.
    pub(crate) fn finished(&self) -> u64 {
        self.lock().finished
    }

    /// Waits until more than `seen` pieces have finished, or none is outstanding.
    pub(crate) fn wait(&self, seen: u64, timeout: Duration) -> Waited {
        let waits = |count: &mut Count| count.finished == seen && count.begun > 0;
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, waits);
        let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match (count.finished == seen, count.begun) {
            (false, _) => Waited::Finished,
            (true, 0) => Waited::Nothing,
            (true, _) => Waited::TimedOut,
        }
    }

    /// Locks the counts, ignoring poison: they are consistent at every step.
    fn lock(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Restores the previous counter on drop, also after a panic.
struct Restore(Option<Arc<Outstanding>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
