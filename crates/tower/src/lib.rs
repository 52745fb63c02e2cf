//! Runs an unchanged axum router, or any other [tower service](HttpService), on Shearwater's engine.
//!
//! ```no_run
//! use axum::{Router, routing::get};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), shearwater::Error> {
//!     let router = Router::new().route("/", get(|| async { "Hello, World!" }));
//!     shearwater_tower::bind("127.0.0.1:3000", router).await
//! }
//! ```
//!
//! `shearwater_tower::serve(listener, router)` takes the place of `axum::serve(listener, router)`, make services included, and
//! [`Serve::with_graceful_shutdown`] is what it is there. Without a runtime, `bind(address, router).run()` does it.
//!
//! # What runs where
//!
//! A request is read, and its answer written, by a worker's own thread. The service's future runs there too, as a task of the worker
//! where it isn't ready at its first poll. The thread has entered a tokio runtime: timers, sockets, `tokio::spawn` and `spawn_blocking`
//! work as ever. A handler that blocks holds its worker up; `spawn_blocking` is for that. `tokio::task::spawn_local` and `LocalSet` don't work there.
//!
//! # What is different
//!
//! - Bodies of requests are limited to 10 MiB by default, whatever the service would take: see [`Serve::body_bytes_max`].
//! - `Date` and `Server` are the engine's own. A status that isn't 200 to 599 becomes a 500. Trailers are left out.
//! - A service that fails instead of answering is a 500; one whose answer's body fails has its connection cut off.
//! - Connections are upgraded to [registered](Serve::upgrades) protocols only, which is WebSocket by default. An `Upgrade` field that offers
//!   others is ignored. `CONNECT` is refused.

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod answer;
mod body;
mod body_error;
mod bridge;
mod call;
mod connect_info;
mod feed;
mod handshake;
mod head_pool;
mod intake;
pub mod limits;
mod listen;
mod make_service;
mod names;
mod request_head;
mod response_head;
mod running;
mod runtime;
mod seat;
mod serve;
mod socket;
mod spare;
mod tower_service;
mod upgrades;
mod usual_values;

pub use body::Body;
pub use body_error::BodyError;
pub use listen::Listen;
#[cfg(feature = "axum")]
pub use make_service::{AxumRequests, ByPeer, OfAxum};
pub use make_service::{CloneService, MakeHttpService, Maker, OfService};
pub use running::Running;
pub use serve::{Serve, bind, serve};
pub use tower_service::{BoxError, HttpService};
