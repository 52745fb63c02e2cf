//! The interface of a program: an [`Service`] that responds to requests.

use shearwater_http1::Head;
use std::fmt;

use crate::{Request, Response};

/// The request handler of one worker. Each worker has its own, so it needs no lock.
///
/// A panic in any of its methods fails the request (`500`, then the connection is closed) and nothing else.
pub trait Service {
    /// Chooses how to receive a request's body. Called only for requests that have one.
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        let _ = head;
        BodyPolicy::Discard
    }

    /// Responds to a request. An untouched response is an empty `200`.
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>);
}

/// The treatment of a request's body. `Limits::body_bytes_max` applies to all of them.
#[non_exhaustive]
pub enum BodyPolicy {
    /// Reads and discards the body, for handlers that don't use it. A client that waits for `100 Continue`
    /// gets the final response instead, and the connection is closed after it.
    Discard,
    /// Buffers the body up to a size; a longer one is rejected with `413`.
    Buffer {
        /// The largest body to buffer, in bytes.
        bytes_max: u64,
    },
    /// Passes the body on piece by piece as it arrives, without buffering.
    Stream(Box<dyn BodySink>),
    /// Leaves the body to a [deferred](crate::Response::defer) handler, which is called with the head and
    /// pulls the body by [`Call::read`](crate::Call::read). The body is received no faster than that. Without
    /// `defer` it is not read, and the connection is closed after the response unless the whole body has
    /// already arrived.
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

/// Receives a body piece by piece, then responds in place of [`Service::respond`].
pub trait BodySink {
    /// Takes the next piece, which is never empty.
    ///
    /// # Errors
    /// A status (400 to 599) rejects the request: it is sent, and the connection closed.
    fn data(&mut self, bytes: &[u8]) -> Result<(), u16>;

    /// Responds to the request once its body is complete.
    fn finish(&mut self, request: &Request<'_>, response: &mut Response<'_>);
}
