//! Unchanged axum applications, tested on the wire. `serve.rs` chooses the server.

pub(crate) mod files;
pub(crate) mod serve;

mod connections;
mod errors;
mod layers;
mod requests;
mod responses;
mod routing;
mod runtime;
mod stores;
mod websocket;
