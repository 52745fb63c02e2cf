//! Waiting in a coroutine: polls a future on its stack and suspends while it is pending.

#![expect(
    unsafe_code,
    reason = "a coroutine is resumed with a pointer to the waker of the poll that resumes it"
)]

use std::cell::Cell;
use std::fmt;
use std::pin::pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};
use std::thread;

use corosensei::Yielder;

/// The argument of resuming a coroutine: its task's waker, valid until it suspends.
pub(crate) type Resumed = NonNull<Waker>;

/// Handle by which a coroutine's body waits. Bound to the body: not even a thread that the body joins can use
/// it.
pub struct Suspend<'a> {
    yielder: &'a Yielder<Resumed, ()>,
    /// Set while the coroutine is being polled; `None` while it is suspended or cancelled.
    resumed: Cell<Option<Resumed>>,
}

impl<'a> Suspend<'a> {
    /// Wraps the yielder of a coroutine that was resumed for the first time.
    ///
    /// # Safety
    /// The waker must be valid until the coroutine suspends, and so must those of later resumes.
    pub(crate) unsafe fn new(yielder: &'a Yielder<Resumed, ()>, resumed: Resumed) -> Self {
        Self { yielder, resumed: Cell::new(Some(resumed)) }
    }

    /// Waits until the future is ready and returns its output.
    ///
    /// The future is polled on the coroutine's stack; while it is pending the coroutine is suspended and the
    /// worker continues. The future may itself wait by this `Suspend`: then everything waits.
    ///
    /// If the coroutine is dropped meanwhile, this call doesn't return: its stack is unwound, and values on
    /// it are dropped. Pass on the panic that does this; code that catches it and waits again is unwound
    /// again.
    ///
    /// # Panics
    /// Panics if it would wait while its thread is panicking: in a destructor that runs during a panic or a
    /// cancellation. (A panic in such a destructor aborts the process.) A future that is ready at once is
    /// permitted there.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut waker = Waker::noop().clone();
        self.refresh(&mut waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            // The future itself may have waited here and been resumed with another waker, which it must get.
            if !self.refresh(&mut waker) {
                self.suspend();
                self.refresh(&mut waker);
            }
        }
    }

    /// Sets the waker to that of the present poll; returns whether it changed.
    ///
    /// The waker is a clone: a future that waits within one that is polled here outlives the poll that it
    /// began in. A cancelled coroutine has no waker: its destructors' futures are polled once, without
    /// effect, and code that caught the unwinding panic is unwound again.
    fn refresh(&self, waker: &mut Waker) -> bool {
        loop {
            let Some(resumed) = self.resumed.get() else {
                if thread::panicking() {
                    return false;
                }
                self.suspend();
                continue;
            };
            // SAFETY: the poll that resumed the coroutine borrows the waker and returns only when the
            // coroutine suspends, which clears it here: see `suspend`.
            let resumed = unsafe { resumed.as_ref() };
            let is_new = !resumed.will_wake(waker);
            if is_new {
                waker.clone_from(resumed);
            }
            return is_new;
        }
    }

    /// Returns from the poll; continues in the next one, or never.
    fn suspend(&self) {
        assert!(!thread::panicking(), "a coroutine can't wait while it unwinds");
        self.resumed.set(None);
        let resumed = self.yielder.suspend(());
        self.resumed.set(Some(resumed));
    }
}

impl fmt::Debug for Suspend<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suspend").finish_non_exhaustive()
    }
}
