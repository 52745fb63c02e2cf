//! Errors of starting and running a server.

use std::fmt;
use std::io;

use shearwater_engine::{Failure, StartError};

use crate::RouteErrors;

/// An error of starting or running a server.
///
/// Displays as one sentence with the cause and, where there is one, the remedy; mistakes in routes as one line each.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An address to listen on is invalid, or its name can't be resolved.
    Address {
        /// The text given by the program.
        given: String,
        /// The cause.
        error: io::Error,
    },
    /// A protocol to upgrade to is not valid in an `Upgrade` header (RFC 9110 section 7.8).
    Protocol {
        /// The text given by the program.
        given: String,
    },
    /// The app's routes have mistakes.
    Routes(RouteErrors),
    /// The server couldn't bind, or couldn't start its workers.
    Start(StartError),
    /// Signal handlers can't be installed.
    Signals(io::Error),
    /// A worker failed or is stuck in a handler.
    Failed(Failure),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { given, error } => {
                write!(
                    f,
                    "invalid address {given:?} ({error}); help: write it as 127.0.0.1:8080, [::1]:8080 or unix:/run/site.sock"
                )
            }
            Self::Protocol { given } => {
                write!(f, "invalid protocol {given:?}; help: write name or name/version, without spaces")
            }
            Self::Routes(errors) => errors.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::Signals(error) => write!(f, "can't handle SIGTERM, SIGINT and SIGUSR1: {error}"),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<RouteErrors> for Error {
    fn from(errors: RouteErrors) -> Self {
        Self::Routes(errors)
    }
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
