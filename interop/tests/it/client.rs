//! A blocking HTTP/1.1 client that shows raw responses and has deadlines.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum duration of a read or write before the test fails.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Maximum length of a head and of a line.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const READ_BYTES: usize = 16 * 1024;

/// A connection with a read buffer.
pub(crate) struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// Status line and header fields of a response.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// In order, with names in lower case.
    fields: Vec<(String, String)>,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct ClientResponse {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> Self {
        Self::over(TcpStream::connect(addr).unwrap())
    }

    /// Wraps a connected stream.
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, unread: Vec::new() }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Ignores write errors: a server that has responded may close while the client still sends.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        match self.stream.write_all(bytes.as_ref()) {
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            result => result.unwrap(),
        }
    }

    /// Sends a request and reads its response. `fields` are lines without line ends; `Content-Length` is added if there
    /// is a body.
    pub(crate) fn ask(&mut self, method: &str, target: &str, fields: &[&str], body: &[u8]) -> ClientResponse {
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: test\r\n");
        for field in fields {
            request.push_str(field);
            request.push_str("\r\n");
        }
        if !body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        self.send([request.as_bytes(), body].concat());
        self.response(method)
    }

    /// Reads the final response to a request, and skips interim ones.
    pub(crate) fn response(&mut self, method: &str) -> ClientResponse {
        let mut head = self.head();
        while head.status < 200 && head.status != 101 {
            head = self.head();
        }
        let empty = method == "HEAD" || matches!(head.status, 101 | 204 | 304);
        let body = if empty { Vec::new() } else { self.body(&head) };
        ClientResponse { head, body }
    }

    /// Reads the next head, also an interim one.
    pub(crate) fn head(&mut self) -> Head {
        let mut lines = Vec::new();
        let mut bytes = 0;
        loop {
            let line = self.line();
            bytes += line.len();
            assert!(bytes <= HEAD_BYTES_MAX, "a head without an end");
            if line.is_empty() {
                return Head::parse(&lines);
            }
            lines.push(line);
        }
    }

    fn body(&mut self, head: &Head) -> Vec<u8> {
        if head.is_chunked() {
            let mut body = Vec::new();
            while let Some(chunk) = self.chunk() {
                body.extend_from_slice(&chunk);
            }
            return body;
        }
        match head.content_length() {
            Some(length) => self.exactly(length),
            None => self.rest(),
        }
    }

    /// Reads the next chunk of a chunked body; `None` at its end, after trailers.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.line();
        let digits = size.split(';').next().unwrap_or("").trim();
        let size = usize::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("no chunk size: `{size}`"));
        if size == 0 {
            while !self.line().is_empty() {}
            return None;
        }
        let chunk = self.exactly(size);
        assert_eq!(self.line(), "", "a chunk ends where it says");
        Some(chunk)
    }

    /// Reads a line without its end. Panics at the end of the connection.
    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let line = line.strip_suffix(b"\r\n").expect("lines end with CR LF");
                return String::from_utf8_lossy(line).into_owned();
            }
            assert!(self.unread.len() <= HEAD_BYTES_MAX, "a line without an end");
            assert!(self.more(), "the connection ended within a line: {:?}", self.unread);
        }
    }

    pub(crate) fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.more(), "{} of {length} bytes, then the end", self.unread.len());
        }
        self.unread.drain(..length).collect()
    }

    /// Reads until the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.unread)
    }

    /// Returns true if the server closes or resets the connection without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && !self.more()
    }

    /// Reads once. Returns false at the end of the connection.
    fn more(&mut self) -> bool {
        let mut bytes = [0; READ_BYTES];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(length) => {
                    self.unread.extend_from_slice(&bytes[..length]);
                    return length > 0;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
                Err(error) => panic!("nothing came for {WAIT_MAX:?}: {error}"),
            }
        }
    }
}

impl Head {
    fn parse(lines: &[String]) -> Self {
        let (first, fields) = lines.split_first().expect("a head has a status line");
        let (version, status) = first.split_once(' ').expect("a status line has a status");
        assert!(matches!(version, "HTTP/1.1" | "HTTP/1.0"), "no HTTP/1: `{first}`");
        let status =
            status.get(..3).and_then(|digits| digits.parse().ok()).expect("a status has three digits");
        let field = |line: &String| {
            let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no field: `{line}`"));
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Self { status, fields: fields.iter().map(field).collect() }
    }

    /// Returns all values of a header, in order. `name` is in lower case.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let of_name = self.fields.iter().filter(|(known, _)| known == name);
        of_name.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the value of a header that occurs at most once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() <= 1, "`{name}` stands {} times", values.len());
        values.first().copied()
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    }

    pub(crate) fn content_length(&self) -> Option<usize> {
        self.field("content-length").map(|length| length.parse().unwrap())
    }
}

impl ClientResponse {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.head.field("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Sends a request on a new connection.
pub(crate) fn ask(addr: SocketAddr, method: &str, target: &str, fields: &[&str], body: &[u8]) -> ClientResponse {
    Client::connect(addr).ask(method, target, fields, body)
}

pub(crate) fn get(addr: SocketAddr, target: &str) -> ClientResponse {
    ask(addr, "GET", target, &[], b"")
}

/// Sends a request with a JSON body.
pub(crate) fn ask_json(addr: SocketAddr, method: &str, target: &str, body: &serde_json::Value) -> ClientResponse {
    ask(addr, method, target, &["Content-Type: application/json"], body.to_string().as_bytes())
}
