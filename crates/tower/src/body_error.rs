//! Errors of reading a request body.

use std::fmt;

/// An error of reading a request body to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// The request has ended: its client disconnected, the body was rejected, or the response was completed first.
    Over,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("the request ended before its body was read"),
        }
    }
}

impl std::error::Error for BodyError {}
