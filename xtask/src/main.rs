//! The project's own commands, run as `cargo xtask NAME`.

#![forbid(unsafe_code)]

mod compare;
mod fuzz;
#[expect(dead_code, reason = "what is left moves to e2e")]
mod harness;
mod hostile;
mod pgo;
mod ranges;
mod replaced;
mod sanitize;
mod soak;
mod stress;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send the same requests to this server, nginx and static-web-server, and compare the answers
    Compare(compare::Args),
    /// Run the fuzz targets
    Fuzz(fuzz::Args),
    /// Connections of every kind by the million, every answer compared, and what is left of them
    Soak(soak::Args),
    /// Four phases of load by wrk at full counts against the smallest program
    Stress(stress::Args),
    /// Build the program with a profile of how it runs
    Pgo(pgo::Args),
    /// Ask for parts of files, and compare the answers with nginx's
    Ranges(ranges::Args),
    /// Change files while they are served, and look at every byte of the answers
    Replaced(replaced::Args),
    /// Run the tests of the tasks under Miri, ThreadSanitizer and AddressSanitizer
    Sanitize(sanitize::Args),
    /// Check the rules of the house that the compiler cannot check
    Tidy(tidy::Args),
    /// Attack the server in every known way, and see that others hardly notice
    Hostile(hostile::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Compare(args) => compare::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Stress(args) => stress::run(&args),
        Command::Pgo(args) => pgo::run(&args),
        Command::Ranges(args) => ranges::run(&args),
        Command::Replaced(args) => replaced::run(&args),
        Command::Sanitize(args) => sanitize::run(&args),
        Command::Tidy(args) => tidy::run(&args),
        Command::Hostile(args) => hostile::run(args),
    }
}
