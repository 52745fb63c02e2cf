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
//! `shearwater_tower::serve(listener, router)` replaces `axum::serve(listener, router)`, make services and
//! [`Serve::with_graceful_shutdown`] included. HTTPS has the feature `tls` and `bind_tls`.
//!
//! # Threads
//!
//! A worker's thread reads the request, polls the service and writes the response. A service that isn't ready at its
//! first poll continues as a task of the worker. Timers, sockets, `tokio::spawn` and `spawn_blocking` work as usual, in one of
//! two modes:
//!
//! - [`bind_each`], and [`run`](Serve::run) without a runtime: each worker has a tokio runtime of its own, on its thread. What a
//!   handler awaits or spawns stays there, and wakes no other thread. `tokio::task::spawn_local` works.
//! - [`serve`](serve()) and [`bind`] awaited within a runtime, such as that of `#[tokio::main]`: workers enter that runtime,
//!   because pools made there have their sockets there. What a handler awaits is fetched by the runtime's threads, which
//!   wake the worker.
//!
//! Make pools and clients of other servers in the function of [`bind_each`]: one for each worker.
//!
//! ```no_run
//! use axum::{Router, routing::get};
//!
//! fn main() -> Result<(), shearwater::Error> {
//!     let make = async |_worker| Router::new().route("/", get(|| async { "Hello, World!" }));
//!     shearwater_tower::bind_each("127.0.0.1:3000", make).run()
//! }
//! ```
//!
//! A handler that blocks stalls its worker: use `spawn_blocking`.
//!
//! # Differences from axum on hyper
//!
//! - `Date` and `Server` are set by the engine. A status outside 200 to 599 becomes a 500.
//! - Trailers are sent even if the request has no `TE: trailers` and the response no `Trailer`, and in HTTP/1.1 make a body
//!   chunked.
//! - A service that returns an error is a 500. If the body of a response fails, the connection is closed; in HTTP/2 the
//!   stream is reset.
//! - HTTP/2 is served by TLS, and in clear to clients that begin with it. The URI of such a request has scheme and
//!   authority. As with hyper there is no `Host` field, unless the client sent only that.
//! - Only [registered](Serve::upgrades) upgrade protocols work, by default WebSocket. An `Upgrade` header with other
//!   protocols is ignored. `CONNECT` is rejected.

#![forbid(unsafe_code)]

mod body;
mod body_channel;
mod bridge;
mod budget;
mod call;
mod head_pool;
mod host;
pub mod limits;
mod request_head;
mod response;
mod running;
mod serve;
mod service;
mod upgrades;
mod worker_pool;

pub use body::Body;
pub use body_channel::BodyError;
pub use running::Running;
#[cfg(feature = "tls")]
pub use serve::bind_tls;
pub use serve::{Listen, Serve, bind, bind_each, serve};
#[cfg(feature = "axum")]
pub use service::{AxumRequests, ByPeer, OfAxum};
pub use service::{BoxError, CloneService, HttpService, MakeHttpService, Maker, OfService};

/// Runs the code of `docs/guide/axum.md` as doc tests.
#[cfg(all(doctest, feature = "axum", feature = "tls"))]
#[doc = include_str!("../../../docs/guide/axum.md")]
struct Guide;
