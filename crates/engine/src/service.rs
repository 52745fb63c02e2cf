//! The interface of a program: a [`Service`] that responds to requests, and a router's [`Context`] for them.

use std::borrow::Cow;
use std::rc::Rc;

use shearwater_http1::Head;

use crate::request::guards::GuardsPassed;
use crate::{Request, Response};

/// The request handler of one worker. Each worker has its own, so it needs no lock. [`Control::reload`] replaces it.
///
/// [`Control::reload`]: crate::Control::reload
///
/// A panic in any of its methods fails the request, if there is one (`500`, then the connection is closed), and
/// nothing else.
pub trait Service: 'static {
    /// Chooses how to receive a request's body. Called only for requests that have one.
    fn body_policy(&self, head: &Head<'_>) -> BodyPolicy {
        let _ = head;
        BodyPolicy::Discard
    }

    /// Runs the guards of a request, by [`Response::guards`]. Returns the number passed; `None` if one of them doesn't let it
    /// pass, and the response is that of the request.
    ///
    /// Called when the head of a request with a body is complete, before its body is received and before `100 Continue`.
    /// [`respond`](Self::respond) runs those that haven't run yet: all of a request without a body. A service that wraps
    /// another one should forward this method: otherwise guards of the other one run after the body, and can't wait.
    ///
    /// If a request with a body doesn't pass, its connection is closed after the response, unless the whole body had
    /// arrived and no guard has waited.
    fn guard(&self, request: &Request<'_>, response: &mut Response<'_>) -> Option<GuardsPassed> {
        let _ = response;
        Some(request.guards_outside())
    }

    /// Returns false if [`guard`](Self::guard) lets every request pass: it isn't called then. Asked once for each worker, and
    /// at each reload.
    fn has_guards(&self) -> bool {
        true
    }

    /// Returns the protocols that streams of HTTP/2 may be [upgraded](Response::upgrade) to, such as `websocket`
    /// (RFC 8441): none by default. Asked once for each worker, and at each reload.
    ///
    /// Clients learn that there are some when they connect. A request for one of them has the method `CONNECT` and the
    /// [protocol](Head::protocol); one for another protocol is rejected with `501`.
    fn protocols(&self) -> Vec<String> {
        Vec::new()
    }

    /// Responds to a request. An untouched response is an empty `200`.
    fn respond(&self, request: &Request<'_>, response: &mut Response<'_>);

    /// Frees memory that is kept for later requests. Called when the worker is idle.
    fn trim(&self) {}
}

/// The treatment of a request's body. `Limits::body_bytes_max` applies to all of them but [`Pass`](Self::Pass).
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
    /// Passes a body that arrived whole with its head as [`Request::kept_body`](crate::Request::kept_body), and leaves any
    /// other to a deferred handler, as [`Call`](Self::Call) does. `kept_body` is `None` then.
    Pass {
        /// The longest body, in bytes, in place of `Limits::body_bytes_max`.
        bytes_max: u64,
    },
}

impl BodyPolicy {
    /// Returns true if a deferred handler reads a body that hasn't arrived whole with its head.
    pub(crate) fn is_read_by_handler(&self) -> bool {
        matches!(self, Self::Call | Self::Pass { .. })
    }
}

/// The source of [`Request::param`](crate::Request::param) and similar methods. A router implements it and attaches it by [`Request::within`](crate::Request::within).
pub trait Context {
    /// Returns a route parameter as it was sent.
    fn param(&self, name: &str) -> Option<&str>;

    /// Returns the length of the mount's prefix in the target's path; 0 if the request isn't mounted.
    fn mount_len(&self) -> usize;

    /// Returns true if any route of the program has an extension method of this name.
    fn knows_method(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Returns an owned copy for a [deferred](crate::Response::defer) handler. `None` if the context is empty: without a
    /// copy the handler sees the whole path, even if there is a [mount](Self::mount_len).
    fn kept(&self) -> Option<Rc<dyn Context>> {
        None
    }
}

/// Decodes percent-encoding once (RFC 3986 section 2.1); `None` if it is invalid or the result isn't UTF-8.
pub fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    let Some(first) = text.find('%') else { return Some(Cow::Borrowed(text)) };
    let mut bytes = Vec::with_capacity(text.len());
    bytes.extend_from_slice(&text.as_bytes()[..first]);
    let mut rest = &text.as_bytes()[first..];
    while let [byte, behind @ ..] = rest {
        let (decoded, behind) = match (byte, behind) {
            (b'%', [high, low, behind @ ..]) => (digit(*high)? << 4 | digit(*low)?, behind),
            (b'%', _) => return None,
            _ => (*byte, behind),
        };
        bytes.push(decoded);
        rest = behind;
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Returns the value of a hexadecimal digit.
fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::percent_decoded;

    #[test]
    fn decodes_percent_encoding_once() {
        for (sent, expected) in [
            ("", Some("")),
            ("plain-text_~", Some("plain-text_~")),
            ("a%20b", Some("a b")),
            ("%2f%2F", Some("//")),
            ("%2541", Some("%41")),
            ("%C3%BC", Some("ü")),
            ("%00", Some("\0")),
            ("a+b", Some("a+b")),
            ("%", None),
            ("a%2", None),
            ("%zz", None),
            ("%+1", None),
            ("%FF", None),
            ("%C3", None),
        ] {
            assert_eq!(percent_decoded(sent).as_deref(), expected, "{sent}");
        }
    }
}
