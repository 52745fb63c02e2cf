//! Request methods (RFC 9110 9, PATCH from RFC 5789) and versions.

use crate::limits::METHOD_BYTES_MAX;
use crate::scan;

/// A request method. Methods are case-sensitive: `get` is [`Method::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `CONNECT`
    Connect,
    /// `OPTIONS`
    Options,
    /// `TRACE`
    Trace,
    /// `PATCH`
    Patch,
    /// Any other token; see `Head::method_name`.
    Other,
}

impl Method {
    /// Returns the method with this exact name; [`Method::Other`] for any other name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"CONNECT" => Self::Connect,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }

    /// Returns true if a request may have a method of this name: a token of at most [`METHOD_BYTES_MAX`] bytes.
    #[must_use]
    pub fn is_name(name: &[u8]) -> bool {
        name.len() <= METHOD_BYTES_MAX && scan::is_token(name)
    }

    /// Returns the method with which `line` begins, followed by a space, and the length of both. `None` for
    /// rarer methods.
    #[inline(always)]
    pub(crate) fn leading(line: &[u8; 8]) -> Option<(Self, usize)> {
        Some(match line {
            _ if begins(line, b"GET ") => (Self::Get, 4),
            _ if begins(line, b"POST ") => (Self::Post, 5),
            _ if begins(line, b"HEAD ") => (Self::Head, 5),
            _ if begins(line, b"PUT ") => (Self::Put, 4),
            _ if begins(line, b"DELETE ") => (Self::Delete, 7),
            _ if begins(line, b"PATCH ") => (Self::Patch, 6),
            _ if begins(line, b"OPTIONS ") => (Self::Options, 8),
            _ => return None,
        })
    }

    /// Returns true if these bytes begin a `HEAD` request: the request line, possibly after an empty line,
    /// begins with the method and a space. The rejection of such a request has no content either (RFC 9110
    /// 9.3.2).
    #[must_use]
    pub fn is_head_begun(bytes: &[u8]) -> bool {
        bytes.strip_prefix(b"\r\n").unwrap_or(bytes).starts_with(b"HEAD ")
    }

    /// Returns the method's name; `None` for [`Method::Other`].
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Get => Some("GET"),
            Self::Head => Some("HEAD"),
            Self::Post => Some("POST"),
            Self::Put => Some("PUT"),
            Self::Delete => Some("DELETE"),
            Self::Connect => Some("CONNECT"),
            Self::Options => Some("OPTIONS"),
            Self::Trace => Some("TRACE"),
            Self::Patch => Some("PATCH"),
            Self::Other => None,
        }
    }
}

#[inline(always)]
fn begins<const LEN: usize>(line: &[u8; 8], name: &[u8; LEN]) -> bool {
    line.first_chunk() == Some(name)
}

/// HTTP version by which a request is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1, and any later minor version (RFC 9110 2.5).
    Http11,
    /// HTTP/2 (RFC 9113)
    Http2,
}
