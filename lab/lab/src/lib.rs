//! The laboratory: runs Shearwater, null servers and peers in turn under the same load, and counts no figure that is not
//! valid. The headline is the server's CPU time per verified response, for that is what a busy client cannot blur.

#![forbid(unsafe_code)]

pub mod allocations;
pub mod alone;
pub mod bar;
pub mod binaries;
pub mod block;
pub mod client;
pub mod compare;
pub mod core_time;
mod counts;
pub mod crowd;
pub mod dice;
pub mod downloads;
pub mod handlers;
pub mod identity;
pub mod idle;
pub mod instructions;
pub mod json;
pub mod lasting;
pub mod machine;
pub mod memory;
pub mod order;
pub mod peers;
pub mod probe;
pub mod process;
pub mod quiet;
pub mod record;
pub mod release;
pub mod report;
pub mod scenario;
pub mod schedstat;
pub mod server;
pub mod setup;
pub mod site;
pub mod sites;
pub mod statistics;
pub mod syscalls;
pub mod tally;
pub mod validity;
pub mod verdicts;
pub mod wrk;
