//! Why a server did not start, or did not end by plan.

use std::fmt;
use std::io;

use shearwater_engine::{Failure, StartError};

use crate::RouteErrors;

/// Displays as one sentence that says what happened and what to do; mistakes in routes as one for each, on lines of their own.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The address is none that a socket can be bound to.
    Address {
        /// As it was given.
        given: String,
        /// Why.
        error: io::Error,
    },
    /// A protocol to upgrade to that no request can offer (RFC 9110 section 7.8).
    Protocol {
        /// As it was given.
        given: String,
    },
    /// Something is wrong with the app's routes.
    Routes(RouteErrors),
    /// The server could not start.
    Start(StartError),
    /// The process's signals can't be handled.
    Signals(io::Error),
    /// A worker has failed.
    Failed(Failure),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address { given, error } => {
                write!(
                    f,
                    "{given:?} is no address to listen on ({error}): write it as 127.0.0.1:8080, [::1]:8080 or unix:/run/site.sock"
                )
            }
            Self::Protocol { given } => {
                write!(
                    f,
                    "{given:?} is no protocol to upgrade to: write a name, or name/version, without spaces"
                )
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
