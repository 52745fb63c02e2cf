//! Handlers that respond later: async functions and coroutines.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use shearwater_engine::tasks::{Coroutine, Sleep, StackOptions, Stacks};
use shearwater_engine::{BodyPolicy, Response};

use super::line::{Line, LineCall};
use super::{Kind, Prepared};
use crate::call::{Call, Discarded, Reading};
use crate::reply::Reply;

/// A worker's function that starts a deferred handler.
pub(crate) type DeferredHandler = Box<dyn Fn(&shearwater_engine::Request<'_>, &mut Response<'_>)>;

/// Creates a [`DeferredHandler`] on a worker's thread, for a route with this label and timeout.
pub(crate) type MakeDeferred<S> =
    Box<dyn Fn(&Worker<S>, &str, Option<Duration>) -> DeferredHandler + Send + Sync>;

/// The parts of a worker that its deferred handlers share.
pub(crate) struct Worker<S> {
    pub(crate) state: Rc<S>,
    options: StackOptions,
    /// Allocated if there is a coroutine.
    pub(crate) stacks: OnceCell<Rc<Stacks>>,
}

impl<S> Worker<S> {
    pub(crate) fn new(state: S, options: StackOptions) -> Self {
        Self { state: Rc::new(state), options, stacks: OnceCell::new() }
    }

    /// Returns its stacks for coroutines.
    ///
    /// # Panics
    /// If the signal stack or handler for stack overflows can't be installed.
    fn stacks(&self) -> Rc<Stacks> {
        let allocate = || {
            let stacks = Stacks::new(self.options);
            stacks.unwrap_or_else(|error| panic!("can't prepare stacks for coroutines: {error}"))
        };
        Rc::clone(self.stacks.get_or_init(allocate))
    }
}

/// A handler with its worker's state. One reference count per worker and handler, so that calls write to no memory shared
/// between workers.
struct Bound<F, S> {
    handler: Arc<F>,
    state: Rc<S>,
}

/// Creates an async handler. The request's body is discarded.
///
/// Its future runs on the worker's thread and needn't be `Send`. It may await anything that wakes its task; for timers use
/// `call.sleep`.
///
/// ```
/// use shearwater::{App, Call, get, later};
/// use std::time::Duration;
///
/// async fn slow(call: &mut Call) -> &'static str {
///     call.sleep(Duration::from_millis(100)).await;
///     "slow\n"
/// }
///
/// let app = App::new().route("/slow", get(later(slow)));
/// ```
pub fn later<S: 'static, R: Reply>(
    handler: impl AsyncFn(&mut Call<S>) -> R + Send + Sync + 'static,
) -> Prepared<S> {
    asynchronous::<S, Discarded, R>(handler, BodyPolicy::Discard)
}

/// Creates an async handler that reads the request's body as it arrives. See [`later`].
pub fn later_reading<S: 'static, R: Reply>(
    handler: impl AsyncFn(&mut Call<S, Reading>) -> R + Send + Sync + 'static,
) -> Prepared<S> {
    asynchronous::<S, Reading, R>(handler, BodyPolicy::Call)
}

fn asynchronous<S: 'static, B: 'static, R: Reply>(
    handler: impl AsyncFn(&mut Call<S, B>) -> R + Send + Sync + 'static,
    body: BodyPolicy,
) -> Prepared<S> {
    let handler = Arc::new(handler);
    let make: MakeDeferred<S> = Box::new(move |worker, _, timeout| {
        let bound = Rc::new(Bound { handler: Arc::clone(&handler), state: Rc::clone(&worker.state) });
        match timeout {
            None => Box::new(move |request, response| {
                let bound = Rc::clone(&bound);
                response.defer(request, |call| async move {
                    let mut call = Call::new(call, Rc::clone(&bound.state));
                    let reply = (bound.handler)(&mut call).await;
                    call.finish(reply);
                });
            }),
            Some(timeout) => Box::new(move |request, response| {
                let bound = Rc::clone(&bound);
                response.defer(request, |call| async move {
                    let late = call.sleep(timeout);
                    let mut call = Call::new(call, Rc::clone(&bound.state));
                    match in_time((bound.handler)(&mut call), late).await {
                        Some(reply) => call.finish(reply),
                        None => call.time_out(),
                    }
                });
            }),
        }
    });
    Prepared { handler: Kind::Deferred(make), body }
}

/// Creates a coroutine: straight-line code that may wait. The request's body is discarded. See [`Line`].
pub fn line<S: 'static, R: Reply>(
    handler: impl Fn(&mut Line<'_, S>) -> R + Send + Sync + 'static,
) -> Prepared<S> {
    coroutine::<S, Discarded, R>(handler, BodyPolicy::Discard)
}

/// Creates a coroutine that reads the request's body as it arrives. See [`Line`].
pub fn line_reading<S: 'static, R: Reply>(
    handler: impl Fn(&mut Line<'_, S, Reading>) -> R + Send + Sync + 'static,
) -> Prepared<S> {
    coroutine::<S, Reading, R>(handler, BodyPolicy::Call)
}

fn coroutine<S: 'static, B: 'static, R: Reply>(
    handler: impl Fn(&mut Line<'_, S, B>) -> R + Send + Sync + 'static,
    body: BodyPolicy,
) -> Prepared<S> {
    let handler = Arc::new(handler);
    let make: MakeDeferred<S> = Box::new(move |worker, label, timeout| {
        let (label, stacks) = (Rc::<str>::from(label), worker.stacks());
        let bound = Rc::new(Bound { handler: Arc::clone(&handler), state: Rc::clone(&worker.state) });
        let begin = move |call: shearwater_engine::Call, is_late: Option<Rc<Cell<bool>>>| {
            let bound = Rc::clone(&bound);
            let call = LineCall { call: Call::new(call, Rc::clone(&bound.state)), is_late };
            Coroutine::new(&stacks, Rc::clone(&label), move |suspend| {
                let mut line = Line::new(call, suspend);
                let reply = (bound.handler)(&mut line);
                line.finish(reply);
            })
        };
        match timeout {
            None => Box::new(move |request, response| response.defer(request, |call| begin(call, None))),
            Some(timeout) => Box::new(move |request, response| {
                response.defer(request, |call| {
                    let (late, is_late) = (call.sleep(timeout), Rc::new(Cell::new(false)));
                    let coroutine = begin(call, Some(Rc::clone(&is_late)));
                    async move {
                        let mut coroutine = coroutine;
                        if in_time(&mut coroutine, late).await.is_none() {
                            is_late.set(true);
                        }
                    }
                });
            }),
        }
    });
    Prepared { handler: Kind::Deferred(make), body }
}

/// Awaits a future until a sleep ends; returns `None` then.
async fn in_time<F: Future>(future: F, mut late: Sleep) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut late).poll(cx).map(|()| None),
    })
    .await
}
