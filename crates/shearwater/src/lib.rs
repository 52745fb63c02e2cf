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
mod error;
mod report;
mod route;
mod server;
mod signals;

pub use app::App;
pub use error::Error;
pub use report::Verbosity;
pub use route::Route;
pub use server::{Running, Server};

pub use shearwater_engine::http1::{Expectation, Field, Framing, Head, Known, Method, Target, Version};
pub use shearwater_engine::io::{FileSlice, Item, Shared, SharedFile};
pub use shearwater_engine::{
    AcceptMode, BodyPolicy, BodySink, Call, ConnectionId, Control, DriverChoice, Failure, FieldLines, Gone,
    HandedOver, Limits, ListenAddress, ListeningSocket, Notice, On, Overlay, Pieces, Prebuilt, Request,
    Response, Shortfall, StartError, StartReport, Summary, TcpOptions, Timeouts, Totals, Wanted,
    raise_descriptor_limit,
};

/// What an answering type implements to run on the engine directly: one value per worker, without a lock.
pub use shearwater_engine::App as Service;
