//! Requests as bytes with their expected responses, which are written without the engine's help.

use std::borrow::Cow;
use std::fmt;

use shearwater_engine::http1::ParseError;

use super::app;

/// Bytes of a request shown in messages.
const SHOWN_BYTES: usize = 120;
const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// An expected response.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedResponse {
    /// Status code and reason phrase.
    pub(crate) status: &'static str,
    pub(crate) connection: Option<&'static str>,
    pub(crate) fields: &'static str,
    /// Value of `Content-Length`, if present.
    pub(crate) length: Option<usize>,
    pub(crate) body: Cow<'static, [u8]>,
}

impl ExpectedResponse {
    /// A text on a connection that stays open.
    pub(crate) fn text(status: &'static str, text: impl Into<Vec<u8>>) -> Self {
        let body = text.into();
        Self { status, connection: None, fields: TEXT, length: Some(body.len()), body: body.into() }
    }

    /// The app's text about a request, with status 200.
    pub(crate) fn ok(method: &str, target: &str, body: &[u8]) -> Self {
        Self::text("200 OK", app::text_of(method, target, body))
    }

    /// Bytes without a type.
    pub(crate) fn bytes(bytes: &'static [u8]) -> Self {
        Self { status: "200 OK", connection: None, fields: "", length: Some(bytes.len()), body: bytes.into() }
    }

    /// Response of `/big`.
    pub(crate) fn big() -> Self {
        Self::bytes(app::big())
    }

    /// Response of `/file`.
    pub(crate) fn file() -> Self {
        Self::bytes(app::file_bytes())
    }

    /// Rejection by the engine itself.
    pub(crate) fn refusal(status: &'static str, sentence: &str) -> Self {
        Self::text(status, format!("{sentence}\n")).last()
    }

    pub(crate) fn incomplete() -> Self {
        Self::refusal("400 Bad Request", "The request ended in the middle.")
    }

    pub(crate) fn timeout() -> Self {
        Self::refusal("408 Request Timeout", "The request took too long to arrive.")
    }

    pub(crate) fn too_large() -> Self {
        Self::refusal("413 Content Too Large", "The body is larger than allowed here.")
    }

    pub(crate) fn buffers_full() -> Self {
        Self::refusal("503 Service Unavailable", "Too many large requests at once. Try again later.")
    }

    pub(crate) fn failed() -> Self {
        Self::refusal("500 Internal Server Error", "Internal Server Error")
    }

    /// The same on a connection that is closed afterwards.
    pub(crate) fn last(self) -> Self {
        self.connection("close")
    }

    pub(crate) fn connection(self, option: &'static str) -> Self {
        Self { connection: Some(option), ..self }
    }

    /// The same without its body, as for `HEAD`.
    pub(crate) fn bodyless(self) -> Self {
        Self { body: Cow::Borrowed(b""), ..self }
    }

    /// Additionally without `Content-Length`.
    pub(crate) fn lengthless(self) -> Self {
        Self { length: None, ..self.bodyless() }
    }
}

/// All output that a client must receive, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExpectedOutput(Vec<ExpectedPiece>);

#[derive(Debug, Clone)]
enum ExpectedPiece {
    Bytes(Cow<'static, [u8]>),
    /// Any date, in its fixed length.
    Date,
}

/// Result of comparing received with expected output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputMatch {
    Equal,
    /// A prefix of it.
    Prefix,
    /// A mismatch, or surplus, from this offset on.
    Differs {
        at: usize,
    },
}

impl ExpectedOutput {
    pub(crate) fn push(&mut self, response: &ExpectedResponse) {
        let head = format!("HTTP/1.1 {}\r\nServer: shearwater\r\nDate: ", response.status);
        let connection = response.connection.map(|option| format!("Connection: {option}\r\n"));
        let length = response.length.map(|length| format!("Content-Length: {length}\r\n"));
        let (connection, length) = (connection.unwrap_or_default(), length.unwrap_or_default());
        let fields = format!("\r\n{connection}{}{length}\r\n", response.fields);
        let bytes = |text: String| ExpectedPiece::Bytes(text.into_bytes().into());
        self.0.extend([
            bytes(head),
            ExpectedPiece::Date,
            bytes(fields),
            ExpectedPiece::Bytes(response.body.clone()),
        ]);
    }

    pub(crate) fn push_continue(&mut self) {
        self.0.push(ExpectedPiece::Bytes(Cow::Borrowed(b"HTTP/1.1 100 Continue\r\n\r\n")));
    }

    pub(crate) fn compare(&self, got: &[u8]) -> OutputMatch {
        let mut at = 0;
        for piece in &self.0 {
            let rest = &got[at..];
            let (len, same) = match piece {
                ExpectedPiece::Bytes(bytes) => (bytes.len(), shared(bytes, rest)),
                ExpectedPiece::Date => (DATE.len(), date_len(rest)),
            };
            if same < len.min(rest.len()) {
                return OutputMatch::Differs { at: at + same };
            }
            if rest.len() < len {
                return OutputMatch::Prefix;
            }
            at += len;
        }
        if at < got.len() { OutputMatch::Differs { at } } else { OutputMatch::Equal }
    }
}

/// Returns the length of the common prefix.
fn shared(bytes: &[u8], rest: &[u8]) -> usize {
    let len = bytes.len().min(rest.len());
    if bytes[..len] == rest[..len] {
        return len;
    }
    bytes.iter().zip(rest).take_while(|(left, right)| left == right).count()
}

/// Returns the length of the prefix that could be part of a date.
fn date_len(rest: &[u8]) -> usize {
    let like = |(byte, pattern): (&u8, u8)| match pattern {
        b'0'..=b'9' => byte.is_ascii_digit(),
        b'a'..=b'z' | b'A'..=b'Z' => byte.is_ascii_alphabetic(),
        other => *byte == other,
    };
    rest.iter().zip(DATE.bytes()).take_while(|pair| like(*pair)).count()
}

/// Returns the received bytes around `at`, for a failure message.
pub(crate) fn show(got: &[u8], at: usize) -> String {
    let (from, until) = (at.saturating_sub(300).min(got.len()), (at + 300).min(got.len()));
    let (before, after) = got[from..until].split_at(at.min(got.len()) - from);
    let text = String::from_utf8_lossy;
    format!("{} bytes, from {at} on: {:?} after {:?}", got.len(), text(after), text(before))
}

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
    pub(crate) continue_at: Option<usize>,
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
        Self { decided_at: bytes.len(), bytes, response, is_last, continue_at: None }
    }

    /// Returns a request that is rejected as soon as its first `decided_at` bytes are received.
    pub(crate) fn refused(bytes: impl Into<Vec<u8>>, decided_at: usize, response: ExpectedResponse) -> Self {
        Self { decided_at, ..Self::new(bytes, response) }
    }

    /// Returns a request without a body, to which the app responds with a text.
    fn bare(method: &str, route: &str, number: usize, fields: &str) -> Self {
        let target = format!("/{route}/{number}");
        let response = ExpectedResponse::ok(method, &target, b"");
        let response = if method == "HEAD" { response.bodyless() } else { response };
        Self::new(head(method, &target, fields), response)
    }

    /// The same as the connection's last request.
    pub(crate) fn last(self) -> Self {
        Self::new(self.bytes, self.response.last())
    }

    pub(crate) fn get(number: usize) -> Self {
        Self::plain("GET", number)
    }

    pub(crate) fn plain(method: &str, number: usize) -> Self {
        Self::bare(method, "plain", number, "")
    }

    /// Returns a request whose response is deferred.
    pub(crate) fn later(method: &str, number: usize) -> Self {
        Self::bare(method, "later", number, "")
    }

    /// Returns a request whose response is a status without content.
    pub(crate) fn empty(number: usize, status: &'static str) -> Self {
        let target = format!("/status/{number}?{}", &status[..3]);
        Self::new(head("GET", &target, ""), ExpectedResponse::text(status, "").lengthless())
    }

    pub(crate) fn no_content(number: usize) -> Self {
        Self::empty(number, "204 No Content")
    }

    pub(crate) fn not_modified(number: usize) -> Self {
        Self::empty(number, "304 Not Modified")
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
        let body = body_of(number, len);
        Self::framed(route, number, &format!("{fields}Content-Length: {len}\r\n"), &body, &body)
    }

    /// Returns a body in chunks of `chunk` bytes, with an extension and trailers.
    pub(crate) fn post_chunked(route: &str, number: usize, len: usize, chunk: usize) -> Self {
        let body = body_of(number, len);
        let mut framed = Vec::new();
        for chunk in body.chunks(chunk) {
            framed.extend_from_slice(format!("{:x};part=\"a b\"\r\n", chunk.len()).as_bytes());
            framed.extend_from_slice(chunk);
            framed.extend_from_slice(b"\r\n");
        }
        framed.extend_from_slice(b"0\r\nX-Digest: none\r\nX-Other: GET / HTTP/1.1\r\n\r\n");
        Self::framed(route, number, "Transfer-Encoding: chunked\r\n", &body, &framed)
    }

    fn framed(route: &str, number: usize, fields: &str, body: &[u8], framed: &[u8]) -> Self {
        let target = format!("/{route}/{number}");
        let seen = if route == "plain" { &[] } else { body };
        Self::new(
            [&head("POST", &target, fields), framed].concat(),
            ExpectedResponse::ok("POST", &target, seen),
        )
    }

    /// Returns a body that waits for `100 Continue`. Not for routes that discard bodies.
    pub(crate) fn post_expecting(route: &str, number: usize, len: usize) -> Self {
        let unit = Self::post_with(route, number, len, "Expect: 100-continue\r\n");
        let head_len = unit.bytes.len() - len;
        match route {
            "plain" => Self::new(&unit.bytes[..head_len], unit.response.last()),
            _ => Self { continue_at: Some(head_len), ..unit },
        }
    }

    /// Returns true if the client never sends its body: it sends nothing more then.
    pub(crate) fn leaves_body(&self) -> bool {
        self.is_last && self.bytes.windows(7).any(|window| window == b"Expect:")
    }

    /// Makes the client request the close.
    pub(crate) fn closing(number: usize) -> Self {
        Self::bare("GET", "plain", number, "Connection: close\r\n").last()
    }

    /// Makes the handler request the close.
    pub(crate) fn closed_by_handler(number: usize) -> Self {
        Self::bare("GET", "close", number, "").last()
    }

    /// Makes it HTTP/1.0, which closes by default.
    pub(crate) fn http10(number: usize, keep_alive: bool) -> Self {
        let target = format!("/plain/{number}");
        let (field, option) =
            if keep_alive { ("Connection: keep-alive\r\n", "keep-alive") } else { ("", "close") };
        let bytes = format!("GET {target} HTTP/1.0\r\n{field}\r\n");
        Self::new(bytes, ExpectedResponse::ok("GET", &target, b"").connection(option))
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

/// Returns a request without a body.
pub(crate) fn get(target: &str) -> Vec<u8> {
    head("GET", target, "")
}

/// Returns a request with a body of known length.
pub(crate) fn post(target: &str, body: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Returns a request with a body in chunks, framed by the caller.
pub(crate) fn chunked(target: &str, chunks: &str) -> Vec<u8> {
    [&head("POST", target, "Transfer-Encoding: chunked\r\n"), chunks.as_bytes()].concat()
}

/// Returns the content of a body in chunks, and all from its last chunk on.
pub(crate) fn dechunked(body: &str) -> (String, &str) {
    let (mut content, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n").filter(|(size, _)| *size != "0") {
        let (data, after) = after.split_at(usize::from_str_radix(size, 16).expect("a size"));
        content.push_str(data);
        rest = after.strip_prefix("\r\n").expect("the end of a chunk");
    }
    (content, rest)
}

/// Returns a body that is distinct from those of other requests, and looks like requests.
fn body_of(number: usize, len: usize) -> Vec<u8> {
    let line = format!("GET /plain/in-body-{number} HTTP/1.1\r\nHost: a\r\n\r\n");
    line.bytes().cycle().take(len).collect()
}
