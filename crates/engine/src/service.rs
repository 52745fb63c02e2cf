//! The interface of a program: an [`Service`] that responds to requests.

use crate::{Request, Response};
use shearwater_http1::Head;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Leaves the body to a [deferred](crate::Response::defer) handler, which is called with the head and
    /// pulls the body by [`Call::read`](crate::Call::read). The body is received no faster than that. Without
    /// `defer` it is not read, and the connection is closed after the response unless the whole body has
    /// already arrived.
    Call,
}
