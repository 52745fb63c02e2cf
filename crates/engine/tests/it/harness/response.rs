//! Expected responses, written without the engine's help, with a wildcard for the date.

use super::app;

/// An expected response.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedResponse {
    /// Status code and reason phrase.
    pub(crate) status: &'static str,
    pub(crate) connection: Option<&'static str>,
    pub(crate) fields: &'static str,
    /// Value of `Content-Length`, if present.
    pub(crate) length: Option<usize>,
    pub(crate) body: Body,
}

/// An expected body.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Bytes(Vec<u8>),
    Static(&'static [u8]),
}

const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";

impl ExpectedResponse {
    /// A text on a connection that stays open.
    pub(crate) fn text(status: &'static str, text: impl Into<Vec<u8>>) -> Self {
        let body = text.into();
        Self { status, connection: None, fields: TEXT, length: Some(body.len()), body: Body::Bytes(body) }
    }

    /// A text on a connection that is closed afterwards.
    pub(crate) fn last(mut self) -> Self {
        self.connection = Some("close");
        self
    }

    pub(crate) fn connection(mut self, option: &'static str) -> Self {
        self.connection = Some(option);
        self
    }

    /// The same without its body, as for `HEAD`.
    pub(crate) fn bodyless(mut self) -> Self {
        self.body = Body::Static(b"");
        self
    }

    /// Additionally without `Content-Length`.
    pub(crate) fn lengthless(mut self) -> Self {
        self.length = None;
        self.bodyless()
    }

    /// Bytes without a type.
    pub(crate) fn bytes(bytes: &'static [u8]) -> Self {
        Self {
            status: "200 OK",
            connection: None,
            fields: "",
            length: Some(bytes.len()),
            body: Body::Static(bytes),
        }
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
}

/// All output that a client must receive, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Static(&'static [u8]),
    /// Any date, in its fixed length.
    Date,
}

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// Result of comparing received with expected output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Equal,
    /// A prefix of it.
    Prefix,
    /// A mismatch, or surplus, from this offset on.
    Differs {
        at: usize,
    },
}

impl Expected {
    pub(crate) fn push(&mut self, response: &ExpectedResponse) {
        self.push_bytes(format!("HTTP/1.1 {}\r\nServer: shearwater\r\nDate: ", response.status).as_bytes());
        self.pieces.push(Piece::Date);
        let mut head = "\r\n".to_owned();
        if let Some(option) = response.connection {
            head += &format!("Connection: {option}\r\n");
        }
        head += response.fields;
        if let Some(length) = response.length {
            head += &format!("Content-Length: {length}\r\n");
        }
        self.push_bytes((head + "\r\n").as_bytes());
        match &response.body {
            Body::Bytes(bytes) => self.push_bytes(bytes),
            Body::Static(bytes) => self.pieces.push(Piece::Static(bytes)),
        }
    }

    /// `100 Continue`.
    pub(crate) fn push_go_on(&mut self) {
        self.push_bytes(b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    pub(crate) fn compare(&self, got: &[u8]) -> Verdict {
        let mut at = 0;
        for piece in &self.pieces {
            let rest = &got[at..];
            let (len, same) = match piece {
                Piece::Bytes(bytes) => (bytes.len(), shared(bytes, rest)),
                Piece::Static(bytes) => (bytes.len(), shared(bytes, rest)),
                Piece::Date => (DATE.len(), date_len(rest)),
            };
            if same < len.min(rest.len()) {
                return Verdict::Differs { at: at + same };
            }
            if rest.len() < len {
                return Verdict::Prefix;
            }
            at += len;
        }
        if at < got.len() { Verdict::Differs { at } } else { Verdict::Equal }
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
    let (before, behind) = got[from..until].split_at(at.min(got.len()) - from);
    let text = String::from_utf8_lossy;
    format!("{} bytes, from {at} on: {:?} behind {:?}", got.len(), text(behind), text(before))
}
