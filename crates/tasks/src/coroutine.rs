//! A coroutine: straight-line code on a stack of its own, which is a future to who polls it.

#![expect(unsafe_code, reason = "a body is told that what it is resumed with is there until it suspends")]

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
/// It takes a stack at its first poll and gives it back at its end. Dropped in between, its stack is unwound: what lies on it is dropped as by a panic.
/// A stack that overflows ends the process, with the label and the stack's size on standard error.
///
/// Its body runs on one thread, among other coroutines: what it finds in a thread-local may have changed behind each
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
    /// At its end.
    Ended,
}

struct Running {
    coroutine: corosensei::Coroutine<Resumed, (), (), DefaultStack>,
    /// The stack's lowest address.
    limit: usize,
}

impl<B: FnOnce(&Suspend<'_>) + 'static> Coroutine<B> {
    /// A coroutine that will run `body`. `label` says which one it was if its stack overflows.
    pub fn new(stacks: &Rc<Stacks>, label: Rc<str>, body: B) -> Self {
        Self { stacks: Rc::clone(stacks), label, state: State::Fresh(body, None) }
    }

    /// Puts the body on a stack; gives it back where there is none yet.
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
    /// With what the body panics; when the system has no memory for a stack and none can come back; when it has ended.
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
                    this.stacks.give_back(running.coroutine.into_stack());
                }
                Poll::Ready(())
            }
        }
    }
}

/// A body is moved when it is put on its stack, and never pinned.
impl<B> Unpin for Coroutine<B> {}

impl<B> Drop for Coroutine<B> {
    /// Unwinds the stack, and gives it back also where something panics on it; that panic goes on then.
    fn drop(&mut self) {
        match mem::replace(&mut self.state, State::Ended) {
            State::Fresh(_, None) | State::Ended => {}
            State::Fresh(_, Some(ticket)) => self.stacks.leave(ticket),
            State::Running(mut running) => {
                let guarded = running.guarded(&self.stacks, &self.label);
                let unwind = || overflow::watched(&guarded, || running.coroutine.force_unwind());
                let unwound = catch_unwind(AssertUnwindSafe(unwind));
                self.stacks.give_back(running.coroutine.into_stack());
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
    /// Puts a body on a stack; one that would take much of it by a box.
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
            // SAFETY: it is resumed by `Coroutine::poll` alone, with the waker of the poll's context, which is borrowed until the poll returns.
            let suspend = unsafe { Suspend::new(yielder, resumed) };
            body(&suspend);
        });
        Self { coroutine, limit }
    }

    fn guarded<'a>(&self, stacks: &Stacks, label: &'a str) -> Guarded<'a> {
        Guarded { limit: self.limit, stack_bytes: stacks.stack_bytes(), label }
    }
}
