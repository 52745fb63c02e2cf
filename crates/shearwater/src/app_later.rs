//! Routes whose handlers may wait.

use std::panic::Location;

use shearwater_engine::Call;
use shearwater_engine::tasks::StackOptions;
use shearwater_http1::Method;

use crate::later::MakeLater;
use crate::route::Handler;
use crate::{App, Line, Outcome, Route, RouteMethod, later};

impl App {
    fn add_later(
        &mut self,
        method: RouteMethod,
        path: &str,
        make: MakeLater,
        location: &'static Location<'static>,
    ) -> &mut Route {
        self.later.push(make);
        self.add(method, path, Handler::Later(self.later.len() - 1), location)
    }

    /// Answers `GET` (and `HEAD`) of a path with an async handler: see [`route_async`](Self::route_async).
    #[track_caller]
    pub fn get_async<R: Outcome>(
        &mut self,
        path: &str,
        handler: impl AsyncFn(&mut Call) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.route_async(Method::Get, path, handler)
    }

    /// Answers `POST` of a path with an async handler: see [`route_async`](Self::route_async).
    #[track_caller]
    pub fn post_async<R: Outcome>(
        &mut self,
        path: &str,
        handler: impl AsyncFn(&mut Call) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.route_async(Method::Post, path, handler)
    }

    /// Answers one method of a path with an async handler, whose future runs on the worker's own thread: it may wait, and needn't be one
    /// that can be sent to other threads. What it waits for may be anything that wakes its task; of timers there are the worker's
    /// own ([`Call::sleep`]).
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
        self.add_later(method.into(), path, later::asynchronous(handler), Location::caller())
    }

    /// Answers `GET` (and `HEAD`) of a path with a coroutine: see [`route_coroutine`](Self::route_coroutine).
    #[track_caller]
    pub fn get_coroutine<R: Outcome>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut Line<'_>) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.route_coroutine(Method::Get, path, handler)
    }

    /// Answers `POST` of a path with a coroutine: see [`route_coroutine`](Self::route_coroutine).
    #[track_caller]
    pub fn post_coroutine<R: Outcome>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut Line<'_>) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        self.route_coroutine(Method::Post, path, handler)
    }

    /// Answers one method of a path with a coroutine: straight-line code that may wait in the middle, see [`Line`].
    #[track_caller]
    pub fn route_coroutine<R: Outcome>(
        &mut self,
        method: impl Into<RouteMethod>,
        path: &str,
        handler: impl Fn(&mut Line<'_>) -> R + Send + Sync + 'static,
    ) -> &mut Route {
        let method = method.into();
        let label = format!("{method} {}", self.beneath_prefix(path));
        self.add_later(method, path, later::coroutine(&label, handler), Location::caller())
    }

    /// The stacks of coroutines, of each worker. Default: see [`StackOptions`].
    pub fn stacks(&mut self, stacks: StackOptions) -> &mut Self {
        self.stacks = stacks;
        self
    }
}
