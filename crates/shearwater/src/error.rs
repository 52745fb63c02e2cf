//! Errors of starting and running a server, and mistakes in an app's routes.

use std::panic::Location;
use std::{fmt, io};

use shearwater_engine::{ReloadError, StartError, ThreadFailure};

use crate::predecessor::TakeOverError;
use crate::service_manager::InheritError;

/// An error of starting or running a server.
///
/// Displays as one sentence with the cause and, where there is one, the remedy; mistakes in routes as one line each.
/// `Debug` is the same text, because a `main` that returns the error prints that.
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
    /// A socket that a service manager has passed can't be used.
    Inherit(InheritError),
    /// The sockets of the process that this one succeeds can't be received.
    TakeOver(TakeOverError),
    /// The server couldn't bind, or couldn't start its workers.
    Start(StartError),
    /// Signal handlers can't be installed.
    Signals(io::Error),
    /// The service of a running server can't be replaced.
    Reload(ReloadError),
    /// A worker failed or is stuck in a handler.
    Failed(ThreadFailure),
    /// The process that had taken the place of this one has failed while this one was draining.
    SuccessorFailed {
        /// Number of the process.
        process: u32,
        /// Its exit status.
        status: String,
    },
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
            Self::Inherit(error) => error.fmt(f),
            Self::TakeOver(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::Signals(error) => write!(f, "can't handle signals: {error}"),
            Self::Reload(error) => write!(f, "can't reload: {error}"),
            Self::Failed(failure) => failure.fmt(f),
            Self::SuccessorFailed { process, status } => {
                write!(f, "process {process}, which had taken over, has failed ({status})")
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<RouteErrors> for Error {
    fn from(errors: RouteErrors) -> Self {
        Self::Routes(errors)
    }
}

impl From<TakeOverError> for Error {
    fn from(error: TakeOverError) -> Self {
        Self::TakeOver(error)
    }
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<ReloadError> for Error {
    fn from(error: ReloadError) -> Self {
        Self::Reload(error)
    }
}

impl From<ThreadFailure> for Error {
    fn from(failure: ThreadFailure) -> Self {
        Self::Failed(failure)
    }
}

/// A mistake in an [`App`](crate::App). Displays as one sentence with the file and line of each item.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteError {
    /// Two items match the same requests, or are state of the same type.
    Conflict {
        /// The item added later.
        given: SourceLocation,
        /// The item added earlier.
        with: SourceLocation,
    },
    /// Another item matches all its requests.
    Unreachable {
        /// The item that is never reached.
        given: SourceLocation,
        /// The item that matches instead.
        by: SourceLocation,
    },
    /// The path, method or response is invalid.
    Refused {
        /// The invalid item.
        given: SourceLocation,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { given, with } => {
                write!(f, "{given} conflicts with {with}; help: remove one of them")
            }
            Self::Unreachable { given, by } => {
                write!(f, "{given} is unreachable: {by} matches all its requests")
            }
            Self::Refused { given, why } => write!(f, "{given}: {why}"),
        }
    }
}

impl std::error::Error for RouteError {}

/// All mistakes in an app's routes: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteErrors(Vec<RouteError>);

impl RouteErrors {
    /// Returns an error if any mistakes were found.
    pub(crate) fn check(found: Vec<RouteError>) -> Result<(), Self> {
        if found.is_empty() { Ok(()) } else { Err(Self(found)) }
    }

    /// Returns the mistakes in the order in which they were found.
    #[must_use]
    pub fn all(&self) -> &[RouteError] {
        &self.0
    }
}

impl fmt::Display for RouteErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if number > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for RouteErrors {}

/// A route, mount or state, and the place in the program that adds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    what: String,
    location: &'static Location<'static>,
}

impl SourceLocation {
    pub(crate) fn new(what: String, location: &'static Location<'static>) -> Self {
        Self { what, location }
    }

    /// Returns a description, such as `GET /user/{id}`.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the file and line that adds it.
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.what, self.location.file(), self.location.line())
    }
}
