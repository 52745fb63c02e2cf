//! Incremental response parser without I/O, strict about RFC 9112 sections 4, 5, 6.3 and 7.1.

use std::mem;

use crate::error::{Error, malformed};

/// Maximum length of a head or of one line of chunk framing, bytes.
const LINES_BYTES_MAX: usize = 64 * 1024;

/// Framing of a body: by what its end is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body: a response to HEAD, a `1xx`, `204` or `304`.
    None,
    /// `Content-Length` bytes.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// Everything until the connection ends.
    UntilClose,
}

/// A well-formed response head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    text: String,
}

impl Head {
    /// Parses a head that ends with an empty line.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::parse_version(bytes, false)
    }

    fn parse_version(bytes: &[u8], accepts_http10: bool) -> Result<Self, Error> {
        let Ok(text) = std::str::from_utf8(bytes) else { return malformed("the head is not UTF-8") };
        let Some(block) = text.strip_suffix("\r\n\r\n") else {
            return malformed("the head does not end with an empty line");
        };
        let mut lines = block.split("\r\n");
        let status = parse_status_line(lines.next().unwrap_or_default(), accepts_http10)?;
        lines.try_for_each(check_header_line)?;
        let head = Self { status, text: text.to_owned() };
        head.check_framing_headers()?;
        Ok(head)
    }

    /// The head's bytes with the final empty line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names and values in the order of the wire, values without surrounding whitespace.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.text.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        pairs.map(|(name, value)| (name, value.trim()))
    }

    /// All values of a header, whose name is compared without case.
    pub fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers().filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// Returns true if the response announces the end of the connection.
    pub fn closes(&self) -> bool {
        let options = self.values("connection").flat_map(|value| value.split(','));
        options.map(str::trim).any(|option| option.eq_ignore_ascii_case("close"))
    }

    /// Framing of the body in a response to a request with this method.
    pub fn framing(&self, method: &str) -> Framing {
        if method == "HEAD" || matches!(self.status, 100..=199 | 204 | 304) {
            return Framing::None;
        }
        if self.header("transfer-encoding").is_some() {
            return Framing::Chunked;
        }
        let length = self.header("content-length").and_then(|value| value.parse().ok());
        length.map_or(Framing::UntilClose, Framing::Length)
    }

    fn check_framing_headers(&self) -> Result<(), Error> {
        let lengths: Vec<&str> = self.values("content-length").collect();
        let codings: Vec<&str> = self.values("transfer-encoding").collect();
        if lengths.len() + codings.len() > 1 {
            return malformed("more than one header gives the body's length");
        }
        if lengths.iter().any(|value| !is_digits(value) || value.parse::<u64>().is_err()) {
            return malformed("Content-Length is not a number");
        }
        if codings.iter().any(|value| !value.eq_ignore_ascii_case("chunked")) {
            return malformed("Transfer-Encoding is not chunked");
        }
        Ok(())
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn parse_status_line(line: &str, accepts_http10: bool) -> Result<u16, Error> {
    let http10 = || line.strip_prefix("HTTP/1.0 ").filter(|_| accepts_http10);
    let rest = line.strip_prefix("HTTP/1.1 ").or_else(http10);
    let status = rest.and_then(|rest| rest.split_once(' ')).map(|(code, _)| code);
    match status.filter(|code| code.len() == 3 && is_digits(code)).and_then(|code| code.parse().ok()) {
        Some(status) if (100..600).contains(&status) => Ok(status),
        _ => malformed(format!("status line {line:?}")),
    }
}

fn check_header_line(line: &str) -> Result<(), Error> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let (name, value) = line.split_once(':').unwrap_or_default();
    let name_valid = !name.is_empty() && name.bytes().all(is_token);
    let value_valid = value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
    if name_valid && value_valid { Ok(()) } else { malformed(format!("header line {line:?}")) }
}

/// A whole response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status and headers.
    pub head: Head,
    /// The body without chunk framing.
    pub body: Vec<u8>,
}

impl Response {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The body as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One step of a [`ResponseReader`].
#[derive(Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Bytes of the input that are used up.
    pub consumed: usize,
    /// The parsed part.
    pub event: Event<'a>,
}

/// A parsed part of a response.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// All input is used up and nothing is complete.
    NeedsInput,
    /// The head is complete.
    Head(Head),
    /// Body bytes, without framing.
    Data(&'a [u8]),
    /// The response is complete. The next step begins another one.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Fixed(u64),
    UntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    Complete,
}

/// Parses responses from bytes that arrive in any pieces. Keeps unfinished lines itself, so that the input need not be kept.
#[derive(Debug)]
pub struct ResponseReader {
    state: State,
    /// The method of the request that the next head responds to.
    method: String,
    lines: Vec<u8>,
    accepts_http10: bool,
}

impl Default for ResponseReader {
    fn default() -> Self {
        Self { state: State::Head, method: "GET".to_owned(), lines: Vec::new(), accepts_http10: false }
    }
}

impl ResponseReader {
    /// Sets the method of the requests that the following heads respond to; only `HEAD` makes a difference.
    pub fn expect(&mut self, method: &str) {
        method.clone_into(&mut self.method);
    }

    /// Accepts responses of HTTP/1.0 too, which other servers than ours send.
    pub fn accept_http10(&mut self) {
        self.accepts_http10 = true;
    }

    /// Parses the next part of the response from `input`. Call it until it returns [`Event::NeedsInput`].
    pub fn step<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a>, Error> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let event = match self.state {
                State::Complete => {
                    self.state = State::Head;
                    Event::End
                }
                _ if rest.is_empty() => Event::NeedsInput,
                State::Fixed(left) => Event::Data(self.data(rest, left, State::Complete, State::Fixed)),
                State::Chunk(left) => Event::Data(self.data(rest, left, State::ChunkEnd, State::Chunk)),
                State::UntilClose => Event::Data(rest),
                State::Head | State::ChunkSize | State::ChunkEnd | State::Trailers => {
                    let end: &[u8] = if self.state == State::Head { b"\r\n\r\n" } else { b"\r\n" };
                    let (used, complete) = self.take_lines(rest, end)?;
                    consumed += used;
                    match complete.map(|lines| self.lines_complete(&lines)).transpose()?.flatten() {
                        Some(head) => return Ok(Step { consumed, event: Event::Head(head) }),
                        None => continue,
                    }
                }
            };
            if let Event::Data(data) = event {
                consumed += data.len();
            }
            return Ok(Step { consumed, event });
        }
    }

    /// Handles the orderly end of the connection.
    pub fn finish(&mut self) -> Result<(), Error> {
        let state = mem::replace(&mut self.state, State::Head);
        let complete = matches!(state, State::Head | State::Complete) && self.lines.is_empty();
        if complete || state == State::UntilClose { Ok(()) } else { Err(Error::Truncated) }
    }

    /// Returns true if no byte of the next response has arrived.
    pub fn is_between_responses(&self) -> bool {
        matches!(self.state, State::Head | State::Complete) && self.lines.is_empty()
    }

    fn data<'a>(&mut self, input: &'a [u8], left: u64, done: State, more: fn(u64) -> State) -> &'a [u8] {
        let length = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let left = left - length as u64;
        self.state = if left == 0 { done } else { more(left) };
        &input[..length]
    }

    /// Takes bytes up to and including `end`. Returns how many, and the lines once they are complete.
    fn take_lines(&mut self, input: &[u8], end: &[u8]) -> Result<(usize, Option<Vec<u8>>), Error> {
        let old = self.lines.len();
        let from = old.saturating_sub(end.len() - 1);
        self.lines.extend_from_slice(input);
        let found = self.lines[from..].windows(end.len()).position(|window| window == end);
        let Some(at) = found else {
            if self.lines.len() > LINES_BYTES_MAX {
                return malformed(format!("no {end:?} in {LINES_BYTES_MAX} bytes"));
            }
            return Ok((input.len(), None));
        };
        self.lines.truncate(from + at + end.len());
        let lines = mem::take(&mut self.lines);
        Ok((lines.len() - old, Some(lines)))
    }

    fn lines_complete(&mut self, lines: &[u8]) -> Result<Option<Head>, Error> {
        let line = || String::from_utf8_lossy(lines.strip_suffix(b"\r\n").unwrap_or(lines));
        self.state = match self.state {
            State::ChunkSize => {
                let digits = line().split(';').next().unwrap_or_default().to_owned();
                let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                match u64::from_str_radix(&digits, 16).ok().filter(|_| valid) {
                    Some(0) => State::Trailers,
                    Some(size) => State::Chunk(size),
                    None => return malformed(format!("chunk size {:?}", line())),
                }
            }
            State::ChunkEnd if line().is_empty() => State::ChunkSize,
            State::ChunkEnd => return malformed("no line end after a chunk"),
            State::Trailers if line().is_empty() => State::Complete,
            State::Trailers => check_header_line(&line()).map(|()| State::Trailers)?,
            _ => {
                let head = Head::parse_version(lines, self.accepts_http10)?;
                self.state = match head.framing(&self.method) {
                    Framing::None | Framing::Length(0) => State::Complete,
                    Framing::Length(length) => State::Fixed(length),
                    Framing::Chunked => State::ChunkSize,
                    Framing::UntilClose => State::UntilClose,
                };
                return Ok(Some(head));
            }
        };
        Ok(None)
    }
}
