//! What a program gives to a server: routes, fast routes, mounts, state, and what runs around them.

use std::any::{TypeId, type_name};
use std::fmt;
use std::ops::ControlFlow;
use std::panic::Location;

use shearwater_engine::tasks::StackOptions;
use shearwater_engine::{Request, Response};
use shearwater_http1::Method;

use crate::fast::Fast;
use crate::later::MakeLater;
use crate::middleware::Middleware;
use crate::pattern;
use crate::plan::MakeService;
use crate::route::{Handler, Route};
use crate::states::{MakeLocal, States};
use crate::{Place, RouteError, RouteErrors, RouteMethod, Routes, Service};

/// Something with a path, and where it was given.
pub(crate) struct Given<T> {
    pub(crate) place: Place,
    pub(crate) path: String,
    pub(crate) what: T,
}

/// What answers beneath a prefix.
pub(crate) enum Beneath {
    Fallback(Route),
    /// The number of a service.
    Mount(usize),
}

/// What a program answers with (RFC 9110 section 9).
///
/// A request is answered by the route of its exact path, else of a pattern such as `/user/{id}`, else by the mount or the fallback with the
/// longest prefix. A path that has nothing is a `404`, a method that its path hasn't a `405` with `Allow`, and a method that is no standard one and that
/// no route has a `501`. A route for `GET` serves `HEAD` too, and `OPTIONS` is answered with `Allow`.
///
/// Mistakes (two routes for the same requests, a path that no request has) are told at the start, all at once and each with the places in
/// the program: by [`build`](Self::build), or by [`Server::run_app`](crate::Server::run_app) before it binds.
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
    /// That of the scope at hand.
    prefix: String,
    pub(crate) routes: Vec<Given<Route>>,
    pub(crate) fast: Vec<Given<Fast>>,
    pub(crate) beneath: Vec<Given<Beneath>>,
    pub(crate) services: Vec<MakeService>,
    pub(crate) middleware: Middleware,
    pub(crate) states: States,
    pub(crate) locals: Vec<MakeLocal>,
    pub(crate) later: Vec<MakeLater>,
    pub(crate) stacks: StackOptions,
    state_places: Vec<((&'static str, TypeId), Place)>,
    pub(crate) errors: Vec<RouteError>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("routes", &self.routes.len())
            .field("fast", &self.fast.len())
            .field("beneath", &self.beneath.len())
            .field("errors", &self.errors)
            .finish_non_exhaustive()
    }
}

impl App {
    /// An app without routes: everything is a `404`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An app in which one handler answers everything, bodies thrown away.
    #[must_use]
    #[track_caller]
    pub fn of(handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static) -> Self {
        let mut app = Self::new();
        app.fallback(handler);
        app
    }

    /// Answers `GET` (and `HEAD`) of a path.
    #[track_caller]
    pub fn get(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Get, path, handler)
    }

    /// Answers `POST` of a path.
    #[track_caller]
    pub fn post(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Post, path, handler)
    }

    /// Answers `PUT` of a path.
    #[track_caller]
    pub fn put(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Put, path, handler)
    }

    /// Answers `PATCH` of a path (RFC 5789).
    #[track_caller]
    pub fn patch(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Patch, path, handler)
    }

    /// Answers `DELETE` of a path.
    #[track_caller]
    pub fn delete(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Delete, path, handler)
    }

    /// Answers one method of a path, a standard one ([`Method`]) or an extension such as `"PROPFIND"`. The path is compared as it is sent: percent-encoding untouched.
    ///
    /// `{name}` stands for a segment or a part of one that isn't empty, `{*name}` at the end for all that is left of the path; a handler gets at what
    /// stood there by [`Request::param`]. `{{` and `}}` are braces. Where several fit, the exact path goes first, then what is the same up
    /// to a later place.
    ///
    /// A path that no request can have, a method that no request can have or that can't be routed (`CONNECT`), and a pair that has a route
    /// already are errors at the start.
    #[track_caller]
    pub fn route(
        &mut self,
        method: impl Into<RouteMethod>,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.add(method.into(), path, Handler::Sync(Box::new(handler)), Location::caller())
    }

    pub(crate) fn add(
        &mut self,
        method: RouteMethod,
        path: &str,
        handler: Handler,
        location: &'static Location<'static>,
    ) -> &mut Route {
        let path = self.beneath_prefix(path);
        let place = Place::new(format!("{method} {path}"), location);
        self.routes.push(Given { place, path, what: Route::new(method, handler) });
        &mut self.routes.last_mut().expect("a route was just pushed").what
    }

    /// Answers an exact path with what is encoded once, at the start. Requests with other methods than its own go on to patterns,
    /// mounts and fallbacks, unless the path has other routes.
    ///
    /// A path with parameters, and a method that has a route already, are errors at the start.
    #[track_caller]
    pub fn fast(&mut self, path: &str, fast: Fast) -> &mut Self {
        let path = self.beneath_prefix(path);
        let place = Place::new(format!("the fast route {path}"), Location::caller());
        self.fast.push(Given { place, path, what: fast });
        self
    }

    /// Answers every path that has no route of its own, whatever the method: in a scope, those beneath its prefix.
    ///
    /// A second one in the same scope is an error at the start.
    #[track_caller]
    pub fn fallback(
        &mut self,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        let path = if self.prefix.is_empty() { "/".to_owned() } else { self.prefix.clone() };
        let place = Place::new(format!("the fallback of {path}"), Location::caller());
        let route = Route::new(Method::Other.into(), Handler::Sync(Box::new(handler)));
        self.beneath.push(Given { place, path, what: Beneath::Fallback(route) });
        match self.beneath.last_mut().map(|given| &mut given.what) {
            Some(Beneath::Fallback(route)) => route,
            _ => unreachable!("a fallback was just pushed"),
        }
    }

    /// Answers what lies beneath a prefix and has no route of its own with a service of each worker's: `make` is called on the worker's
    /// thread, with its number. `/` is everything.
    ///
    /// The service sees the path behind the prefix ([`Request::path`]), and is asked for the policy of a body with the whole head.
    /// Two mounts with the same prefix, and a prefix whose paths a pattern takes, are errors at the start.
    #[track_caller]
    pub fn mount<S: Service + 'static>(
        &mut self,
        prefix: &str,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> &mut Self {
        let path = self.beneath_prefix(prefix);
        let place = Place::new(format!("the mount {path}"), Location::caller());
        self.beneath.push(Given { place, path, what: Beneath::Mount(self.services.len()) });
        self.services.push(Box::new(move |worker| Box::new(make(worker))));
        self
    }

    /// Gives what `define` gives beneath a prefix: its routes, fast routes, mounts and fallback. What runs before and after handlers in it runs for
    /// all requests beneath the prefix, whoever answers them. The empty path is the prefix itself.
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
        let path = self.beneath_prefix(prefix);
        let inner = match pattern::prefix(&path) {
            Ok(inner) => inner,
            Err(why) => {
                let given = Place::new(format!("the scope {path}"), Location::caller());
                self.errors.push(RouteError::Refused { given, why });
                self.prefix.clone()
            }
        };
        let outer = std::mem::replace(&mut self.prefix, inner);
        define(self);
        self.prefix = outer;
        self
    }

    /// Runs something before handlers. `ControlFlow::Break(())` says that it has answered: then neither those behind it nor the
    /// handler run.
    ///
    /// Those of outer scopes run first, those of one scope in the order in which they were given; for paths that have nothing
    /// (`404`, `405`) too. A body that a route streams has been handed on by then.
    pub fn before(
        &mut self,
        step: impl Fn(&Request<'_>, &mut Response<'_>) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> &mut Self {
        self.middleware.push_before(self.prefix.clone(), Box::new(step));
        self
    }

    /// Runs something after handlers, in the order opposite to [`before`](Self::before), whoever has answered: it sees the status and may
    /// change what is answered. Of an answer that comes later (an async handler's, a coroutine's, a service's), whether it happens to be there at
    /// once or not, it sees nothing, and what it sets of fields and overlays is laid over that. It doesn't run where a handler panics, nor for requests that the server refuses itself.
    pub fn after(
        &mut self,
        step: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Self {
        self.middleware.push_after(self.prefix.clone(), Box::new(step));
        self
    }

    /// Gives all workers a value, for [`Request::state`]. A second one of the same type is an error at the start.
    #[track_caller]
    pub fn state<T: Send + Sync + 'static>(&mut self, state: T) -> &mut Self {
        self.claim_state("state", (TypeId::of::<T>(), type_name::<T>()), Location::caller());
        self.states.push(state);
        self
    }

    /// Makes a value for each worker, on its own thread and with its number, for [`Request::local`]: it needs no lock and may be one that can't be
    /// sent to other threads. A second one of the same type is an error at the start.
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
        self.locals.push(MakeLocal::new(make));
        self
    }

    /// Checks all that was given.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(self) -> Result<Routes, RouteErrors> {
        Routes::of(self)
    }

    /// A path as it is given in the scope at hand.
    pub(crate) fn beneath_prefix(&self, path: &str) -> String {
        match path.is_empty() || path.starts_with('/') {
            true => format!("{}{path}", self.prefix),
            false => path.to_owned(),
        }
    }

    /// Notes that there is state of a type, which it may have once as shared and once as local.
    fn claim_state(&mut self, kind: &'static str, of: (TypeId, &str), location: &'static Location<'static>) {
        let given = Place::new(format!("the {kind} of type {}", of.1), location);
        match self.state_places.iter().find(|(known, _)| *known == (kind, of.0)) {
            Some((_, with)) => self.errors.push(RouteError::Conflict { given, with: with.clone() }),
            None => self.state_places.push(((kind, of.0), given)),
        }
    }
}
