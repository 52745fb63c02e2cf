//! The crate's tests: the engine on the simulated kernel.

mod conversations;
mod harness;
mod seeds;
