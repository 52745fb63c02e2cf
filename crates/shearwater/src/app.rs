//! Routes, mounts, middleware and state of a program.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use shearwater_engine::tasks::StackOptions;
use shearwater_engine::{Control, Reload, Reloading, Service};
use shearwater_http1::{Method, is_protocol};

use crate::error::{Error, RouteError, RouteErrors, SourceLocation};
use crate::handlers::{Handler, Kind, Prepared};
use crate::method_table::{MethodEntry, MethodTable};
use crate::middleware::Middleware;
use crate::path;
use crate::router::{
    Content, Definitions, PrefixDefinition, Registered, RouteDefinition, RouteMethod, Routes, RoutesService,
};

/// A router: handlers by path and method, with middleware and a state `S` (RFC 9110 section 9).
///
/// A request goes to the table of its exact path, else to a pattern such as `/user/{id}`, else to the mount or fallback
/// with the longest prefix. An unknown path is a `404`, a method without a handler on a known path a `405` with `Allow`,
/// and a non-standard method without any handler a `501`.
///
/// Mistakes (two handlers for the same requests, a path that no request can have) are reported at startup, all at once
/// and each with its file and line: by [`build`](Self::build), or by [`Server::run`](crate::Server::run) before it binds.
///
/// ```
/// use shearwater::{App, Failure, Request, buffered, get, post};
///
/// fn user(request: &Request) -> Result<String, Failure> {
///     let id: u32 = request.param("id")?; // decoded and parsed, else a 400
///     Ok(format!("user {id}\n"))
/// }
///
/// let app = App::new()
///     .route("/", get("Hello, World!"))
///     .route("/user/{id}", get(user))
///     .route("/echo", post(buffered(1024 * 1024, |_: &Request, body: &[u8]| body.to_vec())));
/// assert!(app.build().is_ok());
/// ```
pub struct App<S = ()> {
    /// The prefix of the current scope.
    prefix: String,
    definitions: Definitions<S>,
    /// Its identity.
    id: Arc<()>,
}

impl<S> fmt::Debug for App<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("routes", &self.definitions.routes.len())
            .field("prefixes", &self.definitions.prefixes.len())
            .field("errors", &self.definitions.errors)
            .finish_non_exhaustive()
    }
}

impl App {
    /// Creates an app without routes: every request is a `404`.
    #[must_use]
    pub fn new() -> Self {
        Self::with_state(|_| ())
    }
}

impl Default for App {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: 'static> App<S> {
    /// Creates an app with a state: a value for each worker, made on its thread with its number.
    ///
    /// Handlers get it by [`Request::state`](crate::Request::state) and [`Call::state`](crate::Call::state). It needs no lock
    /// and needn't be `Send`; what workers share is an `Arc` in it.
    ///
    /// ```
    /// use std::cell::Cell;
    /// use shearwater::{App, Request, get};
    ///
    /// struct State {
    ///     hits: Cell<u64>,
    /// }
    ///
    /// fn count(request: &Request<State>) -> String {
    ///     let hits = &request.state().hits;
    ///     hits.set(hits.get() + 1);
    ///     hits.get().to_string()
    /// }
    ///
    /// let app = App::with_state(|_worker| State { hits: Cell::new(0) }).route("/count", get(count));
    /// ```
    #[must_use]
    pub fn with_state(make: impl Fn(usize) -> S + Send + Sync + 'static) -> Self {
        Self { prefix: String::new(), definitions: Definitions::new(Box::new(make)), id: Arc::default() }
    }

    /// Adds a path's handlers.
    ///
    /// `{name}` matches a non-empty segment or a non-empty part of one, `{*name}` at the end matches the rest of the
    /// path; [`Request::param`](crate::Request::param) returns the matched text. `{{` and `}}` are literal braces. Everything
    /// else is compared as sent, without percent-decoding. If several paths match, the exact path wins, then the one with the
    /// longest common literal prefix.
    ///
    /// The path decides first, then the method. A path that has constants only lets other methods fall through to patterns,
    /// mounts and fallbacks, as if it didn't exist.
    ///
    /// A path or method that no request can have, and a second handler for the same method and path, are errors at startup.
    #[must_use]
    #[track_caller]
    pub fn route(mut self, path: &str, table: MethodTable<S>) -> Self {
        let path = self.with_prefix(path);
        let MethodTable { mut entries, timeout, mut cors, protocol } = table;
        let place =
            |method: &RouteMethod, location| SourceLocation::new(format!("{method} {path}"), location);
        let waits = |entry: &MethodEntry<S>| matches!(entry.prepared.handler, Kind::Deferred(_));
        if let Some((_, location)) = timeout
            && !entries.iter().any(waits)
        {
            let given = SourceLocation::new(format!("the timeout of {path}"), location);
            self.refuse(given, "none of its handlers waits; help: remove it".to_owned());
        }
        if let Some((protocol, location)) = &protocol
            && let Some(why) = protocol_mistake(protocol, &entries)
        {
            self.refuse(SourceLocation::new(format!("the upgrades of {path}"), location), why);
        }
        if path::read(&path).is_err() {
            // One handler reports it.
            entries.truncate(1);
            cors = None;
        }
        if let Some((cors, location)) = &cors {
            let place = SourceLocation::new(format!("the CORS policy of {path}"), location);
            let methods = entries.iter().map(|entry| entry.method.clone()).collect();
            let are_constant = entries.iter().all(|entry| matches!(entry.prepared.handler, Kind::Fast(_)));
            let content = Content::Preflight { methods, cors: cors.clone(), are_constant };
            let item =
                RouteDefinition { method: Method::Options.into(), content, cors: None, protocol: None };
            self.definitions.routes.push(Registered { place, path: path.clone(), item });
        }
        for MethodEntry { method, prepared, location } in entries {
            let place = place(&method, location);
            let content = self.define(prepared, place.what(), timeout.map(|(timeout, _)| timeout));
            let cors = cors.as_ref().map(|(cors, _)| cors.clone());
            let is_get = method.standard() == Some(Method::Get);
            let protocol = protocol.as_ref().filter(|_| is_get).map(|(protocol, _)| protocol.clone());
            let item = RouteDefinition { method, content, cors, protocol };
            self.definitions.routes.push(Registered { place, path: path.clone(), item });
        }
        self
    }

    /// Adds a handler for every path without a table, with any method; in a scope, for the paths under its prefix.
    ///
    /// A second fallback in the same scope is an error at startup.
    #[must_use]
    #[track_caller]
    pub fn fallback<K>(mut self, handler: impl Handler<S, K>) -> Self {
        let path = if self.prefix.is_empty() { "/".to_owned() } else { self.prefix.clone() };
        let place = SourceLocation::new(format!("the fallback of {path}"), Location::caller());
        let item = PrefixDefinition::Fallback(self.define(handler.prepare(), place.what(), None));
        self.definitions.prefixes.push(Registered { place, path, item });
        self
    }

    /// Mounts a service under a prefix, for all paths without a table. `/` is everything.
    ///
    /// The service is a value, such as a folder, or a function that makes each worker's [`Service`] on its thread, with its
    /// number.
    ///
    /// The service sees the path after the prefix ([`engine::Request::path`](crate::engine::Request::path)), but routes of a
    /// mounted app ([`Routes`]) are whole paths; its
    /// [`body_policy`](Service::body_policy) gets the whole head. Two mounts with the same prefix, and a prefix whose paths are
    /// all taken by a pattern, are errors at startup.
    #[must_use]
    #[track_caller]
    pub fn mount(mut self, prefix: &str, service: impl MakeService) -> Self {
        let path = self.with_prefix(prefix);
        let place = SourceLocation::new(format!("the mount {path}"), Location::caller());
        let Definitions { prefixes, parts, .. } = &mut self.definitions;
        let item = PrefixDefinition::Mount(parts.services.len());
        prefixes.push(Registered { place, path, item });
        parts.services.push(Box::new(move |worker| Box::new(service.make(worker))));
        self
    }

    /// Puts a prefix before the path of all routes, mounts and the fallback that `define` adds.
    ///
    /// Middleware added in it runs for all requests under the prefix, whichever handler they reach. The empty path is the
    /// prefix itself.
    ///
    /// ```
    /// use shearwater::{App, Request, Response, after, get};
    ///
    /// let app = App::new().scope("/api", |api| {
    ///     api.with(after(|_: &Request, response: &mut Response| {
    ///         response.field("Cache-Control", "no-store");
    ///     }))
    ///     .route("/time", get(|request: &Request| request.unix_seconds().to_string()))
    /// });
    /// ```
    #[must_use]
    #[track_caller]
    pub fn scope(mut self, prefix: &str, define: impl FnOnce(Self) -> Self) -> Self {
        let path = self.with_prefix(prefix);
        let inner = match path::prefix(&path) {
            Ok(inner) => inner,
            Err(why) => {
                self.refuse(SourceLocation::new(format!("the scope {path}"), Location::caller()), why);
                self.prefix.clone()
            }
        };
        let outer = std::mem::replace(&mut self.prefix, inner);
        let id = Arc::clone(&self.id);
        let mut app = define(self);
        if !Arc::ptr_eq(&id, &app.id) {
            let given = SourceLocation::new(format!("the scope {path}"), Location::caller());
            app.refuse(
                given,
                "it returns another app; help: add to the one that it is called with".to_owned(),
            );
        }
        app.prefix = outer;
        app
    }

    /// Adds middleware for all requests of this scope, whichever handler they reach, and for unmatched ones.
    ///
    /// See [`Middleware`] for its points. Those of outer scopes come first before the handler, and last after it.
    #[must_use]
    pub fn with(mut self, middleware: impl Middleware<S>) -> Self {
        self.definitions.parts.middleware.push(self.prefix.clone(), Box::new(middleware));
        self
    }

    /// Sets the size and number of each worker's coroutine stacks. Default: see [`StackOptions`].
    #[must_use]
    pub fn stacks(mut self, stacks: StackOptions) -> Self {
        self.definitions.parts.stacks = stacks;
        self
    }

    /// Checks the routes and compiles them.
    ///
    /// # Errors
    /// All mistakes found.
    pub fn build(self) -> Result<Routes<S>, RouteErrors> {
        Routes::of(self.definitions)
    }

    /// Replaces the app that a running server serves, without a dropped request. Both have the same type of state.
    ///
    /// State starts anew: a value that both apps need is an `Arc` in both. See [`Control::reload`] for requests that have
    /// begun, and [`Server::on_reload`](crate::Server::on_reload) for `SIGHUP`.
    ///
    /// # Errors
    /// [`Error::Routes`], or [`Error::Reload`] if the server is ending or serves no such app. Nothing has changed then.
    pub fn reload(self, control: &Control) -> Result<Reloading, Error> {
        let routes = self.build()?;
        Ok(control.reload(Reload::new(move |worker, _: &RoutesService<S>| routes.service(worker)))?)
    }

    /// Keeps a handler. `label` names it, if it is a coroutine, when its stack overflows.
    fn define(
        &mut self,
        prepared: Prepared<S>,
        label: &str,
        timeout: Option<std::time::Duration>,
    ) -> Content<S> {
        let Prepared { handler, body } = prepared;
        match handler {
            Kind::Fast(fast) => Content::Fast(fast),
            Kind::Sync(handler) => Content::Sync(handler, body),
            Kind::Deferred(make) => {
                let deferred = &mut self.definitions.parts.deferred;
                let label = label.to_owned();
                deferred.push(Box::new(move |worker| make(worker, &label, timeout)));
                Content::Deferred(deferred.len() - 1, body)
            }
        }
    }

    fn refuse(&mut self, given: SourceLocation, why: String) {
        self.definitions.errors.push(RouteError::Refused { given, why });
    }

    /// Returns a path with the prefix of the current scope.
    fn with_prefix(&self, path: &str) -> String {
        match path.is_empty() || path.starts_with('/') {
            true => format!("{}{path}", self.prefix),
            false => path.to_owned(),
        }
    }
}

/// Returns the mistake in the protocol that a table upgrades to, if any.
fn protocol_mistake<S>(protocol: &str, entries: &[MethodEntry<S>]) -> Option<String> {
    if !entries.iter().any(|entry| entry.method.standard() == Some(Method::Get)) {
        return Some("`.upgrades(protocol)` is for tables with a handler of GET".to_owned());
    }
    let is_valid = is_protocol(protocol.as_bytes());
    (!is_valid).then(|| format!("invalid protocol {protocol:?}; help: write a name such as \"websocket\""))
}

/// A value that can be [mounted](App::mount): makes a service for each worker. Functions of the worker's number do.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be mounted",
    label = "makes no service",
    note = "a mount is a folder, or a function `|worker| service`"
)]
pub trait MakeService: Send + Sync + 'static {
    /// The service of one worker.
    type Service: Service;

    /// Creates a worker's service, on its thread.
    fn make(&self, worker: usize) -> Self::Service;
}

impl<F: Fn(usize) -> T + Send + Sync + 'static, T: Service> MakeService for F {
    type Service = T;

    fn make(&self, worker: usize) -> T {
        self(worker)
    }
}
