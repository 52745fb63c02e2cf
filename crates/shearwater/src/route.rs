//! One route: a handler, and what becomes of its requests' bodies.

use shearwater_engine::{BodyPolicy, BodySink, Request, Response};
use std::fmt;

use crate::RouteMethod;
use crate::later::CallLater;

type Answer = Box<dyn Fn(&Request<'_>, &mut Response<'_>) + Send + Sync>;

/// What answers for a route. Each kind of handler is one of these.
pub(crate) enum Handler {
    /// Answers at once, on the worker's own thread.
    Sync(Answer),
    /// May wait: each worker has its own way to call it, by this number.
    Later(usize),
}

type MakeSink = Box<dyn Fn() -> Box<dyn BodySink> + Send + Sync>;

enum Body {
    Discard,
    Buffer { bytes_max: u64 },
    Stream(MakeSink),
    Call,
}

/// A handler for one method and path. Its requests' bodies are read and thrown away unless it says otherwise.
pub struct Route {
    pub(crate) method: RouteMethod,
    handler: Handler,
    body: Body,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Route {
    pub(crate) fn new(method: RouteMethod, handler: Handler) -> Self {
        Self { method, handler, body: Body::Discard }
    }

    /// Keeps the body, up to `bytes_max` bytes, for [`Request::body`]. A longer one is refused with `413`.
    pub fn buffer(&mut self, bytes_max: u64) -> &mut Self {
        self.body = Body::Buffer { bytes_max };
        self
    }

    /// Hands each body, piece by piece, to a new sink, which then responds in the handler's place. The handler responds to requests
    /// without `Content-Length` and `Transfer-Encoding`; a request with `Content-Length: 0` goes to the sink, with no piece.
    pub fn stream<S: BodySink + 'static>(
        &mut self,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> &mut Self {
        self.body = Body::Stream(Box::new(move || Box::new(make())));
        self
    }

    /// Hands each body to the handler while it comes ([`Call::read`](crate::Call::read)). Only for handlers that may wait.
    pub fn read(&mut self) -> &mut Self {
        self.body = Body::Call;
        self
    }

    /// Returns the mistake in its body policy, if there is one. `kind` is the method that added it, such as `post`; empty if there is none
    /// for handlers that wait.
    pub(crate) fn mistake(&self, kind: &str) -> Option<String> {
        if !matches!((&self.handler, &self.body), (Handler::Sync(_), Body::Call)) {
            return None;
        }
        let other = match kind {
            "" => String::new(),
            kind => format!("give the handler by `{kind}_async` or `{kind}_coroutine`, or "),
        };
        Some(format!(
            "`.read()` is for handlers that wait; help: {other}keep the body with `.buffer(bytes_max)`"
        ))
    }

    #[inline]
    pub(crate) fn respond(&self, request: &Request<'_>, response: &mut Response<'_>, later: &[CallLater]) {
        match &self.handler {
            Handler::Sync(answer) => answer(request, response),
            Handler::Later(number) => later[*number](request, response),
        }
    }

    pub(crate) fn body_policy(&self) -> BodyPolicy {
        match &self.body {
            Body::Discard => BodyPolicy::Discard,
            Body::Buffer { bytes_max } => BodyPolicy::Buffer { bytes_max: *bytes_max },
            Body::Stream(make) => BodyPolicy::Stream(make()),
            Body::Call => BodyPolicy::Call,
        }
    }
}
