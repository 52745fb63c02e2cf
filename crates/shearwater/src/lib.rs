//! An HTTP/1.1 server in a Rust program: one closure, or an [`App`] of routes, on a worker per core.
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
//! Handlers run on the worker's own thread, one request at a time: they should compute, not wait. Those that wait are
//! [async](App::get_async) or [coroutines](App::get_coroutine), and let others have their turn meanwhile. A handler that
//! panics costs its request (`500`, and the connection is closed), nothing else.
//!
//! # What is where
//!
//! - [`App`]: routes with parameters, [fast routes](Fast), scopes, mounts, what runs before and after handlers, state.
//! - [`Request`] and [`Response`]: what a handler that answers at once has in hand.
//! - [`Call`] and [`Line`]: the same for handlers that wait, with bodies that are read and sent as they come; [`offload`] for what blocks.
//! - [`Server`]: addresses, threads, [`Limits`], [`Timeouts`]; [`Running`] and [`Control`]: a server that serves, drained or stopped.
//! - [`testing`]: an app in memory, with the clock in the test's hand.
//! - [`Service`]: the engine as it is, without routes.
//!
//! Typed extractors, multipart, events, WebSocket and layers are those of axum and tower: the crate `shearwater-tower` runs an unchanged
//! router on the same engine.
//!
//! # What to rely on
//!
//! - Options ([`Limits`], [`Timeouts`], [`TcpOptions`], [`StackOptions`]) are plain data: `Limits { fields_max: 50, ..Limits::default() }`.
//!   A field more is no breaking change, so write the rest as it is here.
//! - Errors, and whatever else only the server makes, may get further kinds and fields (`#[non_exhaustive]`). An error's text is complete by
//!   itself, with the system's own words in it: its `source()` has none of them again.
//! - Public items name types of the standard library and of this project alone; `shearwater-tower` names those that it is there for.

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod app;
mod app_later;
mod by_origin;
mod cors;
mod draft;
mod encoded;
mod error;
mod exact;
mod fast;
mod later;
mod line;
mod middleware;
mod node;
mod normal_path;
mod offload;
mod outstanding;
mod pattern;
mod place;
mod plan;
mod planning;
mod report;
mod route;
mod route_error;
mod route_method;
mod routes;
mod server;
mod signals;
mod spelling;
mod states;
pub mod testing;
mod view;

pub use app::App;
pub use cors::Cors;
pub use error::Error;
pub use fast::Fast;
pub use later::Outcome;
pub use line::Line;
pub use offload::{OFFLOAD_IDLE, OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX, Offloaded, offload};
pub use place::Place;
pub use report::Verbosity;
pub use route::Route;
pub use route_error::{RouteError, RouteErrors};
pub use route_method::RouteMethod;
pub use routes::{Routes, RoutesService};
pub use server::{Running, Server};
pub use signals::SignalWatch;

pub use shearwater_engine::http1::{
    Expectation, Field, Framing, Head, Known, Method, ResponseContent, Target, Version, is_protocol,
    is_same_protocol,
};
pub use shearwater_engine::io::os::DescriptorLimit;
pub use shearwater_engine::io::{AcceptError, FileSlice, Item, Shared, SharedFile};
pub use shearwater_engine::{
    AcceptMode, BodyPolicy, BodySink, Call, ConnectionGuard, ConnectionId, Context, Control, DriverChoice,
    End, Failure, FieldLines, Gone, HandedOver, Limits, ListenAddress, ListeningSocket, Notice, On, Overlay,
    Pieces, Prebuilt, Request, Response, Shortfall, StartError, StartReport, Summary, TcpOptions, Timeouts,
    Totals, Wanted, raise_descriptor_limit,
};

/// Timers, tasks and stacks: what waits on a worker.
pub use shearwater_engine::tasks::{self, Order, StackOptions};

/// What an answering type implements to run on the engine directly: one value per worker, without a lock.
pub use shearwater_engine::App as Service;

/// The pages of `docs/guide`: their code is compiled and run with the tests.
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
