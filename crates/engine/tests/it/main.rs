//! The crate's tests: the engine on the simulated kernel.

mod accepting;
mod bodies;
mod closing;
mod conversations;
mod counting;
mod dispatching;
mod draining;
mod eviction;
mod half_closed;
mod harness;
mod later;
mod later_bounds;
mod later_deadlines;
mod limits;
mod looking;
mod paces;
mod reporting;
mod responses;
mod resting;
mod saturation;
mod seeds;
mod smuggling;
mod timeouts;
