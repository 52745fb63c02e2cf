//! The black-box trials: each starts a built server, loads it over loopback and holds what it saw against a bound.
//!
//! `cargo xtask trial NAME` prints one line per promise with what was measured, the bound and the verdict. Exit code 0: every
//! bound held; 1: at least one did not; 2: the trial could not be run. Nothing here knows the server's code: what a trial
//! proves, it proves of the program a user would run.

mod churn;
mod churn_visit;
mod connections;
mod drain;
mod drain_load;
mod early_errors;
mod file_checks;
mod handlers;
mod held;
mod holder;
mod hostile_paths;
mod large_file;
mod many_files;
mod pace;
mod panics;
mod slow_clients;
mod slow_heads;
mod slow_sink;
mod suspended;
mod traversal;

use std::process::ExitCode;

use crate::harness::common::Common;
use crate::harness::report::Report;
use crate::harness::trouble::Outcome;

/// The arguments of `cargo xtask trial`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    which: Which,
}

/// The trials.
#[derive(Debug, clap::Subcommand)]
enum Which {
    /// Thousands of clients that send one header byte a second, beside a normal client at a fixed rate
    SlowHeads(slow_heads::Options),
    /// Clients that go on sending after 400, 413, 414 or 431, and read only then
    EarlyErrors(early_errors::Options),
    /// A million requests over connections that end in every way
    Churn(churn::Options),
    /// A hundred thousand panicking handlers beside good requests
    Panic(panics::Options),
    /// Handlers that misbehave, each fault in each kind of handler
    Handlers(handlers::Options),
    /// Ten thousand requests that wait at once, async and as coroutines: what each costs in memory
    Suspended(suspended::Options),
    /// SIGTERM under load, with a full accept queue and slow requests in flight
    Drain(drain::Options),
    /// Ten thousand files compared byte for byte, and a 2 GiB file with slow readers
    ManyFiles(many_files::Options),
    /// Thousands of idle keep-alive connections, each answered twice
    Connections(connections::Options),
    /// Hostile paths against a folder with a canary outside
    Traversal(traversal::Options),
    /// Every trial with its defaults
    All,
    /// The client process of `connections`: holds connections and speaks on standard input and output
    #[command(hide = true)]
    Hold(holder::Options),
}

/// Runs the trial that was asked for and prints its report.
pub(crate) fn run(args: Args) -> ExitCode {
    let Args { common, which } = args;
    if let Which::Hold(options) = which {
        return holder::run(&options);
    }
    let mut code = 0;
    for trial in expand(which) {
        code = code.max(run_one(&common, &trial));
    }
    ExitCode::from(code)
}

/// `all` as the list of trials it stands for.
fn expand(which: Which) -> Vec<Which> {
    match which {
        Which::All => vec![
            Which::Traversal(traversal::Options::default()),
            Which::ManyFiles(many_files::Options::default()),
            Which::EarlyErrors(early_errors::Options::default()),
            Which::Panic(panics::Options::default()),
            Which::Handlers(handlers::Options::default()),
            Which::Suspended(suspended::Options::default()),
            Which::Drain(drain::Options::default()),
            Which::Connections(connections::Options::default()),
            Which::Churn(churn::Options::default()),
            Which::SlowHeads(slow_heads::Options::default()),
        ],
        one => vec![one],
    }
}

fn run_one(common: &Common, trial: &Which) -> u8 {
    let (name, outcome) = dispatch(common, trial);
    match outcome {
        Ok(report) => {
            report.print(name, common.json);
            u8::from(!report.passed())
        }
        Err(trouble) => {
            eprintln!("trial {name}: could not be run: {trouble}");
            2
        }
    }
}

fn dispatch(common: &Common, trial: &Which) -> (&'static str, Outcome<Report>) {
    match trial {
        Which::SlowHeads(options) => ("slow-heads", slow_heads::run(common, options)),
        Which::EarlyErrors(options) => ("early-errors", early_errors::run(common, options)),
        Which::Churn(options) => ("churn", churn::run(common, options)),
        Which::Panic(options) => ("panic", panics::run(common, options)),
        Which::Handlers(options) => ("handlers", handlers::run(common, options)),
        Which::Suspended(options) => ("suspended", suspended::run(common, options)),
        Which::Drain(options) => ("drain", drain::run(common, options)),
        Which::ManyFiles(options) => ("many-files", many_files::run(common, options)),
        Which::Connections(options) => ("connections", connections::run(common, options)),
        Which::Traversal(options) => ("traversal", traversal::run(common, options)),
        Which::All | Which::Hold(_) => ("", Err("not a trial of its own".into())),
    }
}
