//! Why a body can't be read to its end.

use std::fmt;

/// Why a request's body has ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// The request is over: its client is gone, what it sent was refused, or it was answered before all of its body was read.
    Over,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("the request was over before its body was read to the end"),
        }
    }
}

impl std::error::Error for BodyError {}
