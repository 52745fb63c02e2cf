//! The project's own commands, run as `cargo xtask NAME`.

#![forbid(unsafe_code)]

mod nightly;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct XtaskArgs {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Run the fuzz targets
    Fuzz(nightly::FuzzArgs),
    /// Run the tests of the tasks under Miri, ThreadSanitizer and AddressSanitizer
    Sanitize(nightly::SanitizeArgs),
    /// Check the rules of the house that the compiler cannot check
    Tidy(tidy::TidyArgs),
}

/// Exit status 0: nothing found, 1: something found, 2: nothing could be run.
fn main() -> ExitCode {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the manifest is in a folder of the checkout");
    let outcome = match XtaskArgs::parse().command {
        XtaskCommand::Fuzz(args) => nightly::fuzz(&args, root),
        XtaskCommand::Sanitize(args) => nightly::sanitize(&args),
        XtaskCommand::Tidy(args) => tidy::run(&args, root),
    };
    match outcome {
        Ok(nothing_found) => ExitCode::from(u8::from(!nothing_found)),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
