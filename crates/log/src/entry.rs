//! A log entry: the facts of one request and its response.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The request field with credentials.
pub(crate) const AUTHORIZATION: &str = "authorization";

/// Status of a request without valid credentials: its user name is anybody's.
const UNAUTHORIZED: u16 = 401;

/// Facts of one request and its response. Texts are as the client sent them; formats escape them.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// Seconds since 1970 at the end.
    pub unix_seconds: u64,
    /// The client's address, with port 0 if that is unknown; `None` on Unix-domain sockets.
    pub client: Option<SocketAddr>,
    /// Address at the other end of the socket: the client's, or its proxy's; `None` on Unix-domain sockets.
    pub peer: Option<SocketAddr>,
    /// Method.
    pub method: &'a [u8],
    /// Request target: path and query.
    pub target: &'a [u8],
    /// Version, such as `HTTP/1.1`; empty if it is unknown.
    pub version: &'a str,
    /// Version of TLS, such as `TLSv1.3`; `None` for a connection in clear.
    pub tls_version: Option<&'static str>,
    /// Status; `None` if no response was begun.
    pub status: Option<u16>,
    /// Bytes of the request's body.
    pub body_bytes_received: u64,
    /// Bytes of the response without its head.
    pub body_bytes_sent: u64,
    /// Bytes of the response.
    pub bytes_sent: u64,
    /// Time to the first byte of the response.
    pub first_byte: Option<Duration>,
    /// Time to the end.
    pub duration: Duration,
    /// The end: `complete`, or why not.
    pub end: &'a str,
    /// Returns the value of a request field by its name in lower case.
    pub field: &'a dyn Fn(&str) -> Option<&'a [u8]>,
}

impl<'a> Entry<'a> {
    /// Returns an entry without facts.
    #[must_use]
    pub fn new(field: &'a dyn Fn(&str) -> Option<&'a [u8]>) -> Self {
        Self {
            unix_seconds: 0,
            client: None,
            peer: None,
            method: b"",
            target: b"",
            version: "",
            tls_version: None,
            status: None,
            body_bytes_received: 0,
            body_bytes_sent: 0,
            bytes_sent: 0,
            first_byte: None,
            duration: Duration::ZERO,
            end: "complete",
            field,
        }
    }

    /// Returns the credentials of a request, unless they were rejected.
    pub(crate) fn credentials(&self) -> Option<&'a [u8]> {
        (self.field)(AUTHORIZATION).filter(|_| self.status != Some(UNAUTHORIZED))
    }

    /// Returns the target's path: the part before its query, without the scheme and host of an absolute target.
    #[must_use]
    pub fn path(&self) -> &'a [u8] {
        let before = self.target.split(|byte| *byte == b'?').next().unwrap_or_default();
        match before {
            [b'/', ..] => before,
            _ => path_of_absolute(before),
        }
    }

    /// Returns the scheme of the connection: `https` by TLS.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        if self.tls_version.is_some() { "https" } else { "http" }
    }

    /// Returns the target's query.
    #[must_use]
    pub fn query(&self) -> Option<&'a [u8]> {
        self.target.splitn(2, |byte| *byte == b'?').nth(1)
    }
}

/// Returns the path of a target in absolute form, `/` if it has none (RFC 9112 section 3.2.2); others as they are.
fn path_of_absolute(target: &[u8]) -> &[u8] {
    let Some(colon) = target.windows(3).position(|three| three == b"://") else { return target };
    let authority = &target[colon + 3..];
    authority.iter().position(|byte| *byte == b'/').map_or(b"/", |path| &authority[path..])
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("target", &String::from_utf8_lossy(self.target))
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Returns the user name of basic authentication (RFC 7617 section 2), decoded into `buffer`.
pub(crate) fn user<'b>(credentials: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let (scheme, encoded) = credentials.split_at_checked(b"Basic ".len())?;
    let len = STANDARD.decode_slice(encoded.trim_ascii(), buffer).ok()?;
    let colon = buffer[..len].iter().position(|&byte| byte == b':')?;
    (scheme.eq_ignore_ascii_case(b"Basic ") && colon > 0).then(|| &buffer[..colon])
}
