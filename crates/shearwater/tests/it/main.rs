//! Tests of the public API, over real sockets.

mod addresses;
mod app;
mod around;
mod bodies;
mod deferred;
mod dispatch;
mod drain;
mod examples;
mod fast;
mod full;
mod limits;
mod middleware;
mod misbehaving;
mod mistakes;
mod observed;
mod patterns;
mod process;
mod proxies;
mod reloading;
mod served;
mod service_manager;
mod sockets;
mod start;
mod successor;
mod traits;
mod upgrades;
