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
//! Handlers run on the worker's own thread, one request at a time: they should compute, not wait. A handler that
//! panics costs its request (`500`, and the connection is closed), nothing else.

#![forbid(unsafe_code)]

mod app;
mod by_origin;
mod cors;
mod draft;
mod encoded;
mod error;
mod fast;
mod middleware;
mod node;
mod normal_path;
mod pattern;
mod place;
mod plan;
mod planning;
mod report;
mod route;
mod route_error;
mod routes;
mod server;
mod signals;
mod states;
mod view;

pub use app::App;
pub use cors::Cors;
pub use error::Error;
pub use fast::Fast;
pub use place::Place;
pub use report::Verbosity;
pub use route::Route;
pub use route_error::{RouteError, RouteErrors};
pub use routes::{Routes, RoutesService};
pub use server::{Running, Server};

pub use shearwater_engine::http1::{Field, Head, Known, Method, Target, Version};
pub use shearwater_engine::io::{FileSlice, Item, Shared, SharedFile};
pub use shearwater_engine::{
    AcceptMode, BodyPolicy, BodySink, Context, Control, DriverChoice, Failure, FieldLines, Limits,
    ListenAddress, Notice, On, Overlay, Pieces, Prebuilt, Request, Response, Shortfall, StartError,
    StartReport, Summary, TcpOptions, Timeouts, Totals, Wanted, raise_descriptor_limit,
};

/// What an answering type implements to run on the engine directly: one value per worker, without a lock.
pub use shearwater_engine::App as Service;

/// The pages of `docs/guide`: their code is compiled and run with the tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/guide/routes.md")]
    struct Routes;
    #[doc = include_str!("../../../docs/guide/fast-routes.md")]
    struct FastRoutes;
    #[doc = include_str!("../../../docs/guide/middleware.md")]
    struct Middleware;
    #[doc = include_str!("../../../docs/guide/state.md")]
    struct State;
}
