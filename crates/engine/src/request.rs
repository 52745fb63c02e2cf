//! A request as a handler sees it.

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;

use shearwater_http1::{Head, Method};
use shearwater_io::{Driver, Token};

use crate::context::{Context, decoded, state_of};

/// The message for a handler that asks for a body that isn't there.
pub(crate) const THROWN_AWAY: &str = "the body of this request was not kept";
/// The help beside it.
pub(crate) const KEEP_IT: &str = "put `.buffer(bytes_max)` on its route (in a service: `BodyPolicy::Buffer`)";

/// A complete request, borrowed from the worker for the time of the call.
pub struct Request<'a> {
    head: Head<'a>,
    /// `None` if there was a body that nobody kept.
    body: Option<&'a [u8]>,
    turn: &'a dyn Turn,
    token: Token,
    context: Option<&'a dyn Context>,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("head", &self.head)
            .field("body_len", &self.body.map_or(0, <[u8]>::len))
            .finish_non_exhaustive()
    }
}

impl<'a> Request<'a> {
    pub(crate) fn new(head: Head<'a>, body: Option<&'a [u8]>, turn: &'a dyn Turn, token: Token) -> Self {
        Self { head, body, turn, token, context: None }
    }

    /// The same request with what a router knows of it, in the place of what one before has said.
    #[must_use]
    pub fn within<'b>(&'b self, context: &'b dyn Context) -> Request<'b> {
        let Self { head, body, turn, token, .. } = *self;
        Request { head, body, turn, token, context: Some(context) }
    }

    /// The head: method, target, version and fields.
    #[must_use]
    pub fn head(&self) -> Head<'a> {
        self.head
    }

    /// The body, which the [`BodyPolicy`](crate::BodyPolicy) `Buffer` keeps.
    ///
    /// # Panics
    /// If there was a body that was thrown away, or comes while the handler runs: the client gets a `500`.
    #[must_use]
    #[track_caller]
    pub fn body(&self) -> &'a [u8] {
        match self.body {
            Some(body) => body,
            None => panic!("{THROWN_AWAY}; help: {KEEP_IT}"),
        }
    }

    /// The body; `None` if there was one that was thrown away, or comes while the handler runs.
    #[must_use]
    pub fn kept_body(&self) -> Option<&'a [u8]> {
        self.body
    }

    /// The method (RFC 9110 section 9).
    #[must_use]
    pub fn method(&self) -> Method {
        self.head.method()
    }

    /// Returns true for a standard method, and for an extension that some route of the program has.
    #[must_use]
    pub fn is_method_known(&self) -> bool {
        self.method() != Method::Other
            || self.context.is_some_and(|context| context.knows_method(self.head.method_name()))
    }

    /// The target's path as it was sent, percent-encoding untouched. For a mounted service: what follows its prefix, which is nothing where the
    /// prefix itself is asked for; `head().path()` is all of it.
    #[must_use]
    pub fn path(&self) -> &'a str {
        let path = self.head.path();
        self.context.map_or(path, |context| path.get(context.mount_len()..).unwrap_or(""))
    }

    /// The prefix of the path that leads to the mounted service which answers: `/static`, for example. Empty where there is none.
    #[must_use]
    pub fn mount(&self) -> &'a str {
        let len = self.context.map_or(0, Context::mount_len);
        self.head.path().get(..len).unwrap_or("")
    }

    /// The value of a parameter of the route, as it was sent, percent-encoding untouched: `id` of `/user/{id}`. `None` where the route has no
    /// parameter of this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&'a str> {
        self.context?.param(name)
    }

    /// The value of a parameter with its percent-encoding decoded, once (RFC 3986 section 2.1): what was `%2F` is a slash now. Allocates
    /// where something is encoded. `None` where the route has no parameter of this name, or where what was sent is no percent-encoded
    /// UTF-8: then it names nothing.
    #[must_use]
    pub fn param_decoded(&self, name: &str) -> Option<Cow<'a, str>> {
        decoded(self.param(name)?)
    }

    /// What the program has given to all workers of this type.
    ///
    /// # Panics
    /// Where it has given none: the client gets a `500`.
    #[must_use]
    #[track_caller]
    pub fn state<T: 'static>(&self) -> &'a T {
        state_of(self.context.and_then(|context| context.state(TypeId::of::<T>())), "state")
    }

    /// What this worker has of this type, made on its own thread.
    ///
    /// # Panics
    /// Where the program makes none: the client gets a `500`.
    #[must_use]
    #[track_caller]
    pub fn local<T: 'static>(&self) -> &'a T {
        state_of(self.context.and_then(|context| context.local(TypeId::of::<T>())), "local state")
    }

    /// The target's query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.head.query()
    }

    /// The peer's address; `None` where the peer is already gone. Costs a system call on some drivers.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.turn.peer_of(self.token)
    }

    /// The connection that it came by.
    #[must_use]
    pub fn connection(&self) -> ConnectionId {
        ConnectionId::of(self.token)
    }

    pub(crate) fn context(&self) -> Option<&'a dyn Context> {
        self.context
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn turn(&self) -> &'a dyn Turn {
        self.turn
    }

    /// Seconds since 1970, as of this turn: what the answer's `Date` says.
    #[must_use]
    pub fn unix_seconds(&self) -> u64 {
        self.turn.unix_now()
    }

    /// Milliseconds of the worker's own clock, as of this turn. It never goes back, and its zero means nothing.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.turn.ms_now()
    }
}

/// A connection of a worker, for who keeps something of it from one request to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    slot: u32,
    generation: u32,
}

impl ConnectionId {
    pub(crate) fn of(token: Token) -> Self {
        Self { slot: token.slot() as u32, generation: token.generation() }
    }

    /// A small number that no other open connection of its worker has; one that is accepted later may get it again.
    #[must_use]
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

/// What a request can ask of the turn it is answered in: the driver, without its type.
pub(crate) trait Turn {
    fn peer_of(&self, token: Token) -> Option<SocketAddr>;
    fn unix_now(&self) -> u64;
    fn ms_now(&self) -> u64;
}

impl<D: Driver> Turn for D {
    fn peer_of(&self, token: Token) -> Option<SocketAddr> {
        self.peer(token).ok()
    }

    fn unix_now(&self) -> u64 {
        self.unix_seconds()
    }

    fn ms_now(&self) -> u64 {
        self.now_ms()
    }
}
