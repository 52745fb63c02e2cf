//! Why a body can't be read to its end.

use std::fmt;

use crate::tower_service::BoxError;

/// Why a request's body has ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// The request is over: its client is gone, what it sent was refused, or it was answered before all of its body was read.
    Over,
    /// The connection was handed over, and that is what became of it.
    HandedOver(BoxError),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("the request was over before its body was read to the end"),
            Self::HandedOver(error) => write!(f, "can't read the request's body: {error}"),
        }
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Over => None,
            // The error itself is a part of the text.
            Self::HandedOver(error) => error.source(),
        }
    }
}
