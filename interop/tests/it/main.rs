//! Unchanged axum applications, tested on the wire. `serve.rs` chooses the servers.
//!
//! Only what other people's libraries do with the bridge is here. `crates/tower/tests` and `demo/tests` show the bridge itself.

mod connections;
mod files;
mod grpc;
mod layers;
mod requests;
mod responses;
mod routing;
mod serve;
mod stores;
mod websocket;
