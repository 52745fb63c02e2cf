//! End-to-end tests of the built server, run as `cargo e2e`.
//!
//! Every case starts release builds on loopback, drives or attacks them, and compares what it saw with bounds. Nothing here knows the
//! server's code: what a case shows holds for the program that users run.

#![forbid(unsafe_code)]

mod addresses;
mod balancer;
mod certificates;
mod compare;
mod compression;
mod context;
mod crowd;
mod drain;
mod expected;
mod files;
mod handlers;
mod hostile;
mod http2;
mod log;
mod memory;
mod normal;
mod programs;
mod reload;
mod replaced;
mod report;
mod runner;
mod script;
mod soak;
mod stress;
mod upgrade;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// End-to-end tests of the built server
#[derive(Debug, Parser)]
#[command(name = "cargo e2e", after_help = EXAMPLES)]
struct E2eArgs {
    /// Groups, or cases as GROUP/CASE [default: the quick groups, see --list]
    cases: Vec<String>,
    /// List the cases and exit
    #[arg(long)]
    list: bool,
    /// Driver of the servers [default: every driver that works here]
    #[arg(long)]
    driver: Option<DriverName>,
    /// Run with full counts and durations
    #[arg(long)]
    full: bool,
    /// Duration of cases that run for a time, such as soak
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Worker threads of a server, unless the case needs one
    #[arg(long, default_value_t = 2)]
    workers: u32,
    /// Print every check, also those that pass
    #[arg(long, short)]
    verbose: bool,
    /// Also write the reports to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep the temporary folders (served files, server logs) and print their paths
    #[arg(long)]
    keep: bool,
    /// Program to test [default: target/release/shearwater, built first]
    #[arg(long, value_name = "PATH")]
    server_bin: Option<PathBuf>,
    /// Example with test routes [default: target/release/examples/trial_server, built first]
    #[arg(long, value_name = "PATH")]
    example_bin: Option<PathBuf>,
    /// Server of challenges [default: target/release/examples/instance, built first]
    #[arg(long, value_name = "PATH")]
    instance_bin: Option<PathBuf>,
    /// Write e2e/data/compare/results.md if every difference is listed (for the group peers)
    #[arg(long)]
    write: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// A part of a case that runs in a process of its own.
#[derive(Debug, Subcommand)]
enum Part {
    #[command(hide = true)]
    Http2Attackers(http2::hostile::Attackers),
}

const EXAMPLES: &str = "\
Examples:
  cargo e2e                           the quick groups on every driver
  cargo e2e files hostile/slow-heads  a group and a single case
  cargo e2e soak --for 3600           an hour of connections of every kind
  cargo e2e hostile --full            every attack with the bounds on latency

Exit status: 0 if every check passed, 1 if one failed, 2 if a case could not run.";

/// A driver of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DriverName {
    Epoll,
    Uring,
}

impl DriverName {
    const ALL: [Self; 2] = [Self::Epoll, Self::Uring];

    /// Its name on the server's command line.
    fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::Uring => "uring",
        }
    }
}

fn main() -> ExitCode {
    let args = E2eArgs::parse();
    let result = match &args.part {
        Some(Part::Http2Attackers(attackers)) => attackers.run(),
        None => runner::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(runner::NOT_RUN)
        }
    }
}
