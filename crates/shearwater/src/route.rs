//! A route: a handler, and how it receives request bodies.

use shearwater_engine::{BodyPolicy, Request, Response};
use std::fmt;

use crate::RouteMethod;
use crate::deferred::DeferredHandler;

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
    pub(crate) method: RouteMethod,
    handler: Handler,
    body: BodyPolicy,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Route {
    pub(crate) fn new(method: RouteMethod, handler: Handler) -> Self {
        Self { method, handler, body: BodyPolicy::Discard }
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

    /// Returns the mistake in its body policy, if any. `kind` is the method that added it, such as `post`, or empty if
    /// it has no variant for deferred handlers.
    pub(crate) fn mistake(&self, kind: &str) -> Option<String> {
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
    pub(crate) fn respond(
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

    pub(crate) fn body_policy(&self) -> BodyPolicy {
        self.body
    }
}
