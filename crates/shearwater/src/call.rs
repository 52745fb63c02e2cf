//! A request and its response for an async handler.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;
use std::str::FromStr;

use shearwater_engine::{Gone, HandedOver, Response};

use crate::reply::{Failure, Head, Reply, Status};
use crate::request;

/// Marks a [`Call`] whose handler doesn't read the body: it was discarded.
#[derive(Debug, Clone, Copy)]
pub struct Discarded;

/// Marks a [`Call`] whose handler reads the body as it arrives: see [`later_reading`](crate::later_reading).
#[derive(Debug, Clone, Copy)]
pub struct Reading;

/// A request and its response, for handlers that may wait: see [`later`](crate::later).
///
/// It owns a copy of the head, so it may be kept across awaits. It also has the methods of
/// [`engine::Call`](crate::engine::Call) that take `&self`: `head`, `path`, `sleep`, `client`, …
///
/// The handler is dropped when the connection breaks. So it is when the body is malformed, too large or too slow and the
/// response hasn't begun: the client gets a `400`, `413` or `408`. A client that has sent a FIN may still wait for the
/// response or be gone: the handler is dropped after [`Timeouts::half_closed_ms`](crate::Timeouts::half_closed_ms) without a
/// send, or at once with [`end_with_client`](Self::end_with_client).
pub struct Call<S = (), B = Discarded> {
    call: shearwater_engine::Call,
    state: Rc<S>,
    stream: Stream,
    body: PhantomData<B>,
}

/// Progress of a streamed response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    None,
    Begun,
    Ended,
    /// Begun again: what belongs to which is lost.
    Broken,
}

impl<S, B> fmt::Debug for Call<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl<S, B> Deref for Call<S, B> {
    type Target = shearwater_engine::Call;

    fn deref(&self) -> &Self::Target {
        &self.call
    }
}

impl<S, B> Call<S, B> {
    pub(crate) fn new(call: shearwater_engine::Call, state: Rc<S>) -> Self {
        Self { call, state, stream: Stream::None, body: PhantomData }
    }

    /// Returns the worker's state: see [`App::with_state`](crate::App::with_state).
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Parses a route parameter: see [`Request::param`](crate::Request::param).
    ///
    /// # Errors
    /// As [`Request::param`](crate::Request::param).
    pub fn param<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, Failure> {
        request::param(self.call.param(name), name)
    }

    /// Returns a route parameter as it was sent. `None` if the route has no parameter of this name.
    #[must_use]
    pub fn param_raw(&self, name: &str) -> Option<&str> {
        self.call.param(name)
    }

    /// Returns the value of a header field: see [`Request::header`](crate::Request::header).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        request::header(self.call.head(), name)
    }

    /// Parses a parameter of the query: see [`Request::query`](crate::Request::query).
    ///
    /// # Errors
    /// As [`Request::query`](crate::Request::query).
    pub fn query<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Failure> {
        request::query(self.call.query(), name)
    }

    /// Returns the target's query as it was sent, without the question mark.
    #[must_use]
    pub fn query_raw(&self) -> Option<&str> {
        self.call.query()
    }

    /// Returns the response under construction, for a handler that returns `()`. The reply, or the head of
    /// [`begin`](Self::begin), changes it further.
    pub fn response(&mut self) -> Response<'_> {
        self.call.response()
    }

    /// Drops the handler as soon as its client sends a FIN: see
    /// [`engine::Call::end_with_client`](crate::engine::Call::end_with_client).
    pub fn end_with_client(&mut self) {
        self.call.end_with_client();
    }

    /// Upgrades the connection when the handler ends: see [`Response::upgrade`].
    pub fn upgrade(&mut self, protocol: &str, take: impl FnOnce(HandedOver) + 'static) {
        self.call.upgrade(protocol, take);
    }

    /// Sends the head now, and returns the body to stream.
    ///
    /// Its length is open unless the head [declares it](Head::length): the body is sent in chunks (RFC 9112 section 7.1),
    /// or ends with the connection for HTTP/1.0 clients. If the response has no body (for `HEAD`, or with `204`, `205` or
    /// `304`), the handler is dropped at its next await. A second stream breaks the response: it is cut off when the
    /// handler returns.
    pub fn begin(&mut self, head: Head) -> Body<'_, S, B> {
        let length = head.apply(&mut self.call.response());
        self.call.begin(length);
        self.stream = if self.stream == Stream::None { Stream::Begun } else { Stream::Broken };
        Body { call: &mut self.call, state: &self.state, stream: &mut self.stream, body: PhantomData }
    }

    /// Completes the response with a handler's reply.
    #[inline]
    pub(crate) fn finish(&mut self, reply: impl Reply) {
        if self.stream != Stream::None {
            return self.finish_stream(reply);
        }
        if let Err(failure) = reply.reply(&mut self.call.response()) {
            failure.respond(&mut self.call.response());
        }
    }

    #[inline(never)]
    fn finish_stream(&mut self, reply: impl Reply) {
        match reply.reply(&mut self.call.response()) {
            Err(failure) => self.call.cut_at_end(failure.report()),
            Ok(()) if self.stream == Stream::Begun => self.call.cut_at_end(UNENDED),
            Ok(()) if self.stream == Stream::Broken => self.call.cut_at_end(BEGUN_AGAIN),
            Ok(()) => {}
        }
    }

    /// Responds that the handler took too long.
    #[cold]
    pub(crate) fn time_out(&mut self) {
        match self.stream {
            Stream::None => {
                let failure = Failure::new(Status::SERVICE_UNAVAILABLE, "This took too long.");
                failure.respond(&mut self.call.response());
            }
            _ => self.call.cut_at_end("a handler has exceeded the timeout of its route"),
        }
    }
}

const UNENDED: &str = "a handler has begun a stream and not ended it; help: return `body.end()`";
const BEGUN_AGAIN: &str = "a handler has begun a second stream; help: begin one";

impl<S> Call<S, Reading> {
    /// Returns the next piece of the body, never empty; `None` at its end.
    ///
    /// The body is received no faster than it is read: see [`engine::Call::read`](crate::engine::Call::read).
    pub async fn read(&mut self) -> Option<&[u8]> {
        self.call.read().await
    }

    /// Returns the whole body, if it has at most `bytes_max` bytes.
    ///
    /// # Errors
    /// The part that was read if it is longer; reading may continue.
    pub async fn read_to_end(&mut self, bytes_max: usize) -> Result<Vec<u8>, Vec<u8>> {
        self.call.read_to_end(bytes_max).await
    }
}

/// The body of a response that is streamed: see [`Call::begin`]. [`end`](Self::end) completes it.
///
/// If it is dropped before, the response is cut off.
pub struct Body<'a, S = (), B = Discarded> {
    call: &'a mut shearwater_engine::Call,
    state: &'a S,
    stream: &'a mut Stream,
    body: PhantomData<B>,
}

impl<S, B> fmt::Debug for Body<'_, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<S, B> Deref for Body<'_, S, B> {
    type Target = shearwater_engine::Call;

    fn deref(&self) -> &Self::Target {
        self.call
    }
}

impl<'a, S, B> Body<'a, S, B> {
    /// Returns the worker's state.
    #[must_use]
    pub fn state(&self) -> &'a S {
        self.state
    }

    /// Sends a piece; waits until there is room for it.
    ///
    /// # Errors
    /// [`Gone`], if the client is disconnected. Usually the worker drops the handler instead.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Gone> {
        self.call.send(bytes.as_ref()).await
    }

    /// Queues a piece, whether or not there is room.
    pub fn push(&mut self, bytes: impl AsRef<[u8]>) {
        self.call.push(bytes.as_ref());
    }

    /// Adds a trailer field (RFC 9110 section 6.5): see
    /// [`engine::Call::push_trailer`](crate::engine::Call::push_trailer).
    pub fn trailer(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        self.call.push_trailer(name, value);
        self
    }

    /// Completes the body, once the handler returns: an error instead cuts it off.
    #[must_use = "return it from the handler"]
    pub fn end(self) -> Sent {
        if *self.stream == Stream::Begun {
            *self.stream = Stream::Ended;
        }
        Sent(())
    }
}

impl<S> Body<'_, S, Reading> {
    /// Returns the next piece of the request's body: see [`Call::read`].
    pub async fn read(&mut self) -> Option<&[u8]> {
        self.call.read().await
    }
}

/// The reply of a handler whose response was streamed: only [`Body::end`] makes one.
#[derive(Debug)]
pub struct Sent(());

impl Reply for Sent {
    fn reply(self, _: &mut Response<'_>) -> Result<(), Failure> {
        Ok(())
    }
}
