//! Errors that end the program.

use std::fmt;
use std::io;

use shearwater::Error;
use shearwater_config::Diagnostics;

/// An error with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: Reason,
    pub(crate) code: u8,
}

#[derive(Debug)]
pub(crate) enum Reason {
    /// An error, perhaps with a way to fix it.
    Error { message: String, help: Option<String> },
    /// Errors in a configuration file.
    Config(Diagnostics),
    /// Already reported.
    Reported,
}

impl Failure {
    /// The server can't start.
    pub(crate) fn start(message: impl Into<String>) -> Self {
        Self::with_help(message.into(), None)
    }

    /// The server can't start; `help` is a way to fix it.
    pub(crate) fn helped(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::with_help(message.into(), Some(help.into()))
    }

    /// The server can't start; there may be a way to fix it.
    pub(crate) fn with_help(message: String, help: Option<String>) -> Self {
        Self { reason: Reason::Error { message, help }, code: 2 }
    }

    /// Writing to standard output failed.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self { code: 1, ..Self::start(format!("can't write to standard output: {error}")) }
    }

    /// An error that was already reported.
    pub(crate) fn reported(code: u8) -> Self {
        Self { reason: Reason::Reported, code }
    }
}

/// Formats the error with its line end; empty if it was already reported.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Error { message, help } => {
                writeln!(f, "error: {message}")?;
                help.iter().try_for_each(|help| writeln!(f, "help: {help}"))
            }
            Reason::Config(errors) => {
                let (file, count) = (errors.file.display(), errors.count());
                let plural = if count == 1 { "" } else { "s" };
                writeln!(f, "{errors}\nerror: invalid configuration {file}: {count} error{plural}")
            }
            Reason::Reported => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = if matches!(error, Error::Failed(_) | Error::SuccessorFailed { .. }) { 1 } else { 2 };
        Self { code, ..Self::start(error.to_string()) }
    }
}

impl From<Diagnostics> for Failure {
    fn from(errors: Diagnostics) -> Self {
        Self { reason: Reason::Config(errors), code: 2 }
    }
}
