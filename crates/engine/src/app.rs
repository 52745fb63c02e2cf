//! What a program gives to a worker: an [`App`] that answers requests.

use shearwater_http1::Head;
use std::fmt;

use crate::{Request, Response};

/// Answers the requests of one worker. Each worker has its own, so it needs no lock.
///
/// A panic in any of its methods costs the request (`500`, then the connection is closed) and nothing else.
pub trait App {
    /// What becomes of the body of a request whose head has arrived. Asked only for requests that have one.
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        let _ = head;
        BodyPolicy::Discard
    }

    /// Answers a request. A response that is left alone is an empty `200`.
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>);
}

/// What becomes of a request's body. Whatever it is, `Limits::body_bytes_max` holds.
#[non_exhaustive]
pub enum BodyPolicy {
    /// Read and discarded as it arrives: not for a handler that asks for the body. A client that waits for `100 Continue` gets the final response
    /// instead, and the connection is closed after it.
    Discard,
    /// Kept, up to so many bytes; a longer one is refused with `413`.
    Buffer {
        /// The most bytes to keep.
        bytes_max: u64,
    },
    /// Handed on piece by piece as it arrives; nothing is kept.
    Stream(Box<dyn BodySink>),
    /// For a handler that answers [later](crate::Response::later): it is called as soon as the head is there and takes the body by
    /// [`Call::read`](crate::Call::read), which is received no faster than that. Without `later` the body is not read, and the connection is
    /// closed behind the answer, unless all of it is there already.
    Call,
}

impl fmt::Debug for BodyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discard => f.write_str("Discard"),
            Self::Buffer { bytes_max } => f.debug_struct("Buffer").field("bytes_max", bytes_max).finish(),
            Self::Stream(_) => f.write_str("Stream(..)"),
            Self::Call => f.write_str("Call"),
        }
    }
}

/// Takes a body piece by piece, then answers in place of [`App::respond`].
pub trait BodySink {
    /// The next piece. Never empty.
    ///
    /// # Errors
    /// A status (400 to 599) refuses the request: it is sent, and the connection closed.
    fn data(&mut self, bytes: &[u8]) -> Result<(), u16>;

    /// The body is complete: answers the request.
    fn finish(&mut self, request: &Request<'_>, response: &mut Response<'_>);
}
