//! Tests of unchanged axum routers on the engine, on the wire.

#[path = "../../../cli/tests/it/authority.rs"]
mod authority;
mod bodies;
mod budget;
mod ending;
mod http2;
mod http2_client;
mod http2_requests;
#[path = "../../../shearwater/tests/it/local.rs"]
mod local;
mod nested;
#[path = "../../../shearwater/tests/it/process.rs"]
mod process;
mod responses;
mod routes;
mod secured;
mod served;
mod serving;
mod tasks;
mod trailers;
mod upgrades;
