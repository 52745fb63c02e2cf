//! Handlers that respond later: async handlers and coroutines, and how each worker calls them.

pub(crate) mod offload;

use std::cell::OnceCell;
use std::fmt::{self, Display};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use shearwater_engine::tasks::{Coroutine, StackOptions, Stacks, Suspend, yield_now};
use shearwater_engine::{Call, Gone, Request, Response};

pub use offload::{OFFLOAD_IDLE, OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX, OffloadPool, Offloaded, offload};

/// A worker's function that starts a deferred handler.
pub(crate) type DeferredHandler = Box<dyn Fn(&Request<'_>, &mut Response<'_>)>;

/// Creates a [`DeferredHandler`] on a worker's thread. The argument returns the worker's stacks for coroutines.
pub(crate) type MakeDeferred = Box<dyn Fn(&dyn Fn() -> Rc<Stacks>) -> DeferredHandler + Send + Sync>;

/// Creates a worker's deferred handlers, and its stacks if one of them is a coroutine.
///
/// # Panics
/// If the signal stack or handler for stack overflows can't be installed.
pub(crate) fn instantiate(
    all: &[MakeDeferred],
    options: StackOptions,
) -> (Vec<DeferredHandler>, Option<Rc<Stacks>>) {
    let stacks = OnceCell::new();
    let allocate = || {
        Stacks::new(options).unwrap_or_else(|error| panic!("can't prepare stacks for coroutines: {error}"))
    };
    let handlers = all.iter().map(|make| make(&|| Rc::clone(stacks.get_or_init(allocate)))).collect();
    (handlers, stacks.into_inner())
}

/// The result of a deferred handler: `()`, or a `Result` whose error is logged.
///
/// An error before the response was begun becomes a `500`; a later one closes the connection. The error's text goes to
/// the log, not to the client.
pub trait Outcome {
    /// Returns the message to log if the handler failed.
    fn failure(self) -> Option<String>;
}

impl Outcome for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Display> Outcome for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| format!("a handler has failed: {error}"))
    }
}

/// Completes the response, or cuts it off.
fn finish(call: Call, outcome: impl Outcome) {
    match outcome.failure() {
        None => drop(call),
        Some(message) => call.cut(message),
    }
}

/// Wraps an async handler.
pub(crate) fn asynchronous<R: Outcome>(
    handler: impl AsyncFn(&mut Call) -> R + Send + Sync + 'static,
) -> MakeDeferred {
    let handler = Arc::new(handler);
    Box::new(move |_| {
        // One reference count per worker, so that calls write to no memory shared between workers.
        let handler = Rc::new(Arc::clone(&handler));
        Box::new(move |request, response| {
            let handler = Rc::clone(&handler);
            response.defer(request, |mut call| async move {
                let outcome = handler(&mut call).await;
                finish(call, outcome);
            });
        })
    })
}

/// Wraps a coroutine. `label` names it if its stack overflows.
pub(crate) fn coroutine<R: Outcome>(
    label: &str,
    handler: impl Fn(&mut CoroutineCall<'_>) -> R + Send + Sync + 'static,
) -> MakeDeferred {
    let (handler, label) = (Arc::new(handler), label.to_owned());
    Box::new(move |stacks| {
        let (handler, label, stacks) = (Rc::new(Arc::clone(&handler)), Rc::<str>::from(&*label), stacks());
        Box::new(move |request, response| {
            let handler = Rc::clone(&handler);
            response.defer(request, |call| {
                Coroutine::new(&stacks, Rc::clone(&label), move |suspend| {
                    let mut call = CoroutineCall { call, suspend };
                    let outcome = handler(&mut call);
                    finish(call.call, outcome);
                })
            });
        })
    })
}

/// A [`Call`] whose waiting methods are plain functions, for [coroutines](crate::App::route_coroutine).
///
/// The worker serves other requests while the coroutine waits.
///
/// A coroutine runs on its own stack. It may be dropped while it waits, for example because its client has
/// disconnected: its stack is unwound then, as by a panic, which drops its values.
///
/// ```
/// use shearwater::{App, CoroutineCall};
/// use std::time::Duration;
///
/// let mut app = App::new();
/// app.get_coroutine("/slow", |line: &mut CoroutineCall| {
///     line.sleep(Duration::from_millis(100));
///     line.response().text("slow\n");
/// });
/// ```
pub struct CoroutineCall<'a> {
    call: Call,
    suspend: &'a Suspend<'a>,
}

impl fmt::Debug for CoroutineCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoroutineCall").field("call", &self.call).finish_non_exhaustive()
    }
}

impl CoroutineCall<'_> {
    /// Waits for a future and returns its output.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.suspend.wait(future)
    }

    /// Waits for the next piece of the body. See [`Call::read`].
    pub fn read(&mut self) -> Option<&[u8]> {
        let suspend = self.suspend;
        suspend.wait(self.call.read())
    }

    /// Waits for the whole body, if it has at most `bytes_max` bytes. See [`Call::read_to_end`].
    ///
    /// # Errors
    /// The bytes read so far, if the body is longer.
    pub fn read_to_end(&mut self, bytes_max: usize) -> Result<Vec<u8>, Vec<u8>> {
        self.suspend.wait(self.call.read_to_end(bytes_max))
    }

    /// Sends a piece of the response body, and waits while the client is behind. See [`Call::send`].
    ///
    /// # Errors
    /// [`Gone`] if the client has disconnected.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.suspend.wait(self.call.send(bytes))
    }

    /// Waits for a duration.
    pub fn sleep(&self, duration: Duration) {
        self.suspend.wait(self.call.sleep(duration));
    }

    /// Lets other tasks of the worker run.
    pub fn yield_now(&self) {
        self.suspend.wait(yield_now());
    }

    /// Runs blocking work on another thread, and waits for its result. See [`offload`](offload::offload).
    ///
    /// # Errors
    /// [`Offloaded`] if the queue is full or the work panicked.
    pub fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Offloaded> {
        self.suspend.wait(offload::offload(work))
    }
}

impl Deref for CoroutineCall<'_> {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.call
    }
}

impl DerefMut for CoroutineCall<'_> {
    fn deref_mut(&mut self) -> &mut Call {
        &mut self.call
    }
}
