//! Async handlers and coroutines, and how each worker calls them.

use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_engine::tasks::{Coroutine, StackOptions, Stacks};
use shearwater_engine::{Call, Request, Response};

use crate::CoroutineCall;

/// A worker's function that starts a deferred handler.
pub(crate) type DeferredHandler = Box<dyn Fn(&Request<'_>, &mut Response<'_>)>;

/// Creates a [`DeferredHandler`] on a worker's thread.
pub(crate) enum MakeDeferred {
    Async(MakeAsync),
    Coroutine(MakeCoroutine),
}

type MakeAsync = Box<dyn Fn() -> DeferredHandler + Send + Sync>;
type MakeCoroutine = Box<dyn Fn(&Rc<Stacks>) -> DeferredHandler + Send + Sync>;

/// Creates a worker's deferred handlers. Allocates stacks only if one of them is a coroutine.
///
/// # Panics
/// If the signal stack or handler for stack overflows can't be installed.
pub(crate) fn instantiate(all: &[MakeDeferred], options: StackOptions) -> Vec<DeferredHandler> {
    let has_coroutines = all.iter().any(|make| matches!(make, MakeDeferred::Coroutine(_)));
    let stacks = has_coroutines.then(|| {
        Stacks::new(options).unwrap_or_else(|error| panic!("can't prepare stacks for coroutines: {error}"))
    });
    let made = all.iter().filter_map(|make| match make {
        MakeDeferred::Async(make) => Some(make()),
        MakeDeferred::Coroutine(make) => stacks.as_ref().map(make),
    });
    made.collect()
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
    MakeDeferred::Async(Box::new(move || {
        // One reference count per worker, so that calls write to no memory shared between workers.
        let handler = Rc::new(Arc::clone(&handler));
        Box::new(move |request, response| {
            let handler = Rc::clone(&handler);
            response.defer(request, |mut call| async move {
                let outcome = handler(&mut call).await;
                finish(call, outcome);
            });
        })
    }))
}

/// Wraps a coroutine. `label` names it if its stack overflows.
pub(crate) fn coroutine<R: Outcome>(
    label: &str,
    handler: impl Fn(&mut CoroutineCall<'_>) -> R + Send + Sync + 'static,
) -> MakeDeferred {
    let (handler, label) = (Arc::new(handler), label.to_owned());
    MakeDeferred::Coroutine(Box::new(move |stacks| {
        let (handler, label, stacks) =
            (Rc::new(Arc::clone(&handler)), Rc::<str>::from(&*label), Rc::clone(stacks));
        Box::new(move |request, response| {
            let handler = Rc::clone(&handler);
            response.defer(request, |call| {
                Coroutine::new(&stacks, Rc::clone(&label), move |suspend| {
                    let mut line = CoroutineCall::new(call, suspend);
                    let outcome = handler(&mut line);
                    finish(line.into_call(), outcome);
                })
            });
        })
    }))
}
