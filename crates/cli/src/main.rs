//! The program: arguments in, a running server out. Exit codes: 0 served and drained, 1 a worker failed, 2 could not start.

#![forbid(unsafe_code)]

#[cfg(not(panic = "unwind"))]
compile_error!("build with `panic = \"unwind\"`: a panicking handler costs one request, not the server");

mod args;
mod banner;
mod check;
mod config_text;
mod configured;
mod failure;
mod intent;
mod json;
mod precompress;
mod run;
mod site;
mod unused_siblings;
mod warnings;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Command, CommandLine};
use crate::failure::Failure;

/// Gives memory back to the system when a load has passed and a worker that rests says so (see `docs/decisions/0002-allocator.md`).
#[global_allocator]
static ALLOCATOR: shearwater_allocator::MiMalloc = shearwater_allocator::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let command_line = match CommandLine::try_parse_from(&arguments) {
        Ok(command_line) => command_line,
        Err(error) => return unread(&error, &arguments[1.min(arguments.len())..]),
    };
    let result = match &command_line.command {
        None => run::run(&command_line.serve),
        Some(Command::Serve(serve)) => run::run(serve),
        Some(Command::Check(check)) => check::check(check),
        Some(Command::Config(config_text)) => config_text::print(config_text),
        Some(Command::Precompress(precompress)) => precompress::make(precompress),
    };
    ended(result)
}

/// Prints the failure, if there is one, and returns its exit code.
fn ended(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // With standard error closed the exit code has to do.
            drop(write!(std::io::stderr(), "{failure}"));
            ExitCode::from(failure.code)
        }
    }
}

/// Ends for a command line that can't be parsed, or asks for help.
fn unread(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    match intent::of_unreadable(error, arguments) {
        Some(failure) => drop(write!(std::io::stderr(), "{failure}")),
        None if error.use_stderr() => drop(error.print()),
        None => return ended(printed(error.print().and_then(|()| std::io::stdout().flush()))),
    }
    ExitCode::from(2)
}

/// Prints a result to standard output. A reader that has had enough is no error.
///
/// # Errors
/// If it can't be written: the result is not complete.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

fn printed(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::output(&error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints to standard output while it serves. A closed one is no reason to stop.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}
