//! The program: arguments in, a running server out. Exit codes: 0 served and drained, 1 a worker failed, 2 could not start.

#![forbid(unsafe_code)]

mod args;
mod banner;
mod failure;
mod run;
mod site;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

/// Gives memory back to the system when a load has passed, which the system's own allocator doesn't (see
/// `docs/decisions/0002-allocator.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run::run(&args::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // With standard error closed the exit code has to do.
            drop(writeln!(std::io::stderr(), "shearwater: {}", failure.sentence));
            ExitCode::from(failure.code)
        }
    }
}
