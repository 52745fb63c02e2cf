//! A request as bytes with its expected response: the units of a conversation.

use std::fmt;

use shearwater_engine::http1::ParseError;

use super::app;
use super::response::ExpectedResponse;

/// Bytes of a request shown in messages.
const SHOWN_BYTES: usize = 120;

/// A request and its response.
#[derive(Clone)]
pub(crate) struct Unit {
    pub(crate) bytes: Vec<u8>,
    pub(crate) response: ExpectedResponse,
    /// Bytes that decide the response: all, unless a request is rejected early.
    pub(crate) decided_at: usize,
    /// The connection ends after the response.
    pub(crate) is_last: bool,
    /// A client that has sent so many bytes, and waits, gets a `100 Continue`.
    pub(crate) goes_on_at: Option<usize>,
}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(SHOWN_BYTES)]);
        write!(f, "{} bytes {text:?} -> {}", self.bytes.len(), self.response.status)
    }
}

impl Unit {
    pub(crate) fn new(bytes: impl Into<Vec<u8>>, response: ExpectedResponse) -> Self {
        let bytes = bytes.into();
        let is_last = response.connection == Some("close");
        Self { decided_at: bytes.len(), bytes, response, is_last, goes_on_at: None }
    }

    /// Returns a request that is rejected as soon as its first `decided_at` bytes are received.
    pub(crate) fn refused(bytes: impl Into<Vec<u8>>, decided_at: usize, response: ExpectedResponse) -> Self {
        Self { decided_at, ..Self::new(bytes, response) }
    }

    pub(crate) fn get(number: usize) -> Self {
        Self::plain("GET", number)
    }

    /// Returns a request without a body, with any method.
    pub(crate) fn plain(method: &str, number: usize) -> Self {
        let target = format!("/plain/{number}");
        Self::new(
            head(method, &target, ""),
            ExpectedResponse::text("200 OK", app::text_of(method, &target, b"")),
        )
    }

    /// Returns a request whose response is deferred.
    pub(crate) fn later(method: &str, number: usize) -> Self {
        let target = format!("/later/{number}");
        let unit = Self::new(
            head(method, &target, ""),
            ExpectedResponse::text("200 OK", app::text_of(method, &target, b"")),
        );
        match method {
            "HEAD" => Self { response: unit.response.bodyless(), ..unit },
            _ => unit,
        }
    }

    /// Returns a `HEAD`, whose response has a length and no body.
    pub(crate) fn head(number: usize) -> Self {
        let unit = Self::plain("HEAD", number);
        Self { response: unit.response.bodyless(), ..unit }
    }

    pub(crate) fn no_content(number: usize) -> Self {
        let response = ExpectedResponse::text("204 No Content", "").lengthless();
        Self::new(head("GET", &format!("/status/{number}?204"), ""), response)
    }

    pub(crate) fn not_modified(number: usize) -> Self {
        let response = ExpectedResponse::text("304 Not Modified", "").lengthless();
        Self::new(head("GET", &format!("/status/{number}?304"), ""), response)
    }

    pub(crate) fn big() -> Self {
        Self::new(head("GET", "/big", ""), ExpectedResponse::big())
    }

    pub(crate) fn file() -> Self {
        Self::new(head("GET", "/file", ""), ExpectedResponse::file())
    }

    /// Returns the same file, opened for this request alone.
    pub(crate) fn own_file() -> Self {
        Self::new(head("GET", "/own-file", ""), ExpectedResponse::file())
    }

    /// Returns a body of known length. `route` is `plain` (discarded), `buffer`, `pulled` or `taken`.
    pub(crate) fn post(route: &str, number: usize, len: usize) -> Self {
        Self::post_with(route, number, len, "")
    }

    fn post_with(route: &str, number: usize, len: usize, fields: &str) -> Self {
        let target = format!("/{route}/{number}");
        let body = body_of(number, len);
        let mut bytes = head("POST", &target, &format!("{fields}Content-Length: {len}\r\n"));
        bytes.extend_from_slice(&body);
        let seen = if route == "plain" { &[] } else { &body[..] };
        Self::new(bytes, ExpectedResponse::text("200 OK", app::text_of("POST", &target, seen)))
    }

    /// Returns a body in chunks of `chunk` bytes, with an extension and trailers.
    pub(crate) fn post_chunked(route: &str, number: usize, len: usize, chunk: usize) -> Self {
        let target = format!("/{route}/{number}");
        let body = body_of(number, len);
        let mut bytes = head("POST", &target, "Transfer-Encoding: chunked\r\n");
        for chunk in body.chunks(chunk) {
            bytes.extend_from_slice(format!("{:x};part=\"a b\"\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\nX-Digest: none\r\nX-Other: GET / HTTP/1.1\r\n\r\n");
        let seen = if route == "plain" { &[] } else { &body[..] };
        Self::new(bytes, ExpectedResponse::text("200 OK", app::text_of("POST", &target, seen)))
    }

    /// Returns a body that waits for `100 Continue`. Not for routes that discard bodies.
    pub(crate) fn post_expecting(route: &str, number: usize, len: usize) -> Self {
        let unit = Self::post_with(route, number, len, "Expect: 100-continue\r\n");
        let head_len = unit.bytes.len() - len;
        match route {
            "plain" => Self::new(&unit.bytes[..head_len], unit.response.last()),
            _ => Self { goes_on_at: Some(head_len), ..unit },
        }
    }

    /// Returns true if the client never sends its body: it sends nothing more then.
    pub(crate) fn leaves_body(&self) -> bool {
        self.is_last && self.bytes.windows(7).any(|window| window == b"Expect:")
    }

    /// Makes the client request the close.
    pub(crate) fn closing(number: usize) -> Self {
        let target = format!("/plain/{number}");
        let response = ExpectedResponse::text("200 OK", app::text_of("GET", &target, b"")).last();
        Self::new(head("GET", &target, "Connection: close\r\n"), response)
    }

    /// Makes the handler request the close.
    pub(crate) fn closed_by_handler(number: usize) -> Self {
        let target = format!("/close/{number}");
        let response = ExpectedResponse::text("200 OK", app::text_of("GET", &target, b"")).last();
        Self::new(head("GET", &target, ""), response)
    }

    /// Makes it HTTP/1.0, which closes by default.
    pub(crate) fn http10(number: usize, keep_alive: bool) -> Self {
        let target = format!("/plain/{number}");
        let response = ExpectedResponse::text("200 OK", app::text_of("GET", &target, b""));
        let field = if keep_alive { "Connection: keep-alive\r\n" } else { "" };
        let bytes = format!("GET {target} HTTP/1.0\r\n{field}\r\n");
        Self::new(bytes, response.connection(if keep_alive { "keep-alive" } else { "close" }))
    }

    pub(crate) fn panicking(number: usize) -> Self {
        Self::new(head("GET", &format!("/panic/{number}"), ""), ExpectedResponse::failed())
    }

    /// Returns a request with a space before a colon; the rest is never read.
    pub(crate) fn malformed(number: usize) -> Self {
        let start = format!("GET /plain/{number} HTTP/1.1\r\nHost: a\r\nX-Bad : b\r\n");
        let decided_at = start.len();
        let sentence = ParseError::SpaceBeforeColon.to_string();
        let bytes = start + "X-Good: c\r\n\r\nGET /plain/smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        Self::refused(bytes, decided_at, ExpectedResponse::refusal("400 Bad Request", &sentence))
    }

    /// Returns a body declared larger than allowed: rejected at its head; `len` bytes of it are sent anyway.
    pub(crate) fn too_large(number: usize, said: u64, len: usize) -> Self {
        let mut bytes = head("POST", &format!("/buffer/{number}"), &format!("Content-Length: {said}\r\n"));
        let decided_at = bytes.len();
        bytes.resize(bytes.len() + len, b'x');
        Self::refused(bytes, decided_at, ExpectedResponse::too_large())
    }

    /// Returns the bytes of many units.
    pub(crate) fn stream(units: &[Self]) -> Vec<u8> {
        units.iter().flat_map(|unit| unit.bytes.iter().copied()).collect()
    }

    pub(crate) fn responses(units: &[Self]) -> Vec<ExpectedResponse> {
        units.iter().map(|unit| unit.response.clone()).collect()
    }
}

/// Returns a head of HTTP/1.1.
pub(crate) fn head(method: &str, target: &str, fields: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: example.org\r\n{fields}\r\n").into_bytes()
}

/// Returns a body that is distinct from those of other requests, and looks like requests.
fn body_of(number: usize, len: usize) -> Vec<u8> {
    let line = format!("GET /plain/in-body-{number} HTTP/1.1\r\nHost: a\r\n\r\n");
    line.bytes().cycle().take(len).collect()
}
