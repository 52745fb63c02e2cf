//! Handlers as values: constants, functions, async functions and coroutines, and how each worker calls them.

mod deferred;
mod line;
pub(crate) mod offload;

use std::fmt;

use shearwater_engine::{BodyPolicy, Response};

pub(crate) use deferred::{DeferredHandler, MakeDeferred, Worker};
pub use deferred::{later, later_reading, line, line_reading};
pub use line::{Line, LineBody};
pub use offload::{OFFLOAD_IDLE, OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX, OffloadPool, Offloaded, offload};

use crate::fast::Fast;
use crate::reply::Reply;
use crate::request::Request;

/// A function that responds at once.
pub(crate) type SyncHandler<S> =
    Box<dyn Fn(&shearwater_engine::Request<'_>, &mut Response<'_>, &S) + Send + Sync>;

/// A handler of an app with the state `S`.
///
/// | handler | written as | body of the request |
/// |---|---|---|
/// | constant, encoded once | `"text"`, a `String`, [`Fast`] | discarded |
/// | function | `Fn(&Request<S>) -> impl Reply` | discarded |
/// | function without allocation | `Fn(&Request<S>, &mut Response)` | discarded |
/// | function of the body | [`buffered`]`(bytes_max, …)` | buffered |
/// | async | [`later`]`(async \|call: &mut Call<S>\| …)` | discarded |
/// | async, reads | [`later_reading`]`(async \|call: &mut Call<S, Reading>\| …)` | as it arrives |
/// | coroutine | [`line()`](line())`(\|line: &mut Line<S>\| …)` | discarded |
/// | coroutine, reads | [`line_reading`]`(\|line: &mut Line<S, Reading>\| …)` | as it arrives |
///
/// `K` is the handler's kind, which the compiler finds. The parameters of a closure need their types.
#[diagnostic::on_unimplemented(
    message = "this is not a handler of an app with the state `{S}`",
    label = "not a handler",
    note = "a handler is a constant, `fn(&Request<{S}>) -> impl Reply`, `fn(&Request<{S}>, &mut Response)`, or made by `buffered`, \
            `later`, `later_reading`, `line` or `line_reading`",
    note = "an async function needs `later`; what a function may return is listed at `Reply`"
)]
pub trait Handler<S, K> {
    /// Returns it in the form in which a route keeps it.
    fn prepare(self) -> Prepared<S>;
}

/// A handler and how it receives request bodies: a [`Handler`] itself.
pub struct Prepared<S> {
    pub(crate) handler: Kind<S>,
    pub(crate) body: BodyPolicy,
}

impl<S> fmt::Debug for Prepared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("body", &self.body).finish_non_exhaustive()
    }
}

pub(crate) enum Kind<S> {
    Sync(SyncHandler<S>),
    Deferred(MakeDeferred<S>),
    Fast(Fast),
}

impl<S> Prepared<S> {
    fn sync(handler: SyncHandler<S>) -> Self {
        Self { handler: Kind::Sync(handler), body: BodyPolicy::Discard }
    }
}

/// Kinds of handlers, for the compiler.
#[doc(hidden)]
pub mod kinds {
    use std::marker::PhantomData;

    #[derive(Debug)]
    pub struct Constant;
    #[derive(Debug)]
    pub struct Returns<R>(PhantomData<R>);
    #[derive(Debug)]
    pub struct Writes;
    #[derive(Debug)]
    pub struct Made;
}

impl<S> Handler<S, kinds::Made> for Prepared<S> {
    fn prepare(self) -> Self {
        self
    }
}

impl<S> Handler<S, kinds::Constant> for Fast {
    fn prepare(self) -> Prepared<S> {
        Prepared { handler: Kind::Fast(self), body: BodyPolicy::Discard }
    }
}

impl<S> Handler<S, kinds::Constant> for &'static str {
    fn prepare(self) -> Prepared<S> {
        Fast::text(self).prepare()
    }
}

impl<S> Handler<S, kinds::Constant> for String {
    fn prepare(self) -> Prepared<S> {
        Fast::text(self).prepare()
    }
}

impl<S: 'static, R: Reply, F> Handler<S, kinds::Returns<R>> for F
where
    F: Fn(&Request<'_, S>) -> R + Send + Sync + 'static,
{
    fn prepare(self) -> Prepared<S> {
        Prepared::sync(Box::new(move |request, response, state| {
            reply(self(&Request::new(request, state)), response);
        }))
    }
}

impl<S: 'static, F> Handler<S, kinds::Writes> for F
where
    F: Fn(&Request<'_, S>, &mut Response<'_>) + Send + Sync + 'static,
{
    fn prepare(self) -> Prepared<S> {
        Prepared::sync(Box::new(move |request, response, state| {
            self(&Request::new(request, state), response);
        }))
    }
}

/// A function of a request and its body, for [`buffered`].
#[diagnostic::on_unimplemented(
    message = "this is not a handler with a body for an app with the state `{S}`",
    label = "not a handler with a body",
    note = "it is `fn(&Request<{S}>, &[u8]) -> impl Reply` or `fn(&Request<{S}>, &[u8], &mut Response)`"
)]
pub trait BodyHandler<S, K>: Send + Sync + 'static {
    /// Responds.
    fn respond(&self, request: &Request<'_, S>, body: &[u8], response: &mut Response<'_>);
}

impl<S, R: Reply, F> BodyHandler<S, kinds::Returns<R>> for F
where
    F: Fn(&Request<'_, S>, &[u8]) -> R + Send + Sync + 'static,
{
    fn respond(&self, request: &Request<'_, S>, body: &[u8], response: &mut Response<'_>) {
        reply(self(request, body), response);
    }
}

impl<S, F> BodyHandler<S, kinds::Writes> for F
where
    F: Fn(&Request<'_, S>, &[u8], &mut Response<'_>) + Send + Sync + 'static,
{
    fn respond(&self, request: &Request<'_, S>, body: &[u8], response: &mut Response<'_>) {
        self(request, body, response);
    }
}

/// Creates a handler that is called with the request's whole body, of at most `bytes_max` bytes. A longer one is rejected
/// with `413`.
///
/// ```
/// use shearwater::{App, Request, Status, buffered, post};
///
/// fn add(_: &Request, note: &[u8]) -> (Status, String) {
///     (Status::CREATED, format!("{} bytes\n", note.len()))
/// }
///
/// let app = App::new().route("/notes", post(buffered(64 * 1024, add)));
/// ```
pub fn buffered<S: 'static, K>(bytes_max: u64, handler: impl BodyHandler<S, K>) -> Prepared<S> {
    let handler: SyncHandler<S> = Box::new(move |request, response, state| {
        // A request without a body has an empty one.
        let body = request.kept_body().unwrap_or_default();
        handler.respond(&Request::new(request, state), body, response);
    });
    Prepared { body: BodyPolicy::Buffer { bytes_max }, ..Prepared::sync(handler) }
}

/// Responds with a handler's reply.
#[inline]
fn reply(reply: impl Reply, response: &mut Response<'_>) {
    if let Err(failure) = reply.reply(response) {
        failure.respond(response);
    }
}
