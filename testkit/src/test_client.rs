//! A client for tests: it panics where an exchange fails.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Instant;

use crate::client::{Client, TIMEOUT, connected, request};
use crate::error::Error;
use crate::http2::{self, Content, Exchanges};
use crate::response::Response;
use crate::stream::Stream;
use crate::tls::{self, ClientTls};

/// A client for tests. Each method panics if the connection fails or a response breaks the RFCs.
///
/// If the suite runs over HTTP/2 ([`http2::SWITCH`]), the first request of a connection decides: HTTP/2, or HTTP/1 for one
/// that is sent as bytes or has fields that only HTTP/1 has.
#[derive(Debug)]
pub struct TestClient<S: Read + Write = Stream> {
    client: Client<S>,
    protocol: Protocol<S>,
}

#[derive(Debug)]
enum Protocol<S> {
    Http1,
    /// HTTP/2 if the argument is true. Returns the scheme.
    Undecided(fn(&S, bool) -> Result<&'static str, Error>),
    Http2(Box<Exchanges>),
}

impl TestClient {
    /// Connects, by TLS and over HTTP/2 as the suite does.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(ok(connected(address)))
    }

    /// Connects in clear and over HTTP/1, in each suite: to an admin listener, say.
    #[track_caller]
    pub fn connect_in_clear(address: SocketAddr) -> Self {
        Self::from(ok(Client::connect_in_clear(address)))
    }

    /// Connects by TLS and over HTTP/1, in each suite. The first exchange fails if the handshake did.
    #[track_caller]
    pub fn connect_by_tls(address: SocketAddr, tls: &ClientTls) -> Self {
        Self::from(ok(Client::connect_by_tls(address, tls)))
    }

    /// Takes over a connected TCP stream and sets its timeouts; does a handshake if the suite runs over TLS.
    #[track_caller]
    pub fn over(stream: TcpStream) -> Self {
        if http2::is_on() {
            return Self { client: ok(Client::undecided(stream)), protocol: Protocol::Undecided(choose) };
        }
        Self::from(ok(Client::over(stream)))
    }

    /// Shuts down the sending side.
    #[track_caller]
    pub fn end_sending(&mut self) -> &mut Self {
        self.decide(None);
        ok(self.client.finish_sending());
        self
    }
}

/// Does the handshake of a suite over TLS, for HTTP/2 or HTTP/1.
fn choose(stream: &Stream, is_http2: bool) -> Result<&'static str, Error> {
    if !tls::is_on() {
        return Ok("http");
    }
    stream.secure(&if is_http2 { ClientTls::of_suites_over_http2() } else { ClientTls::of_suites() })?;
    Ok("https")
}

impl<S: Read + Write> From<Client<S>> for TestClient<S> {
    fn from(client: Client<S>) -> Self {
        Self { client, protocol: Protocol::Http1 }
    }
}

impl<S: Read + Write> TestClient<S> {
    /// Takes over any stream, with the timeouts that it has, over HTTP/1.
    pub fn new(stream: S) -> Self {
        Self::from(Client::new(stream))
    }

    /// Takes over any stream, with the timeouts that it has, over HTTP/2.
    pub fn over_http2(stream: S) -> Self {
        let protocol = Protocol::Http2(Box::new(Exchanges::new("http")));
        Self { client: Client::new(stream), protocol }
    }

    /// Returns the stream. Received bytes that are still unread aren't in it.
    pub fn stream(&self) -> &S {
        self.client.stream()
    }

    /// Decides on HTTP/1, if nothing was sent before. `why` says what only HTTP/1 has.
    #[track_caller]
    fn decide(&mut self, why: Option<&str>) {
        if let Protocol::Undecided(choose) = self.protocol {
            why.map(http2::report_http1);
            ok(choose(self.client.stream(), false));
            self.protocol = Protocol::Http1;
        }
    }

    /// Returns the client of HTTP/1; panics if the connection has requests of HTTP/2.
    #[track_caller]
    fn http1(&mut self) -> &mut Client<S> {
        self.decide(None);
        let is_http2 = matches!(self.protocol, Protocol::Http2(_));
        assert!(!is_http2, "bytes of HTTP/1 on a connection of HTTP/2: call http2::skips");
        &mut self.client
    }

    /// Sends bytes as they are; over HTTP/2, content that the last request has announced.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        ok(self.send_bytes(bytes.as_ref()));
        self
    }

    /// Sends bytes. Ignores errors, because a server that has responded may close while the client still sends.
    #[track_caller]
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        drop(self.send_bytes(bytes.as_ref()));
        self
    }

    #[track_caller]
    fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.decide(Some("it sends bytes"));
        match &mut self.protocol {
            Protocol::Http2(exchanges) => exchanges.send(self.client.stream_mut(), bytes),
            _ => self.client.send(bytes),
        }
    }

    /// Sends a request without a body, or whose body is sent next. `fields` are lines without their ends.
    #[track_caller]
    pub fn ask(&mut self, method: &str, target: &str, fields: &[&str]) -> &mut Self {
        self.ask_with((method, target), fields, &Content::Whole(b""))
    }

    /// Sends a request whose body follows in chunks, or in frames over HTTP/2.
    #[track_caller]
    pub fn ask_chunked(&mut self, method: &str, target: &str, fields: &[&str]) -> &mut Self {
        self.ask_with((method, target), fields, &Content::Streamed)
    }

    /// Sends a chunk of a body.
    #[track_caller]
    pub fn chunk(&mut self, data: impl AsRef<[u8]>) -> &mut Self {
        let data = data.as_ref();
        if let Protocol::Http2(exchanges) = &mut self.protocol {
            ok(exchanges.send(self.client.stream_mut(), data));
            return self;
        }
        self.send([format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat())
    }

    /// Ends a body in chunks. `trailers` are lines without their ends.
    #[track_caller]
    pub fn last_chunk(&mut self, trailers: &[&str]) -> &mut Self {
        if let Protocol::Http2(exchanges) = &mut self.protocol {
            ok(exchanges.end_content(self.client.stream_mut(), trailers));
            return self;
        }
        let trailers: String = trailers.iter().map(|line| format!("{line}\r\n")).collect();
        self.send(format!("0\r\n{trailers}\r\n"))
    }

    #[track_caller]
    fn ask_with(
        &mut self,
        (method, target): (&str, &str),
        fields: &[&str],
        content: &Content<'_>,
    ) -> &mut Self {
        if http2::is_for_http1(method, fields) {
            self.decide(Some("it sends fields or a method of HTTP/1"));
        }
        if let Protocol::Undecided(choose) = self.protocol {
            let scheme = ok(choose(self.client.stream(), true));
            self.protocol = Protocol::Http2(Box::new(Exchanges::new(scheme)));
        }
        if let Protocol::Http2(exchanges) = &mut self.protocol {
            ok(exchanges.ask(self.client.stream_mut(), (method, target), fields, content));
            return self;
        }
        match content {
            // A server that has responded may close while the client still sends.
            Content::Whole(content) if !content.is_empty() => {
                self.try_send([&request(method, target, fields)[..], content].concat())
            }
            Content::Whole(_) => self.send(request(method, target, fields)),
            Content::Streamed => {
                self.send(request(method, target, &[fields, &["Transfer-Encoding: chunked"]].concat()))
            }
        }
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
        self.ask_with((method, target), &fields, &Content::Whole(body)).response(method)
    }

    /// Reads the whole response to a request with this method. Interim responses (`1xx`) are returned too.
    #[track_caller]
    pub fn response(&mut self, method: &str) -> ClientResponse {
        if let Protocol::Http2(exchanges) = &mut self.protocol {
            return ok(exchanges.response(self.client.stream_mut()));
        }
        ok(self.client.response_to(method)).into()
    }

    /// Reads the head of a response. Read the body with [`TestClient::data`] or [`TestClient::rest`].
    #[track_caller]
    pub fn head(&mut self) -> ClientResponse {
        if let Protocol::Http2(exchanges) = &mut self.protocol {
            return ok(exchanges.head(self.client.stream_mut()));
        }
        Response { head: ok(self.client.head("GET")), body: Vec::new() }.into()
    }

    /// Reads the next bytes of a body, of one chunk or frame; empty at its end.
    #[track_caller]
    pub fn data(&mut self) -> Vec<u8> {
        if let Protocol::Http2(exchanges) = &mut self.protocol {
            return ok(exchanges.data(self.client.stream_mut()));
        }
        let mut read = Vec::new();
        ok(self.client.data(usize::MAX, &mut |data| read.extend_from_slice(data)));
        read
    }

    /// Reads the rest of the body of the response whose head was read.
    #[track_caller]
    pub fn body(&mut self) -> Vec<u8> {
        let (body, is_cut) = self.body_or_cut();
        assert!(!is_cut, "the server cuts the body after {} bytes", body.len());
        body
    }

    /// Reads the rest of a body, and returns true if the server cuts it.
    #[track_caller]
    pub fn body_or_cut(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        loop {
            let before = body.len();
            let read = match &mut self.protocol {
                Protocol::Http2(exchanges) => {
                    exchanges.data(self.client.stream_mut()).map(|piece| body.extend(piece))
                }
                _ => self.client.data(usize::MAX, &mut |piece| body.extend_from_slice(piece)).map(drop),
            };
            match read {
                Ok(()) if body.len() > before => {}
                Err(Error::Truncated | Error::StreamReset(_)) => return (body, true),
                read => {
                    ok(read);
                    return (body, false);
                }
            }
        }
    }

    /// Returns the value of `Connection` in a response after which the server closes: none over HTTP/2.
    pub fn closing(&self) -> Option<&'static str> {
        Some("close").filter(|_| !matches!(self.protocol, Protocol::Http2(_)))
    }

    /// Checks that a response is the last one of its connection. Over HTTP/2 only its stream ends.
    #[track_caller]
    pub fn ends_after(&mut self, response: &ClientResponse) {
        assert_eq!(response.field("Connection"), self.closing());
        if self.closing().is_some() {
            self.is_ended();
        }
    }

    /// Reads exactly so many bytes, without parsing them.
    #[track_caller]
    pub fn exactly(&mut self, length: usize) -> Vec<u8> {
        ok(self.http1().exactly(length))
    }

    /// Reads all bytes up to the orderly end of the connection, without parsing them.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<u8> {
        ok(self.http1().rest())
    }

    /// Checks that the server has closed the connection in order and sends nothing more, except frames of the connection.
    #[track_caller]
    pub fn is_ended(&mut self) {
        if let Protocol::Http2(exchanges) = &mut self.protocol {
            return ok(exchanges.end(self.client.stream_mut()));
        }
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
    /// Names and values of the trailers of HTTP/2; those of HTTP/1 are checked, and dropped.
    pub trailers: Vec<(String, String)>,
}

impl From<Response> for ClientResponse {
    fn from(Response { head, body }: Response) -> Self {
        let fields = head.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { status: head.status, fields: fields.collect(), body, trailers: Vec::new() }
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
