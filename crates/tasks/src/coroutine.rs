//! Coroutines: straight-line code on its own stack, polled as a future.

#![expect(unsafe_code, reason = "passes a body a pointer that is valid until it suspends")]

use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::thread;

use corosensei::CoroutineResult;
use corosensei::stack::{DefaultStack, Stack};

use crate::limits::BODY_BYTES_MAX;
use crate::overflow::{self, Guarded};
use crate::stacks::{Stacks, Ticket};
use crate::suspend::{Resumed, Suspend};

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
    state: State<B>,
}

enum State<B> {
    /// Not polled yet, or waiting for a stack.
    Fresh(B, Option<Ticket>),
    /// On its stack.
    Running(Running),
    /// Ended.
    Ended,
}

struct Running {
    coroutine: corosensei::Coroutine<Resumed, (), (), DefaultStack>,
    /// The stack's lowest address.
    limit: usize,
}

impl<B: FnOnce(&Suspend<'_>) + 'static> Coroutine<B> {
    /// Creates a coroutine that will run `body`. `label` identifies it if its stack overflows.
    pub fn new(stacks: &Rc<Stacks>, label: Rc<str>, body: B) -> Self {
        Self { stacks: Rc::clone(stacks), label, state: State::Fresh(body, None) }
    }

    /// Starts the body on a stack, or puts it back if there is none yet.
    fn start(&mut self, context: &Context<'_>) {
        let State::Fresh(body, ticket) = mem::replace(&mut self.state, State::Ended) else { return };
        self.state = match self.stacks.lend(ticket, context.waker()) {
            Ok(Ok(stack)) => State::Running(Running::new(stack, body)),
            Ok(Err(ticket)) => State::Fresh(body, Some(ticket)),
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
        if matches!(this.state, State::Fresh(..)) {
            this.start(context);
        }
        let running = match &mut this.state {
            State::Running(running) => running,
            State::Fresh(..) => return Poll::Pending,
            State::Ended => panic!("coroutine {} was polled after its end", this.label),
        };
        let resumed = NonNull::from(context.waker());
        let guarded = running.guarded(&this.stacks, &this.label);
        match overflow::watched(&guarded, || running.coroutine.resume(resumed)) {
            CoroutineResult::Yield(()) => Poll::Pending,
            CoroutineResult::Return(()) => {
                if let State::Running(running) = mem::replace(&mut this.state, State::Ended) {
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
        match mem::replace(&mut self.state, State::Ended) {
            State::Fresh(_, None) | State::Ended => {}
            State::Fresh(_, Some(ticket)) => self.stacks.cancel(ticket),
            State::Running(mut running) => {
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

impl Running {
    /// Starts a body on a stack; boxes a large one.
    fn new<B: FnOnce(&Suspend<'_>) + 'static>(stack: DefaultStack, body: B) -> Self {
        if size_of::<B>() <= BODY_BYTES_MAX {
            return Self::with(stack, body);
        }
        let body = Box::new(body);
        Self::with(stack, move |suspend: &Suspend<'_>| body(suspend))
    }

    fn with<B: FnOnce(&Suspend<'_>) + 'static>(stack: DefaultStack, body: B) -> Self {
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
