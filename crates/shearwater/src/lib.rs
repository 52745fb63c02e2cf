//! An HTTP server as a library: an [`App`] of routes, with one worker per core.
//!
//! ```no_run
//! use shearwater::{App, Server, get};
//!
//! fn main() -> Result<(), shearwater::Error> {
//!     Server::bind("127.0.0.1:8080").run(App::new().route("/plaintext", get("Hello, World!")))
//! }
//! ```
//!
//! A handler runs on its worker's thread, one request at a time, so it should compute and not block. Handlers that wait
//! are async ([`later`]) or coroutines ([`line()`]); the worker serves other requests meanwhile. A handler that panics costs
//! its own request (`500`, and the connection is closed) and nothing else.
//!
//! # Overview
//!
//! - [`Server`]: addresses, threads, [`Limits`], [`Timeouts`]; [`Running`] and [`Control`]: a running server, and how
//!   to drain, stop or [reload](App::reload) it; [`Operator`]: reloads and upgrades with their results.
//! - [`App`]: the routes of a program, with parameters, scopes, mounts, [`Middleware`] and a state for each worker.
//! - [`get`], [`post`], [`on`] …: a path's [`MethodTable`]. [`Handler`] lists what a handler may be: a constant ([`Fast`]), a function, an
//!   async function, a coroutine.
//! - [`Request`] and [`Response`]: the arguments of a handler that responds immediately. [`Call`] and [`Line`]: those of async
//!   handlers and coroutines, with streamed bodies in both directions. [`offload()`] runs blocking work.
//! - [`Reply`]: what a handler may return; [`Failure`]: what it returns instead.
//! - [`Error`]: errors of starting and running, complete in one sentence; [`RouteErrors`]: all mistakes in routes.
//! - [`testing`]: an app in memory, with a simulated clock.
//! - [`Service`] and [`engine`]: the lower-level interface, without routes.
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

mod address;
mod app;
mod call;
#[cfg(feature = "compress")]
mod compression;
pub mod engine;
mod error;
mod fast;
mod hand_over_error;
mod handed_state;
mod handlers;
mod manager_reports;
mod method_table;
mod middleware;
mod observe;
mod operator;
mod path;
mod predecessor;
mod reply;
mod report;
mod request;
mod router;
mod running;
#[cfg(feature = "tls")]
mod secure;
mod server;
mod service_manager;
mod signal_functions;
mod signal_watch;
mod successor;
pub mod testing;

pub use app::{App, MakeService};
pub use call::{Body, Call, Discarded, Reading, Sent};
#[cfg(feature = "compress")]
pub use compression::{
    COMPRESSED_BODIES_WAITING_MAX, COMPRESSED_BODY_BYTES_MAX, COMPRESSED_BODY_WAIT, COMPRESSED_STREAMS_MAX,
    compress,
};
pub use error::{Error, RouteError, RouteErrors, SourceLocation};
pub use fast::{Cors, Fast};
pub use hand_over_error::HandOverError;
#[doc(hidden)]
pub use handlers::kinds;
pub use handlers::{
    BodyHandler, Handler, Line, LineBody, OFFLOAD_IDLE, OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX, Offloaded,
    Prepared, buffered, later, later_reading, line, line_reading, offload,
};
pub use method_table::{MethodTable, delete, get, on, patch, post, put};
pub use middleware::{After, Guard, Middleware, ScopeCors, after, guard};
pub use operator::{Changed, OperationResult, Operator};
pub use predecessor::TakeOverError;
#[cfg(feature = "json")]
pub use reply::Json;
pub use reply::{Failure, Head, Reply, Status};
pub use report::{NOT_RELOADED, Verbosity};
pub use request::Request;
pub use router::{RouteMethod, Routes, RoutesService};
pub use running::Running;
pub use server::Server;
pub use service_manager::InheritError;
#[cfg(feature = "tls")]
pub use shearwater_tls as tls;
pub use signal_watch::SignalWatch;
pub use successor::Successor;

#[doc(inline)]
pub use shearwater_engine::{
    AcceptMode, AddressChange, AddressesChanging, ClientHeader, Control, DriverChoice, ExchangeEnd,
    FinishedExchange, Gone, HandedOver, Http2Options, LimitWarning, Limits, ListenAddress, ListeningSocket,
    Message, MessageLevel, Notice, Reload, ReloadError, Reloading, Response, Service, StartError,
    StartReport, Summary, TcpOptions, ThreadFailure, Timeouts, TlsSession, Totals, TrustedProxies,
    TrustedProxyError, http1::Method,
};

/// Timers, tasks and coroutine stacks of a worker.
pub use shearwater_engine::tasks;
#[doc(inline)]
pub use shearwater_engine::tasks::{Order, StackOptions};

/// Runs the code of `docs/guide` as doc tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../README.md")]
    struct Readme;
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
