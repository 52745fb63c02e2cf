//! Why a trial could not be run at all, as opposed to a bound that did not hold.

use std::fmt;

/// Something that keeps a trial from being run: a program that is missing, a server that does not start.
#[derive(Debug)]
pub(crate) struct Trouble(String);

/// The result of a step that a trial needs before it can measure anything.
pub(crate) type Outcome<T> = Result<T, Trouble>;

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<&str> for Trouble {
    fn from(what: &str) -> Self {
        Self(what.to_owned())
    }
}

impl From<String> for Trouble {
    fn from(what: String) -> Self {
        Self(what)
    }
}

/// Says during what an error happened.
pub(crate) trait During<T> {
    /// Turns the error into a [`Trouble`] that begins with `what`.
    fn during(self, what: &str) -> Outcome<T>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Outcome<T> {
        self.map_err(|error| Trouble(format!("{what}: {error}")))
    }
}
