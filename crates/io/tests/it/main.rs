//! The crate's tests: the contract on every driver, outputs, listeners, acceptors.

mod acceptor;
mod contract;
#[cfg(target_os = "linux")]
mod descriptors;
mod fs;
mod kernel;
mod listen;
mod os;
mod output;
mod secure;
mod shares;
mod sim;
#[cfg(target_os = "linux")]
mod uring;
