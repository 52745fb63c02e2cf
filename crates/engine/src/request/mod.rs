//! A request as a handler sees it.

pub(crate) mod guards;
pub(crate) mod refusal;
pub(crate) mod tls_session;

use std::fmt;
use std::net::SocketAddr;

use shearwater_http1::{Head, Method};
use shearwater_io::{Driver, Token};

use crate::proxies::Proxies;
use crate::request::guards::GuardPosition;
use crate::request::tls_session::TlsSession;
use crate::service::Context;

/// A complete request, borrowed from the worker during the call.
pub struct Request<'a> {
    head: Head<'a>,
    /// Its body; `None` if it was discarded or is still being received.
    body: Option<&'a [u8]>,
    driver: &'a dyn DriverView,
    /// Addresses behind trusted proxies, if there are any.
    proxies: Option<&'a Proxies>,
    token: Token,
    context: Option<&'a dyn Context>,
    pub(crate) guards: GuardPosition,
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
    pub(crate) fn new(
        head: Head<'a>,
        body: Option<&'a [u8]>,
        driver: &'a dyn DriverView,
        proxies: Option<&'a Proxies>,
        token: Token,
    ) -> Self {
        let guards = GuardPosition::default();
        Self { head, body, driver, proxies, token, context: None, guards }
    }

    /// Returns the same request with a router's context, which replaces an earlier one.
    #[must_use]
    pub fn within<'b>(&'b self, context: &'b dyn Context) -> Request<'b> {
        let Self { head, body, driver, proxies, token, guards, .. } = *self;
        Request { head, body, driver, proxies, token, context: Some(context), guards }
    }

    /// Returns the same request at this position in the guards of nested services.
    #[inline(always)]
    pub(crate) fn at(&self, guards: GuardPosition) -> Request<'a> {
        let Self { head, body, driver, proxies, token, context, .. } = *self;
        Request { head, body, driver, proxies, token, context, guards }
    }

    pub(crate) fn with_context(self, context: Option<&'a dyn Context>) -> Self {
        Self { context, ..self }
    }

    /// Returns the head: method, target, version and fields.
    #[must_use]
    pub fn head(&self) -> Head<'a> {
        self.head
    }

    /// Returns the body; `None` if it was discarded or is received while the handler runs.
    #[must_use]
    pub fn kept_body(&self) -> Option<&'a [u8]> {
        self.body
    }

    /// Returns the method (RFC 9110 section 9).
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

    /// Returns the target's path as it was sent, without decoding. For a mounted service it is the part after
    /// the mount's prefix, possibly empty; `head().path()` is the whole path.
    #[must_use]
    pub fn path(&self) -> &'a str {
        let path = self.head.path();
        self.context.map_or(path, |context| path.get(context.mount_len()..).unwrap_or(""))
    }

    /// Returns the path prefix of the mounted service that handles the request, for example `/static`; else
    /// an empty string.
    #[must_use]
    pub fn mount(&self) -> &'a str {
        let len = self.context.map_or(0, Context::mount_len);
        self.head.path().get(..len).unwrap_or("")
    }

    /// Returns a route parameter as it was sent, without decoding: `id` of `/user/{id}`. `None` if the route
    /// has no parameter of this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&'a str> {
        self.context?.param(name)
    }

    /// Returns the target's query, without the question mark.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.head.query()
    }

    /// Returns the client's address: that of the peer, or as [trusted proxies](crate::ProxyOptions) have passed it on.
    /// `None` if the peer is disconnected or a Unix-domain socket. The port is 0 if it isn't known.
    ///
    /// Costs a system call on some drivers, unless there are trusted proxies: then it reads the request's header.
    #[must_use]
    pub fn client(&self) -> Option<SocketAddr> {
        self.driver.client_of(self.token, &self.head, self.proxies)
    }

    /// Returns the address at the other end of the socket: the client's, or its proxy's. `None` if it is disconnected or a
    /// Unix-domain socket. Costs a system call on some drivers.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.driver.peer_of(self.token)
    }

    /// Returns true if the client has sent the request by TLS: to this server, or to a
    /// [trusted proxy](crate::ProxyOptions) that says so.
    ///
    /// A proxy says so in its PROXY header (version 2), by an `https://` target, or beside the client's address: in
    /// `X-Forwarded-Proto` or the parameter `proto` of `Forwarded`.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.driver.is_secure(self.token, &self.head, self.proxies)
    }

    /// Returns the scheme of the request's URL: `https` if it [is secure](Self::is_secure), else `http`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }

    /// Returns the TLS session of the request's connection; `None` without TLS, or if a proxy has terminated it.
    ///
    /// Costs a reference count.
    #[must_use]
    pub fn tls(&self) -> Option<TlsSession> {
        self.driver.tls_of(self.token)
    }

    /// Returns the connection of the request.
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

    pub(crate) fn proxies(&self) -> Option<&'a Proxies> {
        self.proxies
    }

    pub(crate) fn driver(&self) -> &'a dyn DriverView {
        self.driver
    }

    /// Returns the seconds since 1970 as of this turn, as in the response's `Date`.
    #[must_use]
    pub fn unix_seconds(&self) -> u64 {
        self.driver.unix_now()
    }

    /// Returns the milliseconds of the worker's monotonic clock as of this turn. Its zero is arbitrary.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.driver.ms_now()
    }
}

/// A connection of a worker, as a key for state kept between requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    slot: u32,
    generation: u32,
}

impl ConnectionId {
    pub(crate) fn of(token: Token) -> Self {
        Self { slot: token.slot() as u32, generation: token.generation() }
    }

    /// Returns a small number that is unique among the worker's open connections; later connections may reuse
    /// it.
    #[must_use]
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

/// Access of a request to the driver, without its type.
pub(crate) trait DriverView {
    fn peer_of(&self, token: Token) -> Option<SocketAddr>;
    fn unix_now(&self) -> u64;
    fn ms_now(&self) -> u64;

    /// Returns the client's address of a request.
    fn client_of(&self, token: Token, head: &Head<'_>, proxies: Option<&Proxies>) -> Option<SocketAddr> {
        match proxies {
            None => self.peer_of(token),
            Some(proxies) => proxies.client(token, head),
        }
    }

    /// Returns the TLS session of a connection.
    fn tls_of(&self, token: Token) -> Option<TlsSession> {
        let _ = token;
        None
    }

    /// Returns true if the connection has TLS.
    fn is_secured(&self, token: Token) -> bool {
        let _ = token;
        false
    }

    /// Returns false for a host that the connection's session isn't for.
    fn serves_host(&self, token: Token, host: &str) -> bool {
        let _ = (token, host);
        true
    }

    /// Returns true if the client has sent a request by TLS.
    fn is_secure(&self, token: Token, head: &Head<'_>, proxies: Option<&Proxies>) -> bool {
        self.is_secured(token) || proxies.is_some_and(|proxies| proxies.is_secure(token, head))
    }
}

impl<D: Driver> DriverView for D {
    fn peer_of(&self, token: Token) -> Option<SocketAddr> {
        self.peer(token).ok()
    }

    fn tls_of(&self, token: Token) -> Option<TlsSession> {
        if D::SECURES { self.session(token).map(TlsSession::of) } else { None }
    }

    fn is_secured(&self, token: Token) -> bool {
        D::SECURES && self.session(token).is_some()
    }

    fn serves_host(&self, token: Token, host: &str) -> bool {
        !D::SECURES || Driver::serves_host(self, token, host)
    }

    fn unix_now(&self) -> u64 {
        self.unix_seconds()
    }

    fn ms_now(&self) -> u64 {
        self.now_ms()
    }
}
