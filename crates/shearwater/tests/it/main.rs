//! The crate as programs use it, over real sockets.

mod addresses;
mod app;
mod blocked;
mod bodies;
mod client;
mod dispatch;
mod drain;
mod examples;
mod fast;
mod faults;
mod given_sockets;
mod handing_over;
mod hello;
mod limits;
mod middleware;
mod misbehaving;
mod mistakes;
mod mounts;
mod offloaded;
mod patterns;
mod pipelining;
mod served;
mod start;
mod state;
mod unix_sockets;
mod waiting;
