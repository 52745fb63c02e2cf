//! The crate's tests: the engine on the simulated kernel.

mod accepting;
mod bodies;
mod closing;
mod conversations;
mod deferred;
mod deferred_ends;
mod dispatching;
mod draining;
mod exchanges;
mod harness;
mod limits;
mod listeners;
mod memory;
mod proxies;
mod rates;
mod reloading;
mod reports;
mod responses;
mod saturation;
mod secured;
mod seeds;
mod sharing;
mod timeouts;
mod trailers;
mod tunnels;
mod unsent;
