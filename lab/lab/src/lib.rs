//! The laboratory: runs Shearwater, null servers and peers in turn under the same load, and counts no figure that is not
//! valid. The headline is the server's CPU time per verified response, for that is what a busy client cannot blur.

#![forbid(unsafe_code)]

pub mod bar;
pub mod binaries;
pub mod block;
pub mod client;
pub mod compare;
pub mod dice;
pub mod idle;
pub mod json;
pub mod machine;
pub mod memory;
pub mod probe;
pub mod process;
pub mod record;
pub mod report;
pub mod scenario;
pub mod schedstat;
pub mod server;
pub mod setup;
pub mod site;
pub mod statistics;
pub mod syscalls;
pub mod tally;
pub mod validity;
pub mod wrk;
