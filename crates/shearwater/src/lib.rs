//! An HTTP/1.1 server as a library: one closure, or an [`App`] of routes, with one worker per core.
//!
//! ```no_run
//! use shearwater::{App, Request, Response, Server};
//!
//! fn main() -> Result<(), shearwater::Error> {
//!     let mut app = App::new();
//!     app.get("/plaintext", |_: &Request, response: &mut Response| {
//!         response.text("Hello, World!");
//!     });
//!     Server::new("127.0.0.1:8080").run_app(app)
//! }
//! ```
//!
//! A handler runs on its worker's thread, one request at a time, so it should compute and not block. Handlers that wait
//! are [async](App::get_async) or [coroutines](App::get_coroutine); the worker serves other requests meanwhile. A
//! handler that panics costs its own request (`500`, and the connection is closed) and nothing else.
//!
//! # Overview
//!
//! - [`App`]: routes with parameters, [fast routes](Fast), scopes, mounts, middleware and state.
//! - [`Request`] and [`Response`]: the arguments of a handler that responds immediately.
//! - [`Call`] and [`CoroutineCall`]: the arguments of async handlers and coroutines, with streamed bodies in both directions;
//!   [`offload`] runs blocking work.
//! - [`Server`]: addresses, threads, [`Limits`], [`Timeouts`]; [`Running`] and [`Control`]: a running server, and how
//!   to drain or stop it.
//! - [`testing`]: an app in memory, with a simulated clock.
//! - [`Service`]: the engine's own interface, without routes.
//!
//! Typed extractors, multipart, server-sent events, WebSocket and tower layers come from axum: the crate
//! `shearwater-tower` runs an unchanged router on the same engine.
//!
//! # Stability
//!
//! - Options ([`Limits`], [`Timeouts`], [`TcpOptions`], [`StackOptions`]) are plain structs: `Limits { fields_max: 50,
//!   ..Limits::default() }`. A new field is no breaking change, so always end with `..Default::default()`, as here.
//! - Errors and other types that only the server creates may get further variants and fields (`#[non_exhaustive]`). An
//!   error's text is complete and contains the system's message; `source()` doesn't repeat it.
//! - Public items use only types of the standard library and of this project; `shearwater-tower` also uses those of
//!   http, tower and axum.

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod app;
mod app_deferred;
mod by_origin;
mod coroutine_call;
mod cors;
mod deferred;
mod encoded;
mod error;
mod exact;
mod fast;
mod middleware;
mod node;
mod node_builder;
mod normal_path;
mod offload;
mod outstanding;
mod pattern;
mod plan;
mod planning;
mod report;
mod route;
mod route_context;
mod route_error;
mod route_method;
mod routes;
mod server;
mod signals;
mod source_location;
mod spelling;
mod states;
pub mod testing;

pub use app::App;
pub use coroutine_call::CoroutineCall;
pub use cors::Cors;
pub use deferred::Outcome;
pub use error::Error;
pub use fast::Fast;
pub use offload::{OFFLOAD_IDLE, OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX, Offloaded, offload};
pub use report::Verbosity;
pub use route::Route;
pub use route_error::{RouteError, RouteErrors};
pub use route_method::RouteMethod;
pub use routes::{Routes, RoutesService};
pub use server::{Running, Server};
pub use signals::SignalWatch;
pub use source_location::SourceLocation;

pub use shearwater_engine::http1::{
    Expectation, Field, Framing, Head, KnownField, Method, ResponseContent, Target, Version, is_protocol,
    is_same_protocol,
};
pub use shearwater_engine::io::os::DescriptorLimit;
pub use shearwater_engine::io::{AcceptError, FileSlice, Item, Shared, SharedFile};
pub use shearwater_engine::{
    AcceptMode, BodyPolicy, Call, ConnectionGuard, ConnectionId, Context, Control, DriverChoice, End,
    Failure, FieldLines, Gone, HandedOver, HeaderRules, LimitWarning, Limits, ListenAddress, ListeningSocket,
    Notice, On, Pieces, Prebuilt, Request, Response, Service, StartError, StartReport, Summary, TcpOptions,
    Timeouts, Totals, Wanted, raise_descriptor_limit,
};

/// Timers, tasks and coroutine stacks of a worker.
pub use shearwater_engine::tasks::{self, Order, StackOptions};

/// Runs the code of `docs/guide` as doc tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/guide/routes.md")]
    struct Routes;
    #[doc = include_str!("../../../docs/guide/handlers.md")]
    struct Handlers;
    #[doc = include_str!("../../../docs/guide/async.md")]
    struct AsyncHandlers;
    #[doc = include_str!("../../../docs/guide/coroutines.md")]
    struct Coroutines;
    #[doc = include_str!("../../../docs/guide/bodies-and-streams.md")]
    struct BodiesAndStreams;
    #[doc = include_str!("../../../docs/guide/testing.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/guide/fast-routes.md")]
    struct FastRoutes;
    #[doc = include_str!("../../../docs/guide/middleware.md")]
    struct Middleware;
    #[doc = include_str!("../../../docs/guide/state.md")]
    struct State;
}
