//! Unchanged axum applications, tested on the wire. `serve.rs` chooses the server.

pub(crate) mod client;
pub(crate) mod folder;
pub(crate) mod gate;
pub(crate) mod serve;

mod body_limits;
mod client_gone;
mod connect_info;
mod errors;
mod expect;
mod extractors;
mod flow;
mod http10;
mod jwt;
mod key_value;
mod multipart;
mod panics;
mod routing;
mod runtime;
mod shutdown;
mod sql;
mod sse;
mod static_files;
mod streaming;
mod todos;
mod websocket;
mod wire;
