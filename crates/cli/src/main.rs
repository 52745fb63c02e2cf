//! The program: arguments in, a running server out. Exit codes: 0 served and drained, 1 a worker failed, 2 could not start.

#![forbid(unsafe_code)]

mod args;
mod banner;
mod check;
mod config_text;
mod configured;
mod failure;
mod json;
mod precompress;
mod run;
mod site;
mod unused_siblings;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Command, CommandLine};

/// Gives memory back to the system when a load has passed and a worker that rests says so (see `docs/decisions/0002-allocator.md`).
#[global_allocator]
static ALLOCATOR: shearwater_allocator::MiMalloc = shearwater_allocator::MiMalloc;

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    let result = match &command_line.command {
        None => run::run(&command_line.serve),
        Some(Command::Check(check)) => check::check(check),
        Some(Command::Config(config_text)) => config_text::print(config_text),
        Some(Command::Precompress(precompress)) => precompress::make(precompress),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // With standard error closed the exit code has to do.
            drop(write!(std::io::stderr(), "{failure}"));
            ExitCode::from(failure.code)
        }
    }
}

/// Prints to standard output. A closed one is no reason not to go on.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}
