//! The project's own commands, run as `cargo xtask NAME`.

#![forbid(unsafe_code)]

mod tidy;
mod trial;

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
    /// Check the rules of the house that the compiler cannot check
    Tidy(tidy::Args),
    /// Prove the server's promises from outside
    Trial(trial::Args),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Tidy(args) => tidy::run(&args),
        Command::Trial(args) => trial::run(args),
    }
}
