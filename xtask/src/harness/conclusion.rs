//! How a command ends: its report printed, or why there is none, and the exit code.

use std::process::ExitCode;

use super::drivers::NOT_RUN;
use super::report::Report;
use super::trouble::Outcome;

/// Prints the report of the command `name`, as JSON if asked for. Exit code 0: every bound held; 1: at least one did not; 2: there is no report.
pub(crate) fn conclude(name: &str, json: bool, outcome: Outcome<Report>) -> ExitCode {
    match outcome {
        Ok(report) => {
            report.print(name, json);
            ExitCode::from(u8::from(!report.passed()))
        }
        Err(trouble) => {
            eprintln!("{name}: could not be run: {trouble}");
            ExitCode::from(NOT_RUN)
        }
    }
}
