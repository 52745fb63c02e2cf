//! Middleware, for all paths under a prefix.

use std::fmt;
use std::ops::ControlFlow;

use shearwater_engine::{FieldLines, GuardsPassed, Response};

use crate::fast::{ByOrigin, Cors};
use crate::path::{Parents, covers, normal, normalized};
use crate::request::Request;

/// Steps around every kind of handler, mounted services and unmatched requests (`404`, `405`), for [`App::with`].
///
/// They don't run for requests that the server itself rejects (malformed, too large, too slow), and
/// [`response`](Self::response) doesn't run when a handler panics. [`guard`] and [`after`] make middleware of one closure.
///
/// ```
/// use std::ops::ControlFlow;
/// use shearwater::{App, Middleware, Request, Response, get};
///
/// struct Key(&'static str);
///
/// impl<S> Middleware<S> for Key {
///     fn head(&self, request: &Request<S>, response: &mut Response) -> ControlFlow<()> {
///         if request.header("X-Key") == Some(self.0) {
///             return ControlFlow::Continue(());
///         }
///         response.status(401).text("A key is needed.\n");
///         ControlFlow::Break(())
///     }
///
///     fn response(&self, _: &Request<S>, response: &mut Response) {
///         response.field("Cache-Control", "no-store");
///     }
/// }
///
/// let app = App::new().scope("/admin", |admin| admin.with(Key("secret")).route("/", get("Welcome.\n")));
/// ```
///
/// [`App::with`]: crate::App::with
pub trait Middleware<S = ()>: Send + Sync + 'static {
    /// Decides whether a request is served, as soon as its head is complete: before its body is received and before
    /// `100 Continue`.
    ///
    /// `ControlFlow::Break(())` ends the request with the response as it is set; [`response`](Self::response) still runs. If
    /// its body hasn't arrived as a whole, the connection is closed after the response. Middleware that has to wait
    /// [defers](Response::defer) the response and breaks: [`engine::Call::pass`](crate::engine::Call::pass) then lets the
    /// request pass, and any other end responds. Changes of the response of a request that passes have no effect.
    ///
    /// Outer scopes run first, within one scope in the order of addition; middleware of mounted services runs last.
    fn head(&self, request: &Request<'_, S>, response: &mut Response<'_>) -> ControlFlow<()> {
        let _ = (request, response);
        ControlFlow::Continue(())
    }

    /// Changes the response of any handler, in the opposite order of [`head`](Self::head).
    ///
    /// For a deferred response (of an async handler, a coroutine or a service) it runs once that is complete. Of a response
    /// that is streamed it may change the head: replacing the body makes it a `500`. A handler that has failed reaches it as
    /// a `500`.
    fn response(&self, request: &Request<'_, S>, response: &mut Response<'_>) {
        let _ = (request, response);
    }

    /// Returns false if [`head`](Self::head) lets every request pass: it isn't called then.
    fn has_head(&self) -> bool {
        true
    }
}

/// Creates middleware that decides whether a request is served: see [`Middleware::head`].
pub fn guard<S, F>(guard: F) -> Guard<F>
where
    F: Fn(&Request<'_, S>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync + 'static,
{
    Guard(guard)
}

/// Creates middleware that changes responses: see [`Middleware::response`].
pub fn after<S, F>(step: F) -> After<F>
where
    F: Fn(&Request<'_, S>, &mut Response<'_>) + Send + Sync + 'static,
{
    After(step)
}

/// Middleware of one closure: see [`guard`].
pub struct Guard<F>(F);

/// Middleware of one closure: see [`after`].
pub struct After<F>(F);

impl<F> fmt::Debug for Guard<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for After<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("After").finish_non_exhaustive()
    }
}

impl<S, F> Middleware<S> for Guard<F>
where
    F: Fn(&Request<'_, S>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync + 'static,
{
    fn head(&self, request: &Request<'_, S>, response: &mut Response<'_>) -> ControlFlow<()> {
        (self.0)(request, response)
    }
}

impl<S, F> Middleware<S> for After<F>
where
    F: Fn(&Request<'_, S>, &mut Response<'_>) + Send + Sync + 'static,
{
    fn response(&self, request: &Request<'_, S>, response: &mut Response<'_>) {
        (self.0)(request, response);
    }

    fn has_head(&self) -> bool {
        false
    }
}

/// A CORS policy for all paths of a scope: see [`Cors::for_methods`].
#[derive(Debug)]
pub struct ScopeCors {
    preflight: ByOrigin<FieldLines>,
    lines: ByOrigin<FieldLines>,
}

impl Cors {
    /// Creates middleware that lets pages of other origins use all paths of a scope. `methods` are those that pages may use,
    /// separated by commas, such as `"GET, POST"`.
    ///
    /// It responds to preflights (`OPTIONS` with `Access-Control-Request-Method`), which have no credentials: add it before
    /// middleware that needs some. It adds the headers to all other responses.
    ///
    /// # Errors
    /// An invalid policy, or other methods than tokens separated by commas.
    pub fn for_methods(&self, methods: &str) -> Result<ScopeCors, String> {
        let preflight = self.preflight_lines(methods, methods)?;
        Ok(ScopeCors { preflight, lines: self.response_lines(&FieldLines::new())? })
    }
}

impl<S> Middleware<S> for ScopeCors {
    fn head(&self, request: &Request<'_, S>, response: &mut Response<'_>) -> ControlFlow<()> {
        if !Cors::is_preflight(request) {
            return ControlFlow::Continue(());
        }
        response.status(204).lines(self.preflight.get(&request.head()));
        ControlFlow::Break(())
    }

    fn response(&self, request: &Request<'_, S>, response: &mut Response<'_>) {
        if !Cors::is_preflight(request) {
            response.lines(self.lines.get(&request.head()));
        }
    }
}

/// All middleware of an app.
pub(crate) struct Steps<S>(Vec<Scoped<S>>);

struct Scoped<S> {
    prefix: String,
    middleware: Box<dyn Middleware<S>>,
}

impl<S> Default for Steps<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Indices of the middleware of an exact path.
#[derive(Debug, Default)]
pub(crate) struct PathSteps {
    /// In the order of [`Middleware::head`].
    all: Vec<usize>,
    has_guards: bool,
}

impl PathSteps {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn has_guards(&self) -> bool {
        self.has_guards
    }
}

impl<S: 'static> Steps<S> {
    pub(crate) fn push(&mut self, prefix: String, middleware: Box<dyn Middleware<S>>) {
        self.0.push(Scoped { prefix, middleware });
    }

    /// Sorts the middleware from outer to inner scopes, in each in the order of addition.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|step| step.prefix.len());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has_guards(&self) -> bool {
        self.0.iter().any(|step| step.middleware.has_head())
    }

    /// Returns the middleware of a path, which is known at startup.
    pub(crate) fn of_path(&self, path: &[u8]) -> PathSteps {
        let is_covered = prefix_matcher(path, path);
        let covered = self.0.iter().enumerate().filter(|(_, step)| is_covered(&step.prefix));
        let all: Vec<usize> = covered.map(|(index, _)| index).collect();
        let has_guards = all.iter().any(|&index| self.0[index].middleware.has_head());
        PathSteps { all, has_guards }
    }

    /// Runs the given guards. Returns the number passed if all let the request pass.
    pub(crate) fn run_guards(
        &self,
        steps: &PathSteps,
        request: &Request<'_, S>,
        response: &mut Response<'_>,
    ) -> Option<GuardsPassed> {
        run_guards(steps.all.iter().map(|&index| &*self.0[index].middleware), request, response)
    }

    /// Runs the guards that match the request's path. Returns the number passed if all let it pass.
    pub(crate) fn run_matching_guards(
        &self,
        request: &Request<'_, S>,
        response: &mut Response<'_>,
    ) -> Option<GuardsPassed> {
        let is_covered = request_matcher(request);
        let matching = self.0.iter().filter(|step| is_covered(&step.prefix));
        run_guards(matching.map(|step| &*step.middleware), request, response)
    }

    /// Returns the given middleware in the order behind a handler.
    pub(crate) fn after<'a>(&'a self, steps: &'a PathSteps) -> impl Iterator<Item = &'a dyn Middleware<S>> {
        steps.all.iter().rev().map(|&index| &*self.0[index].middleware)
    }

    /// Returns the middleware that matches the request's path, in the order behind a handler.
    pub(crate) fn matching_after(
        &self,
        request: &Request<'_, S>,
    ) -> impl Iterator<Item = &dyn Middleware<S>> {
        let is_covered = request_matcher(request);
        self.0.iter().rev().filter(move |step| is_covered(&step.prefix)).map(|step| &*step.middleware)
    }
}

fn run_guards<'a, S: 'static>(
    steps: impl Iterator<Item = &'a dyn Middleware<S>>,
    request: &Request<'_, S>,
    response: &mut Response<'_>,
) -> Option<GuardsPassed> {
    let state = request.state();
    let guards = steps.filter(|step| step.has_head()).map(|step| {
        move |request: &shearwater_engine::Request<'_>, response: &mut Response<'_>| {
            step.head(&Request::new(request, state), response)
        }
    });
    response.guards(request, guards)
}

fn request_matcher<'a, S>(request: &Request<'a, S>) -> impl Fn(&str) -> bool + use<'a, S> {
    let head = request.head();
    prefix_matcher(head.path_bytes(), head.sent_path_bytes())
}

/// Returns a test for prefixes of a path. Tests it both as it is and decoded, so that encoding doesn't evade a guard; and
/// with the dot segments that were sent, because a mounted service of another framework gets them.
fn prefix_matcher<'a>(path: &'a [u8], sent: &'a [u8]) -> impl Fn(&str) -> bool + use<'a> {
    let normal = normal(path);
    let with_dots = (sent != path).then(|| normalized(sent, Parents::Keep));
    move |prefix| {
        let is_in = |path: &Option<Vec<u8>>| matches!(path, Some(path) if covers(prefix, path));
        covers(prefix, path) || is_in(&normal) || is_in(&with_dots) || covers(prefix, sent)
    }
}
