//! The soak: connections of every kind, millions of them, every answer compared byte for byte; and then nothing is left of them.
//!
//! `cargo xtask soak` prints a line per promise. Exit code 0: all held; 1: at least one did not; 2: it could not be run, and why.

mod bad_requests;
mod catalogue;
mod crew;
mod exchange;
mod expected;
mod kind;
mod left;
mod run;
mod script;
mod site;
mod slow;
mod tally;
mod told;
mod visit;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::harness::common::Common;
use crate::harness::drivers::DriverArgs;
use crate::harness::process;

const LARGE_RUN: &str = "\
A short run by default. The large one:
  cargo xtask soak --requests 10000000 --connections 1000000
By the mix of kinds a connection has nine requests on average; where more are asked for, more connections are kept long.

Asked: every answer is the one expected, byte for byte but for its date; at the end the descriptors of both servers (the \
program with files, the example with bodies) are those of the start, their memory that of the warm-up and at most 2 MiB a \
worker, no connection is open by their own count, they have counted as many requests and connections as their clients, and \
nobody wakes up any more.";

/// The arguments of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
#[command(after_help = LARGE_RUN)]
pub(crate) struct Args {
    /// Answers to get, of each driver
    #[arg(long, default_value_t = 500_000)]
    requests: u64,
    /// Connections to open, of each driver
    #[arg(long, default_value_t = 50_000)]
    connections: u64,
    /// The run fails if it takes longer, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    seconds_max: u64,
    /// Client threads, beside the one with the slow clients
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
    /// The example that takes bodies [default: target/release/examples/trial_server, built first]
    #[arg(long, value_name = "PATH")]
    example_bin: Option<PathBuf>,
    #[command(flatten)]
    each: DriverArgs,
}

/// Runs the soak for every driver that was asked for.
pub(crate) fn run(args: &Args) -> ExitCode {
    process::raise_descriptor_limit();
    args.each.run_each("soak", |common, name| {
        let common = Common { example_bin: args.example_bin.clone(), ..common };
        run::run(&common, &args.amount(), name)
    })
}

impl Args {
    fn amount(&self) -> crew::Amount {
        let Self { requests, connections, seconds_max, threads, .. } = *self;
        crew::Amount { requests, connections, seconds_max, threads, seed: self.each.seed }
    }
}
