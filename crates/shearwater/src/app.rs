//! Routes by exact path and method.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use shearwater_engine::{BodyPolicy, Request, Response};
use shearwater_http1::{Head, Method, Target};

use crate::Service;
use crate::route::{Handler, Route};

/// Routes of a program, by exact path and method (RFC 9110 section 9).
///
/// A path that has no route is a `404`, a method that its path hasn't a `405` with `Allow`. A route for `GET` serves
/// `HEAD` too, and `OPTIONS` is answered with `Allow`.
///
/// ```
/// use shearwater::{App, Request, Response};
///
/// let mut app = App::new();
/// app.get("/plaintext", |_: &Request, response: &mut Response| {
///     response.text("Hello, world!");
/// });
/// app.post("/echo", |request: &Request, response: &mut Response| {
///     response.body(request.body());
/// })
/// .buffer(1024 * 1024);
/// ```
#[derive(Default)]
pub struct App {
    paths: HashMap<String, Vec<Route>, RandomState>,
    fallback: Option<Route>,
}

impl App {
    /// An app without routes: everything is a `404`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An app in which one handler answers everything, bodies thrown away.
    #[must_use]
    pub fn of(handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static) -> Self {
        let mut app = Self::new();
        app.fallback(handler);
        app
    }

    /// Answers `GET` (and `HEAD`) of a path.
    pub fn get(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Get, path, handler)
    }

    /// Answers `POST` of a path.
    pub fn post(
        &mut self,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.route(Method::Post, path, handler)
    }

    /// Answers one method of a path, which is compared as it is sent: percent-encoding untouched.
    ///
    /// # Panics
    /// If the path does not begin with `/`, or the method is `CONNECT` or no known one, or the pair has a route.
    pub fn route(
        &mut self,
        method: Method,
        path: &str,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        assert!(path.starts_with('/'), "the path {path:?} does not begin with a slash");
        assert!(!matches!(method, Method::Connect | Method::Other), "{method:?} can't be routed");
        let routes = self.paths.entry(path.to_owned()).or_default();
        assert!(routes.iter().all(|route| route.method != method), "{method:?} {path} has a route already");
        let handler: Handler = Box::new(handler);
        routes.push(Route::new(method, handler));
        routes.last_mut().expect("a route was just pushed")
    }

    /// Answers every path that has no route of its own, whatever the method.
    pub fn fallback(
        &mut self,
        handler: impl Fn(&Request<'_>, &mut Response<'_>) + Send + Sync + 'static,
    ) -> &mut Route {
        self.fallback.insert(Route::new(Method::Other, Box::new(handler)))
    }

    /// Whether a route of its own answers this method of a path: its fallback doesn't count. For who asks another one else.
    #[must_use]
    pub fn has_route(&self, method: Method, path: &str) -> bool {
        self.paths.contains_key(path) && matches!(self.find(method, path), Found::Route(_))
    }

    fn find(&self, method: Method, path: &str) -> Found<'_> {
        let Some(routes) = self.paths.get(path) else {
            return self.fallback.as_ref().map_or(Found::NoPath, Found::Route);
        };
        let of = |wanted| routes.iter().find(|route| route.method == wanted);
        match of(method).or_else(|| if method == Method::Head { of(Method::Get) } else { None }) {
            Some(route) => Found::Route(route),
            None => Found::NoMethod(routes),
        }
    }
}

impl Service for App {
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        match self.find(head.method(), head.path()) {
            Found::Route(route) => route.body_policy(),
            Found::NoPath | Found::NoMethod(_) => BodyPolicy::Discard,
        }
    }

    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>) {
        match self.find(request.method(), request.path()) {
            Found::Route(route) => (route.handler)(request, response),
            // The server as a whole (RFC 9110 section 9.3.7): it is there, and has no methods of its own.
            Found::NoPath if request.head().target() == Target::Asterisk => {
                response.status(204);
            }
            Found::NoPath => {
                response.status(404).text("Not Found\n");
            }
            Found::NoMethod(routes) if request.method() == Method::Options => {
                response.status(204).field("Allow", allowed(routes));
            }
            Found::NoMethod(routes) => {
                response.status(405).field("Allow", allowed(routes)).text("Method Not Allowed\n");
            }
        }
    }
}

enum Found<'a> {
    Route(&'a Route),
    NoPath,
    NoMethod(&'a [Route]),
}

/// The methods of a path, as `Allow` lists them (RFC 9110 section 10.2.1).
fn allowed(routes: &[Route]) -> String {
    let has = |wanted| routes.iter().any(|route| route.method == wanted);
    let named = routes.iter().filter_map(|route| route.method.name());
    let implied_head = (has(Method::Get) && !has(Method::Head)).then_some("HEAD");
    let implied_options = (!has(Method::Options)).then_some("OPTIONS");
    named.chain(implied_head).chain(implied_options).collect::<Vec<_>>().join(", ")
}
