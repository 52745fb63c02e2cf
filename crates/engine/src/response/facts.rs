//! Facts of a request that decide the form of its response, and the fate of the connection after that.

use shearwater_http1::{Method, Version};

/// The fate of a connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It stays open.
    Keep,
    /// The response was truncated: it is closed at once.
    Truncated,
    /// The response was the last: it is closed in stages, because the client may be sending, even if it has
    /// requested the close (RFC 9112 section 9.6).
    Last,
    /// It is handed over to the program.
    HandOver,
}

/// Facts of a request that decide the form of its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts {
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) keep_alive: bool,
    /// More input has arrived after it, which is processed even while draining.
    pub(crate) is_followed: bool,
    /// The connection has reached its number of requests.
    pub(crate) is_last: bool,
}

impl Default for RequestFacts {
    fn default() -> Self {
        let (method, version) = (Method::Get, Version::Http11);
        Self { method, version, keep_alive: false, is_followed: false, is_last: false }
    }
}
