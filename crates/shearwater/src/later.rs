//! Handlers that wait: async ones and coroutines, as each worker calls them.

use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_engine::tasks::{Coroutine, StackOptions, Stacks};
use shearwater_engine::{Call, Request, Response};

use crate::Line;

/// A worker's own way to call a handler.
pub(crate) type CallLater = Box<dyn Fn(&Request<'_>, &mut Response<'_>)>;

/// Makes it, on the worker's thread.
pub(crate) enum MakeLater {
    Async(MakeAsync),
    Coroutine(MakeCoroutine),
}

type MakeAsync = Box<dyn Fn() -> CallLater + Send + Sync>;
type MakeCoroutine = Box<dyn Fn(&Rc<Stacks>) -> CallLater + Send + Sync>;

/// A worker's own ways to call the handlers of all routes that may wait. Only where one of them is a coroutine there are stacks.
///
/// # Panics
/// Where the system has no memory for the handler of overflows, or no signal.
pub(crate) fn made(all: &[MakeLater], options: StackOptions) -> Vec<CallLater> {
    let has_coroutines = all.iter().any(|make| matches!(make, MakeLater::Coroutine(_)));
    let stacks = has_coroutines.then(|| {
        Stacks::new(options).unwrap_or_else(|error| panic!("coroutines can't have stacks here: {error}"))
    });
    let made = all.iter().filter_map(|make| match make {
        MakeLater::Async(make) => Some(make()),
        MakeLater::Coroutine(make) => stacks.as_ref().map(make),
    });
    made.collect()
}

/// What a handler that waits may end with: nothing, or a `Result` whose error says why its answer can't be completed.
///
/// An error before the answer was begun is a `500`; one behind that cuts the answer off. The client isn't told why, the operator is.
pub trait Outcome {
    /// Why it has failed, if it has.
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

/// The answer is complete, or can't be.
fn end(call: Call, outcome: impl Outcome) {
    match outcome.failure() {
        None => drop(call),
        Some(why) => call.cut(why),
    }
}

/// Of an async handler.
pub(crate) fn asynchronous<R: Outcome>(
    handler: impl AsyncFn(&mut Call) -> R + Send + Sync + 'static,
) -> MakeLater {
    let handler = Arc::new(handler);
    MakeLater::Async(Box::new(move || {
        // Counted per worker: calls touch nothing that another worker writes to.
        let handler = Rc::new(Arc::clone(&handler));
        Box::new(move |request, response| {
            let handler = Rc::clone(&handler);
            response.later(request, |mut call| async move {
                let outcome = handler(&mut call).await;
                end(call, outcome);
            });
        })
    }))
}

/// Of a coroutine. `label` says which one it was if its stack overflows.
pub(crate) fn coroutine<R: Outcome>(
    label: &str,
    handler: impl Fn(&mut Line<'_>) -> R + Send + Sync + 'static,
) -> MakeLater {
    let (handler, label) = (Arc::new(handler), label.to_owned());
    MakeLater::Coroutine(Box::new(move |stacks| {
        let (handler, label, stacks) =
            (Rc::new(Arc::clone(&handler)), Rc::<str>::from(&*label), Rc::clone(stacks));
        Box::new(move |request, response| {
            let handler = Rc::clone(&handler);
            response.later(request, |call| {
                Coroutine::new(&stacks, Rc::clone(&label), move |suspend| {
                    let mut line = Line::new(call, suspend);
                    let outcome = handler(&mut line);
                    end(line.into_call(), outcome);
                })
            });
        })
    }))
}
