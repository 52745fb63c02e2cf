//! How a coroutine waits: a future is polled on its stack, and while it is pending the worker goes on.

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

/// What a coroutine is resumed with: the waker of the task that it is, which is there until it suspends.
pub(crate) type Resumed = NonNull<Waker>;

/// What a coroutine's body waits by. It stays with the body: not even another thread that the body waits for can use it.
pub struct Suspend<'a> {
    yielder: &'a Yielder<Resumed, ()>,
    /// While the coroutine is being polled; none while it is suspended, and from its cancellation on.
    resumed: Cell<Option<Resumed>>,
}

impl<'a> Suspend<'a> {
    /// For a coroutine that was resumed for the first time.
    ///
    /// # Safety
    /// The waker is there until the coroutine suspends, and so is what it is resumed with later.
    pub(crate) unsafe fn new(yielder: &'a Yielder<Resumed, ()>, resumed: Resumed) -> Self {
        Self { yielder, resumed: Cell::new(Some(resumed)) }
    }

    /// Waits until the future is ready and gives its output. It is polled on the coroutine's stack; while it is pending the coroutine is
    /// suspended and the worker does something else. The future may itself wait by this `Suspend`: everything waits then.
    ///
    /// A coroutine that is dropped meanwhile doesn't return from here: its stack is unwound, and what lies on it is dropped.
    /// The panic that does this is to be passed on; who catches it and waits again is unwound again.
    ///
    /// # Panics
    /// When it would have to wait while its thread is panicking: in the destructor of something that a panic or a cancellation drops. (A panic in
    /// such a destructor aborts the process.) A future that is ready at once may be asked for there.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut waker = Waker::noop().clone();
        self.refresh(&mut waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            // The future itself may have waited here and been resumed with another waker: it has to know that one.
            if !self.refresh(&mut waker) {
                self.suspend();
                self.refresh(&mut waker);
            }
        }
    }

    /// Makes the waker that of the poll in which the coroutine runs; gives whether it was another. It is a copy: a future that waits within
    /// one that is polled here outlives the poll that it began in.
    ///
    /// Of a cancelled coroutine there is none. What its destructors ask for is polled once, for nobody; who caught the panic that unwinds it
    /// is unwound again.
    fn refresh(&self, waker: &mut Waker) -> bool {
        loop {
            let Some(resumed) = self.resumed.get() else {
                if thread::panicking() {
                    return false;
                }
                self.suspend();
                continue;
            };
            // SAFETY: the poll that resumed the coroutine borrows the waker and returns only when the coroutine suspends, and then there is
            // none here: see `suspend`.
            let resumed = unsafe { resumed.as_ref() };
            let is_new = !resumed.will_wake(waker);
            if is_new {
                waker.clone_from(resumed);
            }
            return is_new;
        }
    }

    /// Lets the poll return; comes back in the next one, or not at all.
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
