//! A client for tests: it panics where an exchange fails.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Instant;

use crate::client::{Client, TIMEOUT, request};
use crate::error::Error;
use crate::response::Response;
use crate::stream::Stream;
use crate::tls::ClientTls;

/// A [`Client`] for tests. Each method panics if the connection fails or a response breaks the RFCs.
#[derive(Debug)]
pub struct TestClient<S: Read + Write = Stream>(Client<S>);

impl TestClient {
    /// Connects; by TLS if the suite runs over it.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self(ok(Client::connect(address)))
    }

    /// Connects in clear, in each suite: to an admin listener, say.
    #[track_caller]
    pub fn connect_in_clear(address: SocketAddr) -> Self {
        Self(ok(Client::connect_in_clear(address)))
    }

    /// Connects by TLS, in each suite. The first exchange fails if the handshake did.
    #[track_caller]
    pub fn connect_by_tls(address: SocketAddr, tls: &ClientTls) -> Self {
        Self(ok(Client::connect_by_tls(address, tls)))
    }

    /// Takes over a connected TCP stream and sets its timeouts; does a handshake if the suite runs over TLS.
    #[track_caller]
    pub fn over(stream: TcpStream) -> Self {
        Self(ok(Client::over(stream)))
    }

    /// Shuts down the sending side.
    #[track_caller]
    pub fn end_sending(&mut self) -> &mut Self {
        ok(self.0.finish_sending());
        self
    }
}

impl<S: Read + Write> TestClient<S> {
    /// Takes over any stream, with the timeouts that it has.
    pub fn new(stream: S) -> Self {
        Self(Client::new(stream))
    }

    /// Returns the stream. Received bytes that are still unread aren't in it.
    pub fn stream(&self) -> &S {
        self.0.stream()
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        ok(self.0.send(bytes));
        self
    }

    /// Sends bytes. Ignores errors, because a server that has responded may close while the client still sends.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        drop(self.0.send(bytes));
        self
    }

    /// Sends a request without a body. `fields` are lines without their ends.
    #[track_caller]
    pub fn ask(&mut self, method: &str, target: &str, fields: &[&str]) -> &mut Self {
        self.send(request(method, target, fields))
    }

    /// Sends a request without a body and reads the response.
    #[track_caller]
    pub fn request(&mut self, method: &str, target: &str, fields: &[&str]) -> ClientResponse {
        self.ask(method, target, fields).response(method)
    }

    /// Sends a `GET` request and reads the response.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> ClientResponse {
        self.request("GET", target, &[])
    }

    /// Sends a request with a body in one write, and reads the response. The server may respond before it has all.
    #[track_caller]
    pub fn send_body(&mut self, method: &str, target: &str, fields: &[&str], body: &[u8]) -> ClientResponse {
        let length = format!("Content-Length: {}", body.len());
        let fields = [fields, &[&length]].concat();
        self.try_send([&request(method, target, &fields)[..], body].concat()).response(method)
    }

    /// Reads the whole response to a request with this method. Interim responses (`1xx`) are returned too.
    #[track_caller]
    pub fn response(&mut self, method: &str) -> ClientResponse {
        ok(self.0.response_to(method)).into()
    }

    /// Reads the head of a response. Read the body with [`TestClient::data`] or [`TestClient::rest`].
    #[track_caller]
    pub fn head(&mut self) -> ClientResponse {
        Response { head: ok(self.0.head("GET")), body: Vec::new() }.into()
    }

    /// Reads the next bytes of a body, of one chunk if it is chunked; empty at its end.
    #[track_caller]
    pub fn data(&mut self) -> Vec<u8> {
        let mut read = Vec::new();
        ok(self.0.data(usize::MAX, &mut |data| read.extend_from_slice(data)));
        read
    }

    /// Reads exactly so many bytes, without parsing them.
    #[track_caller]
    pub fn exactly(&mut self, length: usize) -> Vec<u8> {
        ok(self.0.exactly(length))
    }

    /// Reads all bytes up to the orderly end of the connection, without parsing them.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<u8> {
        ok(self.0.rest())
    }

    /// Checks that the server has closed the connection in order and sends nothing more.
    #[track_caller]
    pub fn is_ended(&mut self) {
        assert_eq!(self.rest().escape_ascii().to_string(), "", "the connection ends without another byte");
    }
}

#[track_caller]
fn ok<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until nothing listens at an address: a drain or a stop has begun.
#[track_caller]
pub fn until_refused(address: SocketAddr) {
    let start = Instant::now();
    while start.elapsed() < TIMEOUT {
        match TcpStream::connect(address) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return,
            // Still in the queue of a listener that is about to close.
            _ => thread::yield_now(),
        }
    }
    panic!("{address} still listens");
}

/// Checks that a new connection is reset, before the first byte is read or during `connect`.
#[track_caller]
pub fn assert_reset(address: SocketAddr) {
    let read = TcpStream::connect_timeout(&address, TIMEOUT).and_then(|mut stream| {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.read(&mut [0])
    });
    assert_eq!(read.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
}

/// A response that was read by a [`TestClient`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientResponse {
    /// The status code.
    pub status: u16,
    /// Names and values in order.
    pub fields: Vec<(String, String)>,
    /// The body without chunk framing.
    pub body: Vec<u8>,
}

impl From<Response> for ClientResponse {
    fn from(Response { head, body }: Response) -> Self {
        let fields = head.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { status: head.status, fields: fields.collect(), body }
    }
}

impl ClientResponse {
    /// Returns the value of a header that must occur at most once.
    #[track_caller]
    pub fn field(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() <= 1, "{name} is there twice: {:?}", self.fields);
        values.first().copied()
    }

    /// Returns all values of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let found = self.fields.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the value of `Content-Length`.
    #[track_caller]
    pub fn content_length(&self) -> Option<usize> {
        self.field("Content-Length").map(|length| length.parse().expect("the length is a number"))
    }

    /// Returns true if the body is sent in chunks.
    #[track_caller]
    pub fn is_chunked(&self) -> bool {
        self.field("Transfer-Encoding").is_some()
    }

    /// Returns the body as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }
}
