//! Routes, fast routes, mounts, middleware and state of a program.

use std::any::{TypeId, type_name};
use std::fmt;
use std::panic::Location;

use shearwater_engine::tasks::StackOptions;
use shearwater_engine::{Call, Control, Reload, Reloading, Request, Response, Service};
use shearwater_http1::Method;

use crate::error::{Error, RouteError, RouteErrors, SourceLocation};
use crate::fast::Fast;
use crate::handlers::{CoroutineCall, MakeDeferred, Outcome};
use crate::router::{Definitions, Handler, Registered, Route, RouteMethod, Routes, RoutesService, Target};
use crate::{handlers, path};

/// A router: handlers by method and path, with middleware and state (RFC 9110 section 9).
///
/// A request goes to the route of its exact path, else to a pattern such as `/user/{id}`, else to the mount or fallback
/// with the longest prefix. An unknown path is a `404`, a method without a route on a known path a `405` with `Allow`,
/// and a non-standard method without any route a `501`. A route for `GET` serves `HEAD` too, and `OPTIONS` gets a
/// response with `Allow`.
///
/// Mistakes (two routes for the same requests, a path that no request can have) are reported at startup, all at once
/// and each with its file and line: by [`build`](Self::build), or by [`Server::run_app`](crate::Server::run_app) before
/// it binds.
///
/// ```
/// use shearwater::{App, Request, Response};
///
/// let mut app = App::new();
/// app.get("/user/{id}", |request: &Request, response: &mut Response| {
///     response.text(request.param("id").unwrap_or_default());
/// });
/// app.post("/echo", |request: &Request, response: &mut Response| {
///     response.body(request.body());
/// })
/// .buffer(1024 * 1024);
/// assert!(app.build().is_ok());
/// ```
#[derive(Default)]
pub struct App {
    /// The prefix of the current scope.
    pub(crate) prefix: String,
    pub(crate) definitions: Definitions,
    state_places: Vec<((&'static str, TypeId), SourceLocation)>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("routes", &self.definitions.routes.len())
            .field("fast", &self.definitions.fast.len())
            .field("prefixes", &self.definitions.prefixes.len())
            .field("errors", &self.definitions.errors)
            .finish_non_exhaustive()
    }
}

impl App {
    /// Creates an app without routes: every request is a `404`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an app with one handler for all requests. Request bodies are discarded.
    #[must_use]
    #[track_caller]
    pub fn of(handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static) -> Self {
        let mut app = Self::new();
        app.fallback(handler);
        app
    }

    /// Adds a handler for `GET` (and `HEAD`) of a path. See [`route`](Self::route).
    #[track_caller]
    pub fn get(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Get, path, handler)
    }

    /// Adds a handler for `POST` of a path. See [`route`](Self::route).
    #[track_caller]
    pub fn post(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Post, path, handler)
    }

    /// Adds a handler for `PUT` of a path. See [`route`](Self::route).
    #[track_caller]
    pub fn put(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Put, path, handler)
    }

    /// Adds a handler for `PATCH` (RFC 5789) of a path. See [`route`](Self::route).
    #[track_caller]
    pub fn patch(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Patch, path, handler)
    }

    /// Adds a handler for `DELETE` of a path. See [`route`](Self::route).
    #[track_caller]
    pub fn delete(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Delete, path, handler)
    }

    /// Adds a handler for a method and a path. The method is a standard one ([`Method`]) or an extension such as
    /// `"PROPFIND"`.
    ///
    /// `{name}` matches a non-empty segment or a non-empty part of one, `{*name}` at the end matches the rest of the
    /// path; [`Request::param`] returns the matched text. `{{` and `}}` are literal braces. Everything else is compared
    /// as sent, without percent-decoding. If several paths match, the exact path wins, then the one with the longest
    /// common literal prefix.
    ///
    /// A path or method that no request can have, a method that can't be routed (`CONNECT`), and a second route for the
    /// same method and path are errors at startup.
    #[track_caller]
    pub fn route(
        &mut self,
        method: impl Into<RouteMethod>,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.add(method.into(), path, Handler::Sync(Box::new(handler)), Location::caller())
    }

    fn add(
        &mut self,
        method: RouteMethod,
        path: &str,
        handler: Handler,
        location: &'static Location<'static>,
    ) -> &mut Route {
        let path = self.with_prefix(path);
        let place = SourceLocation::new(format!("{method} {path}"), location);
        let routes = &mut self.definitions.routes;
        routes.push(Registered { place, path, item: Route::new(method, handler) });
        &mut routes.last_mut().expect("a route was just pushed").item
    }

    /// Adds a response that is encoded once, at startup, for an exact path. Requests with other methods fall through to
    /// patterns, mounts and fallbacks, unless the path has other routes.
    ///
    /// A path with parameters, and a second route for the same method and path, are errors at startup.
    #[track_caller]
    pub fn fast(&mut self, path: &str, fast: Fast) -> &mut Self {
        let path = self.with_prefix(path);
        let place = SourceLocation::new(format!("the fast route {path}"), Location::caller());
        self.definitions.fast.push(Registered { place, path, item: fast });
        self
    }

    /// Adds a handler for every path without a route, with any method; in a scope, for the paths under its prefix.
    ///
    /// A second fallback in the same scope is an error at startup.
    #[track_caller]
    pub fn fallback(
        &mut self,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        let path = if self.prefix.is_empty() { "/".to_owned() } else { self.prefix.clone() };
        let place = SourceLocation::new(format!("the fallback of {path}"), Location::caller());
        let route = Route::new(Method::Other.into(), Handler::Sync(Box::new(handler)));
        let prefixes = &mut self.definitions.prefixes;
        prefixes.push(Registered { place, path, item: Target::Route(route) });
        match prefixes.last_mut().map(|given| &mut given.item) {
            Some(Target::Route(route)) => route,
            _ => unreachable!("a fallback was just pushed"),
        }
    }

    /// Mounts a service under a prefix, for all paths without a route. `/` is everything.
    ///
    /// Each worker calls `make` on its own thread, with its number.
    ///
    /// The service sees the path after the prefix ([`Request::path`]); its [`body_policy`](Service::body_policy) gets
    /// the whole head. Two mounts with the same prefix, and a prefix whose paths are all taken by a pattern, are errors
    /// at startup.
    #[track_caller]
    pub fn mount<S: Service>(
        &mut self,
        prefix: &str,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> &mut Self {
        let path = self.with_prefix(prefix);
        let place = SourceLocation::new(format!("the mount {path}"), Location::caller());
        let Definitions { prefixes, parts, .. } = &mut self.definitions;
        prefixes.push(Registered { place, path, item: Target::Mount(parts.services.len()) });
        parts.services.push(Box::new(move |worker| Box::new(make(worker))));
        self
    }

    /// Puts a prefix before the path of all routes, fast routes, mounts and the fallback that `define` adds.
    ///
    /// Middleware added in it runs for all requests under the prefix, whichever route handles them. The empty path is
    /// the prefix itself.
    ///
    /// ```
    /// use shearwater::{App, Request, Response};
    ///
    /// let mut app = App::new();
    /// app.scope("/api", |api| {
    ///     api.after(|_: &Request, response: &mut Response| {
    ///         response.field("Cache-Control", "no-store");
    ///     });
    ///     api.get("/user/{id}", |request: &Request, response: &mut Response| {
    ///         response.text(request.param("id").unwrap_or_default());
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn scope(&mut self, prefix: &str, define: impl FnOnce(&mut Self)) -> &mut Self {
        let path = self.with_prefix(prefix);
        let inner = match path::prefix(&path) {
            Ok(inner) => inner,
            Err(why) => {
                let given = SourceLocation::new(format!("the scope {path}"), Location::caller());
                self.definitions.errors.push(RouteError::Refused { given, why });
                self.prefix.clone()
            }
        };
        let outer = std::mem::replace(&mut self.prefix, inner);
        define(self);
        self.prefix = outer;
        self
    }

    /// Adds a value shared by all workers, for [`Request::state`]. A second one of the same type is an error at
    /// startup.
    #[track_caller]
    pub fn state<T: Send + Sync + 'static>(&mut self, state: T) -> &mut Self {
        self.claim_state("state", (TypeId::of::<T>(), type_name::<T>()), Location::caller());
        self.definitions.parts.states.push((TypeId::of::<T>(), Box::new(state)));
        self
    }

    /// Adds a value for each worker, made on its thread with its number, for [`Request::local`].
    ///
    /// The value needs no lock and needn't be `Send`. A second one of the same type is an error at startup.
    ///
    /// ```
    /// use std::cell::Cell;
    /// use shearwater::{App, Request, Response};
    ///
    /// let mut app = App::new();
    /// app.local(|_worker| Cell::new(0u64));
    /// app.get("/count", |request: &Request, response: &mut Response| {
    ///     let count: &Cell<u64> = request.local();
    ///     count.set(count.get() + 1);
    ///     response.text(&count.get().to_string());
    /// });
    /// ```
    #[track_caller]
    pub fn local<T: 'static>(&mut self, make: impl Fn(usize) -> T + Send + Sync + 'static) -> &mut Self {
        self.claim_state("local state", (TypeId::of::<T>(), type_name::<T>()), Location::caller());
        self.definitions
            .parts
            .locals
            .push((TypeId::of::<T>(), Box::new(move |worker| Box::new(make(worker)))));
        self
    }

    /// Checks the routes and compiles them.
    ///
    /// # Errors
    /// All mistakes found.
    pub fn build(self) -> Result<Routes, RouteErrors> {
        Routes::of(self.definitions)
    }

    /// Replaces the app that a running server serves, without a dropped request.
    ///
    /// State starts anew: a value that both apps need is an `Arc` in both. See [`Control::reload`] for requests that have
    /// begun, and [`Server::on_reload`](crate::Server::on_reload) for `SIGHUP`.
    ///
    /// # Errors
    /// [`Error::Routes`], or [`Error::Reload`] if the server is ending or serves no app. Nothing has changed then.
    pub fn reload(self, control: &Control) -> Result<Reloading, Error> {
        let routes = self.build()?;
        Ok(control.reload(Reload::new(move |worker, _: &RoutesService| routes.service(worker)))?)
    }

    /// Returns a path with the prefix of the current scope.
    fn with_prefix(&self, path: &str) -> String {
        match path.is_empty() || path.starts_with('/') {
            true => format!("{}{path}", self.prefix),
            false => path.to_owned(),
        }
    }

    /// Registers a state type, of which there may be one shared and one local value.
    fn claim_state(&mut self, kind: &'static str, of: (TypeId, &str), location: &'static Location<'static>) {
        let given = SourceLocation::new(format!("the {kind} of type {}", of.1), location);
        match self.state_places.iter().find(|(known, _)| *known == (kind, of.0)) {
            Some((_, with)) => {
                self.definitions.errors.push(RouteError::Conflict { given, with: with.clone() });
            }
            None => self.state_places.push(((kind, of.0), given)),
        }
    }
}

impl App {
    fn add_deferred(
        &mut self,
        method: RouteMethod,
        path: &str,
        make: MakeDeferred,
        location: &'static Location<'static>,
    ) -> &mut Route {
        let deferred = &mut self.definitions.parts.deferred;
        deferred.push(make);
        let handler = Handler::Deferred(deferred.len() - 1);
        self.add(method, path, handler, location)
    }

    /// Adds an async handler for `GET` (and `HEAD`) of a path. See [`route_async`](Self::route_async).
    #[track_caller]
    pub fn get_async<R: Outcome>(
        &mut self,
        path: &str,
        handler: impl AsyncFn(&mut Call) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.route_async(Method::Get, path, handler)
    }

    /// Adds an async handler for `POST` of a path. See [`route_async`](Self::route_async).
    #[track_caller]
    pub fn post_async<R: Outcome>(
        &mut self,
        path: &str,
        handler: impl AsyncFn(&mut Call) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.route_async(Method::Post, path, handler)
    }

    /// Adds an async handler for a method and a path, which are as in [`route`](Self::route).
    ///
    /// Its future runs on the worker's thread and needn't be `Send`. It may await anything that wakes its task; for
    /// timers use [`Call::sleep`].
    ///
    /// ```
    /// use shearwater::{App, Call};
    /// use std::time::Duration;
    ///
    /// let mut app = App::new();
    /// app.get_async("/slow", async |call: &mut Call| {
    ///     call.sleep(Duration::from_millis(100)).await;
    ///     call.response().text("slow\n");
    /// });
    /// ```
    #[track_caller]
    pub fn route_async<R: Outcome>(
        &mut self,
        method: impl Into<RouteMethod>,
        path: &str,
        handler: impl AsyncFn(&mut Call) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.add_deferred(method.into(), path, handlers::asynchronous(handler), Location::caller())
    }

    /// Adds a coroutine for `GET` (and `HEAD`) of a path. See [`route_coroutine`](Self::route_coroutine).
    #[track_caller]
    pub fn get_coroutine<R: Outcome>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut CoroutineCall<'_>) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.route_coroutine(Method::Get, path, handler)
    }

    /// Adds a coroutine for `POST` of a path. See [`route_coroutine`](Self::route_coroutine).
    #[track_caller]
    pub fn post_coroutine<R: Outcome>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut CoroutineCall<'_>) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.route_coroutine(Method::Post, path, handler)
    }

    /// Adds a coroutine for a method and a path, which are as in [`route`](Self::route): straight-line code that may
    /// wait. See [`CoroutineCall`].
    #[track_caller]
    pub fn route_coroutine<R: Outcome>(
        &mut self,
        method: impl Into<RouteMethod>,
        path: &str,
        handler: impl Fn(&mut CoroutineCall<'_>) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        let method = method.into();
        let label = format!("{method} {}", self.with_prefix(path));
        self.add_deferred(method, path, handlers::coroutine(&label, handler), Location::caller())
    }

    /// Sets the size and number of each worker's coroutine stacks. Default: see [`StackOptions`].
    pub fn stacks(&mut self, stacks: StackOptions) -> &mut Self {
        self.definitions.parts.stacks = stacks;
        self
    }
}
