//! What is wrong with an app's routes.

use std::fmt;

use crate::Place;

/// A mistake in what a program has given to an [`App`](crate::App). Displays as one sentence that names all it is about, each with its file and line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteError {
    /// Two would answer the same request, or stand for the same type of state.
    Conflict {
        /// The later one.
        given: Place,
        /// The earlier one.
        with: Place,
    },
    /// Another one answers all that it would.
    Unreachable {
        /// What is never reached.
        given: Place,
        /// What answers in its place.
        by: Place,
    },
    /// It can't be what a request asks for, or can't be sent.
    Refused {
        /// What was given.
        given: Place,
        /// Why.
        why: String,
    },
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { given, with } => {
                write!(f, "{given} stands for the same as {with}: keep one of them")
            }
            Self::Unreachable { given, by } => write!(f, "{given} is never reached: {by} answers before it"),
            Self::Refused { given, why } => write!(f, "{given}: {why}"),
        }
    }
}

impl std::error::Error for RouteError {}

/// All that is wrong with an app's routes: one mistake at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteErrors(Vec<RouteError>);

impl RouteErrors {
    /// Those that were found, if any.
    pub(crate) fn of(found: Vec<RouteError>) -> Result<(), Self> {
        if found.is_empty() { Ok(()) } else { Err(Self(found)) }
    }

    /// The mistakes, in the order in which they were found.
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
