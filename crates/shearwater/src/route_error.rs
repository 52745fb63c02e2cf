//! Mistakes in an app's routes.

use std::fmt;

use crate::SourceLocation;

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
