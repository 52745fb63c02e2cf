//! Routes with async handlers and coroutines.

use std::panic::Location;

use shearwater_engine::Call;
use shearwater_engine::tasks::StackOptions;
use shearwater_http1::Method;

use crate::deferred::MakeDeferred;
use crate::route::Handler;
use crate::{App, CoroutineCall, Outcome, Route, RouteMethod, deferred};

impl App {
    fn add_deferred(
        &mut self,
        method: RouteMethod,
        path: &str,
        make: MakeDeferred,
        location: &'static Location<'static>,
    ) -> &mut Route {
        self.deferred.push(make);
        self.add(method, path, Handler::Deferred(self.deferred.len() - 1), location)
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
        self.add_deferred(method.into(), path, deferred::asynchronous(handler), Location::caller())
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
        self.add_deferred(method, path, deferred::coroutine(&label, handler), Location::caller())
    }

    /// Sets the size and number of each worker's coroutine stacks. Default: see [`StackOptions`].
    pub fn stacks(&mut self, stacks: StackOptions) -> &mut Self {
        self.stacks = stacks;
        self
    }
}
