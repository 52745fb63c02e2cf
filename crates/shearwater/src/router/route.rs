//! A route: its method, its handler, and how it receives request bodies.

use std::fmt;

use shearwater_engine::{BodyPolicy, Request, Response};
use shearwater_http1::{METHOD_BYTES_MAX, Method, is_protocol};

use crate::handlers::DeferredHandler;

type SyncHandler = Box<dyn Fn(&Request<'_>, &mut Response<'_>) + Send + Sync>;

/// The handler of a route.
pub(crate) enum Handler {
    /// Responds immediately, on the worker's thread.
    Sync(SyncHandler),
    /// Responds later. The index of the worker's [`DeferredHandler`].
    Deferred(usize),
}

/// A handler for a method and a path. Request bodies are discarded unless one of these methods is called.
pub struct Route {
    pub(super) method: RouteMethod,
    handler: Handler,
    pub(super) body: BodyPolicy,
    /// The protocol that it upgrades to, also of HTTP/2.
    pub(super) protocol: Option<String>,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Route {
    pub(crate) fn new(method: RouteMethod, handler: Handler) -> Self {
        Self { method, handler, body: BodyPolicy::Discard, protocol: None }
    }

    /// Buffers the body, up to `bytes_max` bytes, for [`Request::body`]. A longer one is rejected with `413`.
    pub fn buffer(&mut self, bytes_max: u64) -> &mut Self {
        self.body = BodyPolicy::Buffer { bytes_max };
        self
    }

    /// Lets the handler read the body as it arrives, by [`Call::read`](crate::Call::read). For async handlers and
    /// coroutines only.
    pub fn read(&mut self) -> &mut Self {
        self.body = BodyPolicy::Call;
        self
    }

    /// Passes extended CONNECTs for a protocol such as `websocket` to this handler of `GET`, too (RFC 8441).
    ///
    /// By HTTP/2 they ask for what a `GET` with `Upgrade` asks for by HTTP/1.1, and the handler
    /// [upgrades](Response::upgrade) both in the same way. A route without this never sees one. With another method than
    /// `GET`, and with an invalid name of a protocol, it is an error at startup.
    pub fn upgrades(&mut self, protocol: &str) -> &mut Self {
        self.protocol = Some(protocol.to_owned());
        self
    }

    /// Returns the mistake in the protocol that it upgrades to, if any.
    pub(super) fn protocol_mistake(&self) -> Option<String> {
        let protocol = self.protocol.as_ref()?;
        if self.method.standard() != Some(Method::Get) {
            return Some("`.upgrades(protocol)` is for routes of GET".to_owned());
        }
        let is_valid = is_protocol(protocol.as_bytes());
        (!is_valid)
            .then(|| format!("invalid protocol {protocol:?}; help: write a name such as \"websocket\""))
    }

    /// Returns the mistake in its body policy, if any. `kind` is the method that added it, such as `post`, or empty if
    /// it has no variant for deferred handlers.
    pub(super) fn mistake(&self, kind: &str) -> Option<String> {
        if !matches!((&self.handler, &self.body), (Handler::Sync(_), BodyPolicy::Call)) {
            return None;
        }
        let other = match kind {
            "" => String::new(),
            kind => format!("add the handler with `{kind}_async` or `{kind}_coroutine`, or "),
        };
        Some(format!(
            "`.read()` is for async handlers and coroutines; help: {other}buffer the body with `.buffer(bytes_max)`"
        ))
    }

    #[inline]
    pub(super) fn respond(
        &self,
        request: &Request<'_>,
        response: &mut Response<'_>,
        deferred: &[DeferredHandler],
    ) {
        match &self.handler {
            Handler::Sync(handler) => handler(request, response),
            Handler::Deferred(index) => deferred[*index](request, response),
        }
    }
}

/// The method of a route: a standard one ([`Method`]), or an extension by name (RFC 9110 section 9.1). Names are
/// case-sensitive.
///
/// ```
/// use shearwater::{App, Method, Request, Response};
///
/// let mut app = App::new();
/// app.route(Method::Put, "/notes/{id}", |_: &Request, response: &mut Response| {
///     response.status(204);
/// });
/// app.route("PROPFIND", "/notes/{id}", |_: &Request, response: &mut Response| {
///     response.status(207).content_type("application/xml").body("<multistatus xmlns=\"DAV:\"/>");
/// });
/// assert!(app.build().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouteMethod(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Standard(Method),
    Extension(Box<str>),
}

impl RouteMethod {
    /// Returns the method if it is a standard one.
    pub(crate) fn standard(&self) -> Option<Method> {
        match self.0 {
            Kind::Standard(method) => Some(method),
            Kind::Extension(_) => None,
        }
    }

    /// Returns the name if it is an extension.
    pub(crate) fn extension(&self) -> Option<&str> {
        match &self.0 {
            Kind::Standard(_) => None,
            Kind::Extension(name) => Some(name),
        }
    }

    /// Returns the mistake if no route can have this method.
    pub(crate) fn mistake(&self) -> Option<String> {
        match &self.0 {
            Kind::Standard(method @ (Method::Connect | Method::Other)) => {
                Some(format!("{method:?} can't be routed"))
            }
            Kind::Extension(name) if !Method::is_name(name.as_bytes()) => Some(format!(
                "invalid method {name:?}: a method is a token of at most {METHOD_BYTES_MAX} bytes"
            )),
            Kind::Extension(name) => {
                let standard = Method::from_name(name.to_ascii_uppercase().as_bytes()).name()?;
                Some(format!("method names are case-sensitive; help: write {standard:?}"))
            }
            Kind::Standard(_) => None,
        }
    }
}

impl From<Method> for RouteMethod {
    fn from(method: Method) -> Self {
        Self(Kind::Standard(method))
    }
}

impl From<&str> for RouteMethod {
    fn from(name: &str) -> Self {
        Self(match Method::from_name(name.as_bytes()) {
            Method::Other => Kind::Extension(name.into()),
            method => Kind::Standard(method),
        })
    }
}

/// Writes the name as requests send it.
impl fmt::Display for RouteMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Standard(method) => match method.name() {
                Some(name) => f.write_str(name),
                None => write!(f, "{method:?}"),
            },
            Kind::Extension(name) => f.write_str(name),
        }
    }
}
