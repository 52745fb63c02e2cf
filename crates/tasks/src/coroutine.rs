//! Coroutines: straight-line code on its own stack, polled as a future, which waits by polling futures itself.

#![expect(
    unsafe_code,
    reason = "a coroutine is resumed with a pointer to the waker of the poll that resumes it"
)]

use std::cell::Cell;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;

use corosensei::stack::Stack;
use corosensei::{CoroutineResult, Yielder};

use crate::arena::ArenaStack;
use crate::limits::BODY_BYTES_MAX;
use crate::overflow::{self, Guarded};
use crate::stacks::{Stacks, Ticket};

/// Straight-line code that may wait in the middle ([`Suspend::wait`]), as a future.
///
/// It takes a stack at its first poll and releases it at its end. Dropping it earlier unwinds its stack:
/// values on it are dropped as by a panic. A stack overflow ends the process, and logs the label and the
/// stack's size to standard error.
///
/// Its body runs on one thread, among other coroutines: thread-locals may have changed after each
/// [`wait`](Suspend::wait).
pub struct Coroutine<B> {
    stacks: Rc<Stacks>,
    label: Rc<str>,
    state: CoroutineState<B>,
}

enum CoroutineState<B> {
    /// Not polled yet, or waiting for a stack.
    Fresh(B, Option<Ticket>),
    /// On its stack.
    Running(OnStack),
    /// Ended.
    Ended,
}

struct OnStack {
    coroutine: corosensei::Coroutine<Resumed, (), (), ArenaStack>,
    /// The stack's lowest address.
    limit: usize,
}

impl<B: FnOnce(&Suspend<'_>) + 'static> Coroutine<B> {
    /// Creates a coroutine that will run `body`. `label` identifies it if its stack overflows.
    pub fn new(stacks: &Rc<Stacks>, label: Rc<str>, body: B) -> Self {
        Self { stacks: Rc::clone(stacks), label, state: CoroutineState::Fresh(body, None) }
    }

    /// Starts the body on a stack, or puts it back if there is none yet.
    fn start(&mut self, context: &Context<'_>) {
        let CoroutineState::Fresh(body, ticket) = mem::replace(&mut self.state, CoroutineState::Ended) else {
            return;
        };
        self.state = match self.stacks.lend(ticket, context.waker()) {
            Ok(Ok(stack)) => CoroutineState::Running(OnStack::new(stack, body)),
            Ok(Err(ticket)) => CoroutineState::Fresh(body, Some(ticket)),
            Err(error) => panic!("no memory for the stack of coroutine {}: {error}", self.label),
        };
    }
}

impl<B: FnOnce(&Suspend<'_>) + 'static> Future for Coroutine<B> {
    type Output = ();

    /// # Panics
    /// Panics with the body's panic, if the system has no memory for a stack and none can be released, and if
    /// polled after its end.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if matches!(this.state, CoroutineState::Fresh(..)) {
            this.start(context);
        }
        let running = match &mut this.state {
            CoroutineState::Running(running) => running,
            CoroutineState::Fresh(..) => return Poll::Pending,
            CoroutineState::Ended => panic!("coroutine {} was polled after its end", this.label),
        };
        let resumed = NonNull::from(context.waker());
        let guarded = running.guarded(&this.stacks, &this.label);
        match overflow::watched(&guarded, || running.coroutine.resume(resumed)) {
            CoroutineResult::Yield(()) => Poll::Pending,
            CoroutineResult::Return(()) => {
                if let CoroutineState::Running(running) = mem::replace(&mut this.state, CoroutineState::Ended)
                {
                    this.stacks.release(running.coroutine.into_stack());
                }
                Poll::Ready(())
            }
        }
    }
}

/// A body is moved to its stack, and never pinned.
impl<B> Unpin for Coroutine<B> {}

impl<B> Drop for Coroutine<B> {
    /// Unwinds the stack, and releases it even if that panics; the panic then continues.
    fn drop(&mut self) {
        match mem::replace(&mut self.state, CoroutineState::Ended) {
            CoroutineState::Fresh(_, None) | CoroutineState::Ended => {}
            CoroutineState::Fresh(_, Some(ticket)) => self.stacks.cancel(ticket),
            CoroutineState::Running(mut running) => {
                let guarded = running.guarded(&self.stacks, &self.label);
                let unwind = || overflow::watched(&guarded, || running.coroutine.force_unwind());
                let unwound = catch_unwind(AssertUnwindSafe(unwind));
                self.stacks.release(running.coroutine.into_stack());
                if let Err(panic) = unwound
                    && !thread::panicking()
                {
                    resume_unwind(panic);
                }
            }
        }
    }
}

impl<B> fmt::Debug for Coroutine<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coroutine").field("label", &self.label).finish_non_exhaustive()
    }
}

impl OnStack {
    /// Starts a body on a stack; boxes a large one.
    fn new<B: FnOnce(&Suspend<'_>) + 'static>(stack: ArenaStack, body: B) -> Self {
        if size_of::<B>() <= BODY_BYTES_MAX {
            return Self::with(stack, body);
        }
        let body = Box::new(body);
        Self::with(stack, move |suspend: &Suspend<'_>| body(suspend))
    }

    fn with<B: FnOnce(&Suspend<'_>) + 'static>(stack: ArenaStack, body: B) -> Self {
        let limit = stack.limit().get();
        let coroutine = corosensei::Coroutine::with_stack(stack, move |yielder, resumed| {
            // SAFETY: only `Coroutine::poll` resumes it, with the waker of the poll's context, which is
            // borrowed until the poll returns.
            let suspend = unsafe { Suspend::new(yielder, resumed) };
            body(&suspend);
        });
        Self { coroutine, limit }
    }

    fn guarded<'a>(&self, stacks: &Stacks, label: &'a str) -> Guarded<'a> {
        Guarded { limit: self.limit, stack_bytes: stacks.stack_bytes(), label }
    }
}

/// The argument of resuming a coroutine: its task's waker, valid until it suspends.
type Resumed = NonNull<Waker>;

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
    unsafe fn new(yielder: &'a Yielder<Resumed, ()>, resumed: Resumed) -> Self {
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
