//! Files that change while they are served: no answer is a mixture, and none is old.
//!
//! `cargo xtask replaced` prints what came of every way to change a file, for each driver. Exit code 0: nothing but what is promised; 1: something
//! else; 2: it could not be run, and why.

mod ask;
mod content;
mod history;
mod judge;
mod kind;
mod run;
mod site;
mod swapped;
mod tally;
mod target;
mod visitor;

use std::process::ExitCode;
use std::time::Duration;

use crate::harness::drivers::DriverArgs;

const PROMISED: &str = "\
Promised: a file that is replaced by a rename or removed is answered whole, as it was or as it is; a file that is cut or rewritten in place is \
answered whole, or the connection ends short of Content-Length, or, where the writer is not done, as the file is at that moment (here its \
first word says so then). Where another folder takes the place of the served one, each answer is of one of them. An entity tag is of one version. No answer that begins a second after a change is older than it.";

/// The arguments of `cargo xtask replaced`.
#[derive(Debug, clap::Args)]
#[command(after_help = PROMISED)]
pub(crate) struct Args {
    /// Changes of each file in each way
    #[arg(long, default_value_t = 1000)]
    changes: u32,
    /// Between two changes, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 6)]
    pace_ms: u64,
    /// Changing a file in one way ends then, and has failed if it isn't done, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds_max: u64,
    /// Clients of each file
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    clients: u64,
    #[command(flatten)]
    each: DriverArgs,
}

/// Runs the trial for every driver that was asked for.
pub(crate) fn run(args: &Args) -> ExitCode {
    let amount = run::Amount {
        changes: args.changes,
        pace: Duration::from_millis(args.pace_ms),
        clients: args.clients,
        patience: Duration::from_secs(args.seconds_max),
        seed: args.each.seed,
    };
    args.each.run_each("replaced", |common, _| run::run(&common, &amount))
}
