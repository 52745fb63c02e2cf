//! Tests of unchanged axum routers on the engine, on the wire.

#[path = "../../../cli/tests/it/authority.rs"]
mod authority;
mod bodies;
mod budget;
mod ending;
#[path = "../../../shearwater/tests/it/local.rs"]
mod local;
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
