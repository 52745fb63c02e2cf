//! Where something was given to an app, for the errors that name it.

use std::fmt;
use std::panic::Location;

/// A route, a mount or a state as a program has given it, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    what: String,
    location: &'static Location<'static>,
}

impl Place {
    pub(crate) fn new(what: String, location: &'static Location<'static>) -> Self {
        Self { what, location }
    }

    /// What was given: `GET /user/{id}`, for example.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The file and line of the program that gives it.
    #[must_use]
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.what, self.location.file(), self.location.line())
    }
}
