//! The four-phase stress test: `wrk` at full counts against the smallest program, and not one answer or connection lost.
//!
//! `cargo xtask stress` prints a line per promise. Exit code 0: all held; 1: at least one did not; 2: it could not be run, and why.

mod bystander;
mod counted;
mod figures;
mod needs;
mod phase;
mod run;
mod wrk;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::harness::drivers::{Drivers, NOT_RUN};

const PHASES_TOLD: &str = "\
Phases, in order, 2 s apart:
  warm-up   wrk -t8 -c1000   5 s
  baseline  wrk -t8 -c10000 10 s
  headers   wrk -t4 -c5000  10 s  a fresh X-Large-Header of 10,000 to 60,000 bytes in every request
  payloads  wrk -t4 -c100   15 s  POST of 1 to 9.4 MB, one in five with a 40,000-byte header

Asked of each: no answer but 2xx, no error of connecting, reading or writing, no timeout (5 s; 15 s for payloads), \
no byte missing, and a bystander with ten requests a second waits at most 5 s. Asked of the server: as many requests and connections as wrk made, no connection left open, and a minute \
later the descriptors of the start and no more than 16 MiB beyond its memory.

The counts are never lowered; where the machine can't hold them, the command says what is missing and does not start.";

/// The arguments of `cargo xtask stress`.
#[derive(Debug, clap::Args)]
#[command(after_help = PHASES_TOLD)]
pub(crate) struct Args {
    /// Which drivers, one whole run each
    #[arg(long, value_enum, default_value_t = Drivers::Both)]
    driver: Drivers,
    /// The program [default: target/release/examples/smallest, built first]
    #[arg(long, value_name = "PATH")]
    server_bin: Option<PathBuf>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long the server is left alone before its memory is looked at once more, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    settle_seconds: u64,
    /// Also write the reports into this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep the temporary folder (scripts, server log) and print where it is
    #[arg(long)]
    keep: bool,
}

/// What one run takes.
#[derive(Debug)]
struct Plan<'a> {
    driver: &'static str,
    server_bin: Option<&'a PathBuf>,
    seed: u64,
    settle: Duration,
    keep: bool,
}

/// Runs the test for every driver that was asked for.
pub(crate) fn run(args: &Args) -> ExitCode {
    let missing = needs::missing();
    if !missing.is_empty() {
        missing.iter().for_each(|what| eprintln!("stress: {what}"));
        return ExitCode::from(NOT_RUN);
    }
    args.driver.run_each("stress", args.json.as_deref(), |driver, _| {
        let settle = Duration::from_secs(args.settle_seconds);
        let (server_bin, seed, keep) = (args.server_bin.as_ref(), args.seed, args.keep);
        run::run(&Plan { driver, server_bin, seed, settle, keep })
    })
}
