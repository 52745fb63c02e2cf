//! Deferred requests: the handler's side and its shared state.
//!
//! [`Call`] is the handler's side, [`Exchange`] is shared with its worker, [`Calls`] is the worker's state
//! for all of them.

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
use crate::response::{Response, ResponseDraft};

pub(crate) use calls::{Calls, Deferred, Inherited};
pub(crate) use exchange::{Exchange, Progress};
pub use stream::Gone;

/// A request and its response for an async handler or a coroutine.
///
/// It owns a copy of the head, so it may be kept across awaits. Dropping it sends the response as set by
/// [`response`](Self::response), or ends the stream of [`begin`](Self::begin) and [`send`](Self::send). It
/// stays on its worker's thread.
///
/// It belongs to the future or coroutine that received it: changes from elsewhere take effect when that is
/// polled next.
///
/// The future is dropped when the connection breaks, or when the body is malformed, too large or too slow
/// before the response has begun (the client gets a `400`, `413` or `408`). A client that has sent a FIN may
/// still wait for the response or be gone: the future is dropped after
/// [`Timeouts::half_closed_ms`](crate::Timeouts::half_closed_ms) without a send, or at once with
/// [`end_with_client`](Self::end_with_client).
pub struct Call {
    exchange: Rc<Exchange>,
    /// Response under construction; `None` once it is complete.
    draft: Option<Box<ResponseDraft>>,
    /// Piece of the body that was read last.
    piece: Vec<u8>,
    timers: Rc<Timers>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("head", &self.head()).finish_non_exhaustive()
    }
}

impl Call {
    pub(crate) fn new(exchange: Rc<Exchange>, draft: Box<ResponseDraft>, timers: Rc<Timers>) -> Self {
        Self { exchange, draft: Some(draft), piece: Vec::new(), timers }
    }

    /// Returns the head: method, target, version and fields.
    #[must_use]
    pub fn head(&self) -> Head<'_> {
        self.exchange.head()
    }

    /// Returns the method (RFC 9110 section 9).
    #[must_use]
    pub fn method(&self) -> Method {
        self.head().method()
    }

    /// Returns the target's path as it was sent, without decoding; below a mount the part after its prefix,
    /// as [`Request::path`](crate::Request::path).
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.head().path();
        self.exchange.context().map_or(path, |context| path.get(context.mount_len()..).unwrap_or(""))
    }

    /// Returns a route parameter as it was sent, without decoding. `None` if the route has none of this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.exchange.context()?.param(name)
    }

    /// Returns a route parameter decoded once: see [`Request::param_decoded`](crate::Request::param_decoded).
    #[must_use]
    pub fn param_decoded(&self, name: &str) -> Option<Cow<'_, str>> {
        decoded(self.param(name)?)
    }

    /// Returns the program's state of this type that all workers share.
    ///
    /// # Panics
    /// If there is none: the client gets a `500`.
    #[must_use]
    #[track_caller]
    pub fn state<T: 'static>(&self) -> &T {
        state_of(self.exchange.context().and_then(|context| context.state(TypeId::of::<T>())), "state")
    }

    /// Returns this worker's own state of this type, created on its thread.
    ///
    /// # Panics
    /// If there is none: the client gets a `500`.
    #[must_use]
    #[track_caller]
    pub fn local<T: 'static>(&self) -> &T {
        state_of(self.exchange.context().and_then(|context| context.local(TypeId::of::<T>())), "local state")
    }

    /// Returns the target's query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.head().query()
    }

    /// Returns the body, as buffered under [`BodyPolicy::Buffer`](crate::BodyPolicy::Buffer).
    ///
    /// # Panics
    /// If the body was discarded or [is received while the handler runs](Self::read): the client gets a
    /// `500`.
    #[must_use]
    #[track_caller]
    pub fn body(&self) -> &[u8] {
        match self.kept_body() {
            Some(body) => body,
            None => panic!("{THROWN_AWAY}; help: {KEEP_IT}, or read it by `read` as it arrives"),
        }
    }

    /// Returns the body; `None` if it was discarded or is received while the handler runs.
    #[must_use]
    pub fn kept_body(&self) -> Option<&[u8]> {
        self.exchange.kept_body()
    }

    /// Returns the client's address; `None` if it was already disconnected, or on a Unix-domain socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.exchange.peer()
    }

    /// Returns the connection of the request.
    #[must_use]
    pub fn connection(&self) -> ConnectionId {
        self.exchange.connection()
    }

    /// Returns the milliseconds of the worker's monotonic clock as of this turn. Its zero is arbitrary.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.timers.now_ms()
    }

    /// Returns the worker's timers, for waiting beyond this call.
    #[must_use]
    pub fn timers(&self) -> &Rc<Timers> {
        &self.timers
    }

    /// Sleeps. Timers are checked once a turn, so it may be late by a turn's duration.
    #[must_use = "it waits when it is awaited"]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.timers.sleep(duration)
    }

    /// Drops the future and closes the connection as soon as the client sends a FIN before its response is
    /// complete. Otherwise such a client still gets its response, as HTTP allows, if that takes no longer
    /// than [`Timeouts::half_closed_ms`](crate::Timeouts::half_closed_ms); a closed socket can't be
    /// distinguished from it.
    pub fn end_with_client(&mut self) {
        self.exchange.end_with_client();
    }

    /// Returns the shared state, and the response under construction.
    pub(crate) fn exchange_and_response(&mut self) -> (&Exchange, Response<'_>) {
        (&self.exchange, Response::resume(self.draft.get_or_insert_default()))
    }

    /// Returns the response under construction: status, fields, body. Changes after [`begin`](Self::begin)
    /// have no effect.
    pub fn response(&mut self) -> Response<'_> {
        Response::resume(self.draft.get_or_insert_default())
    }
}

impl Drop for Call {
    /// Completes the response.
    fn drop(&mut self) {
        self.exchange.end(self.draft.take());
    }
}
