//! Places in the program, for errors about routes.

use std::fmt;
use std::panic::Location;

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
