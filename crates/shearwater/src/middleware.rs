//! Guards, and steps that run before and after handlers, each for all paths under a prefix.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use shearwater_engine::{FieldLines, GuardsPassed, Request, Response};

use crate::app::App;
use crate::fast::Cors;
use crate::path::{Parents, covers, normal, normalized};

/// Steps of an app.
impl App {
    /// Adds a step that decides whether a request is served, as soon as its head is complete: before its body is received,
    /// before `100 Continue`, and before all `before` steps.
    ///
    /// `ControlFlow::Break(())` ends the request with the response as the guard has set it; `after` steps still run. If its
    /// body hasn't arrived as a whole, the connection is closed after the response. A guard that has to wait
    /// [defers](Response::defer) the response and breaks: [`Call::pass`](crate::Call::pass) then lets the request pass, and any other end
    /// responds. Changes of the response by a guard that lets the request pass have no effect.
    ///
    /// Guards of outer scopes run first, those of one scope in the order in which they were added, and those of a mounted
    /// service last. They run for unmatched requests too.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use shearwater::{App, Request, Response};
    ///
    /// let mut app = App::new();
    /// app.scope("/admin", |admin| {
    ///     admin.guard(|request: &Request, response: &mut Response| {
    ///         match response.client(request).is_some_and(|client| client.ip().is_loopback()) {
    ///             true => ControlFlow::Continue(()),
    ///             false => {
    ///                 response.status(403).text("Only for this machine.\n");
    ///                 ControlFlow::Break(())
    ///             }
    ///         }
    ///     });
    /// });
    /// ```
    pub fn guard(
        &mut self,
        guard: impl Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> &mut Self {
        self.definitions.parts.middleware.push_guard(self.prefix.clone(), Box::new(guard));
        self
    }

    /// Lets pages of other origins use the routes of this scope (CORS). `methods` are those that pages may use, separated by
    /// commas, such as `"GET, POST"`.
    ///
    /// A guard responds to preflights (`OPTIONS` with `Access-Control-Request-Method`), which have no credentials: add it
    /// before guards that need some. A step adds the headers of all other responses.
    ///
    /// # Errors
    /// An invalid policy, or other methods than tokens separated by commas.
    pub fn cors(&mut self, cors: &Cors, methods: &str) -> Result<&mut Self, String> {
        let preflight = cors.preflight_lines(methods, methods)?;
        let lines = cors.response_lines(&FieldLines::new())?;
        self.guard(move |request, response| match Cors::is_preflight(request) {
            true => {
                response.status(204).lines(preflight.get(&request.head()));
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        });
        Ok(self.after(move |request, response| {
            if !Cors::is_preflight(request) {
                response.lines(lines.get(&request.head()));
            }
        }))
    }

    /// Adds a step that runs before handlers. `ControlFlow::Break(())` ends the request with the response as it is:
    /// later steps and the handler don't run.
    ///
    /// Steps of outer scopes run first, those of one scope in the order in which they were added; they run for
    /// unmatched requests (`404`, `405`) too. For a route that streams its body, they run once the body has been
    /// received.
    pub fn before(
        &mut self,
        step: impl Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> &mut Self {
        self.definitions.parts.middleware.push_before(self.prefix.clone(), Box::new(step));
        self
    }

    /// Adds a step that runs after handlers, in the opposite order of [`before`](Self::before).
    ///
    /// The step sees the status and may change the response of any handler, including one made by a `before` step. For a
    /// deferred response (of an async handler, a coroutine or a service) it runs once that is complete. Of a response that
    /// is streamed it may change the head: replacing the body makes it a `500`. A handler that has failed reaches it as a
    /// `500`. It doesn't run if the handler panics, nor for requests that the server rejects itself.
    pub fn after(
        &mut self,
        step: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Self {
        self.definitions.parts.middleware.push_after(self.prefix.clone(), Box::new(step));
        self
    }
}

pub(crate) type Before = Box<dyn Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync>;
pub(crate) type After = Box<dyn Fn(&Request<'_>, &mut Response<'_>) + Send + Sync>;

/// All steps of an app.
#[derive(Default)]
pub(crate) struct Middleware {
    guards: Vec<Scoped<Before>>,
    before: Vec<Scoped<Before>>,
    after: Vec<Scoped<After>>,
}

struct Scoped<T> {
    prefix: String,
    step: T,
}

/// Indices of the steps that run for an exact path.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    guards: Vec<usize>,
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Steps {
    pub(crate) fn is_empty(&self) -> bool {
        self.guards.is_empty() && self.before.is_empty() && self.after.is_empty()
    }

    pub(crate) fn has_guards(&self) -> bool {
        !self.guards.is_empty()
    }
}

impl Middleware {
    pub(crate) fn push_guard(&mut self, prefix: String, guard: Before) {
        self.guards.push(Scoped { prefix, step: guard });
    }

    pub(crate) fn push_before(&mut self, prefix: String, step: Before) {
        self.before.push(Scoped { prefix, step });
    }

    pub(crate) fn push_after(&mut self, prefix: String, step: After) {
        self.after.push(Scoped { prefix, step });
    }

    /// Sorts the steps into execution order: guards and `before` from outer to inner scopes in the order of their addition,
    /// `after` in reverse.
    pub(crate) fn sort(&mut self) {
        self.guards.sort_by_key(|guard| guard.prefix.len());
        self.before.sort_by_key(|step| step.prefix.len());
        self.after.reverse();
        self.after.sort_by_key(|step| Reverse(step.prefix.len()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.guards.is_empty() && self.before.is_empty() && self.after.is_empty()
    }

    pub(crate) fn has_guards(&self) -> bool {
        !self.guards.is_empty()
    }

    /// Returns the steps of a path, which is known at startup.
    pub(crate) fn steps(&self, path: &[u8]) -> Steps {
        let is_covered = prefix_matcher(path, path);
        Steps {
            guards: indices(&self.guards, &is_covered),
            before: indices(&self.before, &is_covered),
            after: indices(&self.after, &is_covered),
        }
    }

    /// Runs the given guards. Returns the number passed if all let the request pass.
    pub(crate) fn run_guards(
        &self,
        steps: &Steps,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<GuardsPassed> {
        response.guards(request, steps.guards.iter().map(|&index| &self.guards[index].step))
    }

    /// Runs the guards that match the request's path. Returns the number passed if all let it pass.
    pub(crate) fn run_matching_guards(
        &self,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> Option<GuardsPassed> {
        let is_covered = request_matcher(request);
        let matching = self.guards.iter().filter(|guard| is_covered(&guard.prefix));
        response.guards(request, matching.map(|guard| &guard.step))
    }

    /// Runs the given steps before a handler. Returns false if one of them has ended the request.
    pub(crate) fn run_before(
        &self,
        steps: &Steps,
        request: &Request<'_>,
        response: &mut Response<'_>,
    ) -> bool {
        steps.before.iter().all(|&index| (self.before[index].step)(request, response).is_continue())
    }

    /// Returns the given steps that run after a handler.
    pub(crate) fn after<'a>(&'a self, steps: &'a Steps) -> impl Iterator<Item = &'a After> {
        steps.after.iter().map(|&index| &self.after[index].step)
    }

    /// Runs the steps that match the request's path before a handler. Returns false if one of them has ended the request.
    pub(crate) fn run_matching_before(&self, request: &Request<'_>, response: &mut Response<'_>) -> bool {
        let is_covered = request_matcher(request);
        let mut matching = self.before.iter().filter(|step| is_covered(&step.prefix));
        matching.all(|before| (before.step)(request, response).is_continue())
    }

    /// Returns the steps that match the request's path and run after a handler.
    pub(crate) fn matching_after(&self, request: &Request<'_>) -> impl Iterator<Item = &After> {
        let is_covered = request_matcher(request);
        self.after.iter().filter(move |step| is_covered(&step.prefix)).map(|step| &step.step)
    }
}

fn request_matcher<'a>(request: &Request<'a>) -> impl Fn(&str) -> bool {
    let head = request.head();
    prefix_matcher(head.path_bytes(), head.sent_path_bytes())
}

/// Returns a test for prefixes of a path. Tests it both as it is and decoded, so that encoding doesn't evade a guard; and
/// with the dot segments that were sent, because a mounted service of another framework gets them.
fn prefix_matcher(path: &[u8], sent: &[u8]) -> impl Fn(&str) -> bool {
    let normal = normal(path);
    let with_dots = (sent != path).then(|| normalized(sent, Parents::Keep));
    move |prefix| {
        let is_in = |path: &Option<Vec<u8>>| matches!(path, Some(path) if covers(prefix, path));
        covers(prefix, path) || is_in(&normal) || is_in(&with_dots) || covers(prefix, sent)
    }
}

fn indices<T>(all: &[Scoped<T>], is_covered: impl Fn(&str) -> bool) -> Vec<usize> {
    let covered = all.iter().enumerate().filter(|(_, step)| is_covered(&step.prefix));
    covered.map(|(index, _)| index).collect()
}
