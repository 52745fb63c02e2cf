//! Trailer fields: those after a body in chunks (RFC 9110 6.5).

use crate::KnownField;
use crate::parse::fields::Field;

/// Names that are no trailers, because a recipient needs them before the content (RFC 9110 6.5.1).
const HEADER_ONLY: [&[&str]; 6] = [
    // Framing and connection.
    &[
        "Connection",
        "Content-Length",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
    ],
    // Routing.
    &[
        "Forwarded",
        "Host",
        "Max-Forwards",
        "Via",
        "Origin",
        "True-Client-IP",
        "X-HTTP-Method-Override",
        "X-Real-IP",
    ],
    // Authentication. `Authentication-Info` may be a trailer (RFC 9110 11.6.3).
    &[
        "Authorization",
        "Cookie",
        "Proxy-Authenticate",
        "Proxy-Authorization",
        "Set-Cookie",
        "WWW-Authenticate",
    ],
    // What the request asks for.
    &[
        "Accept-Encoding",
        "Cache-Control",
        "Expect",
        "If-Match",
        "If-Modified-Since",
        "If-None-Match",
        "If-Range",
        "If-Unmodified-Since",
        "Pragma",
        "Range",
    ],
    // How the response is handled.
    &["Age", "Date", "Expires", "Location", "Retry-After", "Server", "Vary"],
    // The content's form. `ETag` may be a trailer (RFC 9110 8.8.3).
    &[
        "Content-Disposition",
        "Content-Encoding",
        "Content-Language",
        "Content-Location",
        "Content-Range",
        "Content-Type",
    ],
];

/// Returns true if a field with this name may follow the content (RFC 9110 6.5.1).
///
/// Fields of message framing, connections, routing, authentication, request and response control and the
/// content's form are excluded, and those that begin with `X-Forwarded-`: a recipient needs them before the content. If it
/// merged them into the head, a sender could bypass the checks of the head. `_` counts as `-`, as in CGI.
#[must_use]
pub fn may_be_trailer(name: &str) -> bool {
    let same = |one: u8, other: u8| one.eq_ignore_ascii_case(&other) || one == b'_' && other == b'-';
    let starts_with = |other: &str| {
        name.len() >= other.len() && name.bytes().zip(other.bytes()).all(|(one, other)| same(one, other))
    };
    let is_name = |other: &&str| name.len() == other.len() && starts_with(other);
    !starts_with("X-Forwarded-") && !HEADER_ONLY.iter().copied().flatten().any(is_name)
}

/// The fields of a trailer section in order, without those that [can't be trailers](may_be_trailer).
#[derive(Clone, Debug, Default)]
pub struct Trailers<'a> {
    /// Lines with their ends.
    lines: &'a [u8],
}

impl<'a> Trailers<'a> {
    /// Reads a section: the bytes of all [`BodyEvent::Trailer`](crate::BodyEvent::Trailer), in order.
    #[must_use]
    pub fn new(section: &'a [u8]) -> Self {
        Self { lines: section }
    }
}

impl<'a> Iterator for Trailers<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        loop {
            let end = self.lines.iter().position(|&byte| byte == b'\n')?;
            let (line, rest) = self.lines.split_at(end + 1);
            self.lines = rest;
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = str::from_utf8(&line[..colon]).ok()?;
            if may_be_trailer(name) {
                let known = KnownField::from_name(name.as_bytes());
                return Some(Field { name, value: line[colon + 1..].trim_ascii(), known });
            }
        }
    }
}
