//! Errors of the client and the response reader.

use std::fmt;
use std::io::{self, ErrorKind};

/// A failed exchange. Equal errors compare equal, so that they can be counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Error {
    /// The server closed the connection in order before the first byte of a response.
    Closed,
    /// The server closed the connection in order in the middle of a response.
    Truncated,
    /// The connection was reset.
    Reset,
    /// The server reset the stream of HTTP/2, with this code.
    StreamReset(u32),
    /// Nothing arrived, or nothing could be sent, within the timeout.
    TimedOut,
    /// The response breaks RFC 9110, RFC 9112 or RFC 9113.
    Malformed(String),
    /// Any other error of the socket.
    Socket(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => out.write_str("closed without a response"),
            Self::Truncated => out.write_str("closed in the middle of a response"),
            Self::Reset => out.write_str("connection reset"),
            Self::StreamReset(code) => write!(out, "stream reset with code {code}"),
            Self::TimedOut => out.write_str("timed out"),
            Self::Malformed(reason) => write!(out, "malformed response: {reason}"),
            Self::Socket(reason) => write!(out, "socket error: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Self::Reset,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Socket(error.to_string()),
        }
    }
}

/// Returns an [`Error::Malformed`].
pub(crate) fn malformed<T>(reason: impl Into<String>) -> Result<T, Error> {
    Err(Error::Malformed(reason.into()))
}
