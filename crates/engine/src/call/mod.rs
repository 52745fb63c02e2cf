//! A request whose handler may wait: what the handler holds of it.
//!
//! [`Call`] is the handler's side, [`Exchange`] what it shares with its worker, [`Calls`] what a worker keeps for all of them.

mod body;
mod calls;
mod exchange;
mod peers;
mod stream;

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use shearwater_http1::{Head, Method};
use shearwater_tasks::{Sleep, Timers};

use crate::context::{decoded, state_of};
use crate::request::{ConnectionId, KEEP_IT, THROWN_AWAY};
use crate::response::{Parts, Response};

pub(crate) use calls::{Around, Calls, Later};
pub(crate) use exchange::{Exchange, Progress};
pub use stream::Gone;

/// A request and its answer, in the hands of a handler that may wait: an async one or a coroutine.
///
/// It owns a copy of the head, so it may be kept across every wait. The answer is what [`response`](Self::response) holds when the
/// `Call` is dropped, or what [`begin`](Self::begin) and [`send`](Self::send) have sent by then. It stays on its worker's thread.
///
/// It belongs to the future (or the coroutine) that it was given to: what others do with it is seen when that is polled next.
///
/// That future is dropped when the connection is broken, or when its body turns out to be malformed, too large or too slow before
/// the answer was begun (the client is told `400`, `413` or `408` then). A client that has only ended its side may be waiting for the answer, and
/// nothing tells it from one that is gone until something is sent: the future is dropped when nothing was for
/// [`Timeouts::half_closed_ms`](crate::Timeouts::half_closed_ms), or at once: see [`end_with_client`](Self::end_with_client).
pub struct Call {
    exchange: Rc<Exchange>,
    /// The answer that is being built. Taken away when it is complete.
    parts: Option<Box<Parts>>,
    /// The piece of the body that was read last.
    piece: Vec<u8>,
    timers: Rc<Timers>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("head", &self.head()).finish_non_exhaustive()
    }
}

impl Call {
    pub(crate) fn new(exchange: Rc<Exchange>, parts: Box<Parts>, timers: Rc<Timers>) -> Self {
        Self { exchange, parts: Some(parts), piece: Vec::new(), timers }
    }

    /// The head: method, target, version and fields.
    #[must_use]
    pub fn head(&self) -> Head<'_> {
        self.exchange.head()
    }

    /// The method (RFC 9110 section 9).
    #[must_use]
    pub fn method(&self) -> Method {
        self.head().method()
    }

    /// The target's path as it was sent, percent-encoding untouched: beneath a mount what follows its prefix, as
    /// [`Request::path`](crate::Request::path).
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.head().path();
        self.exchange.context().map_or(path, |context| path.get(context.mount_len()..).unwrap_or(""))
    }

    /// The value of a parameter of the route, as it was sent, percent-encoding untouched. `None` where the route has none of this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.exchange.context()?.param(name)
    }

    /// The same with its percent-encoding decoded, once: see [`Request::param_decoded`](crate::Request::param_decoded).
    #[must_use]
    pub fn param_decoded(&self, name: &str) -> Option<Cow<'_, str>> {
        decoded(self.param(name)?)
    }

    /// What the program has given to all workers of this type.
    ///
    /// # Panics
    /// Where it has given none: the client gets a `500`.
    #[must_use]
    #[track_caller]
    pub fn state<T: 'static>(&self) -> &T {
        state_of(self.exchange.context().and_then(|context| context.state(TypeId::of::<T>())), "state")
    }

    /// What this worker has of this type, made on its own thread.
    ///
    /// # Panics
    /// Where the program makes none: the client gets a `500`.
    #[must_use]
    #[track_caller]
    pub fn local<T: 'static>(&self) -> &T {
        state_of(self.exchange.context().and_then(|context| context.local(TypeId::of::<T>())), "local state")
    }

    /// The target's query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.head().query()
    }

    /// The body, which the [`BodyPolicy`](crate::BodyPolicy) `Buffer` keeps.
    ///
    /// # Panics
    /// If there was a body that was thrown away, or [comes while the handler runs](Self::read): the client gets a `500`.
    #[must_use]
    #[track_caller]
    pub fn body(&self) -> &[u8] {
        match self.kept_body() {
            Some(body) => body,
            None => panic!("{THROWN_AWAY}; help: {KEEP_IT}, or take it by `read` while it comes"),
        }
    }

    /// The body; `None` if there was one that was thrown away, or comes while the handler runs.
    #[must_use]
    pub fn kept_body(&self) -> Option<&[u8]> {
        self.exchange.kept_body()
    }

    /// The peer's address; `None` where it was already gone, or the connection is none of TCP's.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.exchange.peer()
    }

    /// The connection that it came by.
    #[must_use]
    pub fn connection(&self) -> ConnectionId {
        self.exchange.connection()
    }

    /// Milliseconds of the worker's own clock, as of this turn. It never goes back, and its zero means nothing.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.timers.now_ms()
    }

    /// The worker's timers, for waiting that isn't this call's alone.
    #[must_use]
    pub fn timers(&self) -> &Rc<Timers> {
        &self.timers
    }

    /// Waits. Timers are looked at once a turn, so it may be late by what a turn takes.
    #[must_use = "it waits when it is awaited"]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.timers.sleep(duration)
    }

    /// From now on a client that has ended its side counts as gone while its answer isn't complete: the future that holds this is dropped then,
    /// and the connection closed. Without it such a client still gets its answer, as HTTP allows, if that comes within
    /// [`Timeouts::half_closed_ms`](crate::Timeouts::half_closed_ms); a client that has closed its socket can't be told apart from it.
    pub fn end_with_client(&mut self) {
        self.exchange.end_with_client();
    }

    /// The part shared with the worker, and the response as it is built.
    pub(crate) fn exchange_and_response(&mut self) -> (&Exchange, Response<'_>) {
        (&self.exchange, Response::go_on(self.parts.get_or_insert_default()))
    }

    /// The answer as it is built: status, fields, body. After [`begin`](Self::begin) nothing that is set here is seen any more.
    pub fn response(&mut self) -> Response<'_> {
        Response::go_on(self.parts.get_or_insert_default())
    }
}

impl Drop for Call {
    /// The answer is complete.
    fn drop(&mut self) {
        self.exchange.end(self.parts.take());
    }
}
