//! Tests of unchanged axum routers on the engine, on the wire.

mod bodies;
mod budget;
mod ending;
#[path = "../../../shearwater/tests/it/local.rs"]
mod local;
#[path = "../../../shearwater/tests/it/process.rs"]
mod process;
mod responses;
mod routes;
mod served;
mod serving;
mod tasks;
mod trailers;
mod upgrades;
