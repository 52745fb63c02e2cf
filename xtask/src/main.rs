//! The project's own commands, run as `cargo xtask NAME`.

#![forbid(unsafe_code)]

mod fuzz;
mod sanitize;
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
    /// Run the fuzz targets
    Fuzz(fuzz::Args),
    /// Run the tests of the tasks under Miri, ThreadSanitizer and AddressSanitizer
    Sanitize(sanitize::Args),
    /// Check the rules of the house that the compiler cannot check
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Sanitize(args) => sanitize::run(&args),
        Command::Tidy(args) => tidy::run(&args),
    }
}
