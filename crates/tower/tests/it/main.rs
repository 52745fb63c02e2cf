//! Tests of unchanged axum routers on the engine, on the wire.

mod bodies;
mod drain;
mod fast;
mod listeners;
mod make_services;
#[path = "../../../shearwater/tests/it/process.rs"]
mod process;
mod readiness;
mod responses;
mod routes;
mod served;
mod signals;
mod tasks;
mod traits;
mod upgrades;
