//! The crate as programs use it, over real sockets.

mod addresses;
mod app;
mod bodies;
mod client;
mod dispatch;
mod drain;
mod faults;
mod given_sockets;
mod hello;
mod limits;
mod pipelining;
mod served;
mod start;
mod unix_sockets;
