//! A client that sends exactly the given bytes and validates responses strictly. Also used by the tests of `files` and
//! of the program.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum wait before a test fails; never a measurement.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(20);

/// One connection.
pub(crate) struct Client {
    /// Buffered reader of the connection.
    pub(crate) stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, WAIT_MAX).expect("connects");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        stream.set_write_timeout(Some(WAIT_MAX)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self { stream: BufReader::new(stream) }
    }

    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.get_mut().write_all(bytes.as_ref()).expect("sent");
        self
    }

    /// Sends a request without a body. `fields` are whole lines.
    pub(crate) fn ask(&mut self, method: &str, target: &str, fields: &[&str]) -> &mut Self {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        self.send(format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"))
    }

    /// Sends a request and reads the response.
    pub(crate) fn request(&mut self, method: &str, target: &str, fields: &[&str]) -> ClientResponse {
        self.ask(method, target, fields).response(method)
    }

    /// Reads the response to a request with this method.
    pub(crate) fn response(&mut self, method: &str) -> ClientResponse {
        let mut response = self.head();
        let no_body = method == "HEAD" || matches!(response.status, 100..=199 | 204 | 304);
        if !no_body {
            let len = response.field("Content-Length").expect("a length").parse().expect("a number");
            response.body = vec![0; len];
            self.stream.read_exact(&mut response.body).expect("the whole body");
        }
        response
    }

    /// Reads a response's head, and leaves its body.
    pub(crate) fn head(&mut self) -> ClientResponse {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let count = self.stream.read_line(&mut head).expect("a line of a head");
            assert!(count > 0, "the connection ended in a head: {head:?}");
        }
        ClientResponse::of(&head)
    }

    /// Reads until the connection is closed, which must be orderly.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).expect("an orderly end, no reset");
        rest
    }

    /// Checks that the server has closed the connection in order and sends nothing more.
    #[track_caller]
    pub(crate) fn is_ended(&mut self) {
        assert_eq!(self.rest(), b"", "the connection ends without another byte");
    }

    /// Closes the sending side.
    pub(crate) fn end_sending(&mut self) -> &mut Self {
        match self.stream.get_ref().shutdown(std::net::Shutdown::Write) {
            // The other side has closed too, in order: a reset would show when reading.
            Err(error) if error.kind() == ErrorKind::NotConnected => {}
            ended => ended.expect("our side ends"),
        }
        self
    }
}

/// A parsed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientResponse {
    pub(crate) status: u16,
    /// Names and values in order.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ClientResponse {
    /// Parses a head, and checks the form common to all responses.
    fn of(head: &str) -> Self {
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let line = lines.next().expect("a status line");
        let status = line.strip_prefix("HTTP/1.1 ").expect("version 1.1").get(..3).expect("three digits");
        let split = |line: &str| {
            let (name, value) = line.split_once(": ").expect("a name and a value");
            (name.to_owned(), value.to_owned())
        };
        let fields: Vec<_> = lines.map(split).collect();
        let response = Self { status: status.parse().expect("a status"), fields, body: Vec::new() };
        if response.status >= 200 {
            assert!(response.field("Date").is_some_and(|date| date.ends_with(" GMT")), "{head}");
            assert_eq!(response.field("Server"), Some("shearwater"), "{head}");
        }
        response
    }

    /// Returns the value of a header that must occur at most once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} is there twice: {:?}", self.fields);
        value
    }

    /// Returns the body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }
}
