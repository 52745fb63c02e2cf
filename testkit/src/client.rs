//! Blocking HTTP/1.1 client on one connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::error::{Error, malformed};
use crate::response::{Event, Head, Response, ResponseReader};
use crate::stream::Stream;
use crate::tls::{self, ClientTls};

/// Timeout of a single read or write: a safety net, never a measure.
pub const TIMEOUT: Duration = Duration::from_secs(20);
/// Time for which a connect is retried while the system has no local port free.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum body length of a response that is read into memory, bytes.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;
const READ_BYTES: usize = 64 * 1024;

/// A connection with what was received and not used yet. It sends any bytes, and reads one response at a time.
#[derive(Debug)]
pub struct Client<S = Stream> {
    stream: S,
    /// Room for one read. It is cleared once: to clear as much in front of each read takes long in tests without optimisation.
    room: Box<[u8]>,
    buffer: Vec<u8>,
    used: usize,
    reader: ResponseReader,
}

/// Formats a request without a body; `headers` are lines without their ends. Without `Host` among them, it is `localhost`.
pub fn request(method: &str, target: &str, headers: &[&str]) -> Vec<u8> {
    let is_host = |line: &&&str| line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case("host:"));
    let host = if headers.iter().any(|line| is_host(&line)) { "" } else { "Host: localhost\r\n" };
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    format!("{method} {target} HTTP/1.1\r\n{host}{headers}\r\n").into_bytes()
}

impl Client {
    /// Connects; by TLS if the suite runs over it ([`tls::SWITCH`]). Retries for 10 seconds while the system has no local port free.
    pub fn connect(address: SocketAddr) -> Result<Self, Error> {
        Self::over(connected(address)?)
    }

    /// Connects in clear, in each suite.
    pub fn connect_in_clear(address: SocketAddr) -> Result<Self, Error> {
        Self::with_timeouts(connected(address)?.into())
    }

    /// Connects by TLS, in each suite.
    pub fn connect_by_tls(address: SocketAddr, tls: &ClientTls) -> Result<Self, Error> {
        Self::secured(connected(address)?, tls)
    }

    /// Takes over a connected TCP stream and sets its timeouts; does a handshake if the suite runs over TLS.
    pub fn over(socket: TcpStream) -> Result<Self, Error> {
        if tls::is_on() {
            Self::secured(socket, &ClientTls::of_suites())
        } else {
            Self::with_timeouts(socket.into())
        }
    }

    fn secured(socket: TcpStream, tls: &ClientTls) -> Result<Self, Error> {
        let client = Self::with_timeouts(socket.into())?;
        Ok(Self::new(client.stream.secured(tls)?))
    }

    fn with_timeouts(stream: Stream) -> Result<Self, Error> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self::new(stream))
    }

    /// Connects in clear; [`TestClient`](crate::TestClient) does the handshake once it knows the protocol.
    pub(crate) fn undecided(socket: TcpStream) -> Result<Self, Error> {
        Self::with_timeouts(socket.into())
    }

    /// Shuts down the sending side.
    pub fn finish_sending(&self) -> Result<(), Error> {
        match self.stream.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != ErrorKind::NotConnected => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Closes the connection with a reset.
    pub fn reset(self) -> Result<(), Error> {
        Ok(SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?)
    }
}

pub(crate) fn connected(address: SocketAddr) -> Result<TcpStream, Error> {
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    loop {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            socket => return Ok(socket?),
        }
    }
}

impl<S: Read + Write> Client<S> {
    /// Takes over any stream, with the timeouts that it has.
    pub fn new(stream: S) -> Self {
        let room = vec![0; READ_BYTES].into();
        Self { stream, room, buffer: Vec::new(), used: 0, reader: ResponseReader::default() }
    }

    /// The stream itself. Bytes that are received but not used are not in it; [`Client::rest`] has them.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Accepts responses of HTTP/1.0 too, which other servers than ours send.
    pub fn accept_http10(&mut self) {
        self.reader.accept_http10();
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        Ok(self.stream.write_all(bytes.as_ref())?)
    }

    /// Sends a `GET` request and reads the response.
    pub fn get(&mut self, target: &str) -> Result<Response, Error> {
        self.request("GET", target, &[])
    }

    /// Sends a request without a body and reads the response; `headers` are lines without their ends.
    pub fn request(&mut self, method: &str, target: &str, headers: &[&str]) -> Result<Response, Error> {
        self.send(request(method, target, headers))?;
        self.response_to(method)
    }

    /// Reads the next whole response to a request that wasn't `HEAD`. Interim responses (`1xx`) are returned too.
    pub fn response(&mut self) -> Result<Response, Error> {
        self.response_to("GET")
    }

    /// Reads the next whole response to a request with this method.
    pub fn response_to(&mut self, method: &str) -> Result<Response, Error> {
        let head = self.head(method)?;
        let mut body = Vec::new();
        while self.data(usize::MAX, &mut |data| body.extend_from_slice(data))? > 0 {
            if body.len() > BODY_BYTES_MAX {
                return malformed("the body is too long to be read into memory");
            }
        }
        Ok(Response { head, body })
    }

    /// Reads the head of the next response to a request with this method. Read the body with [`Client::data`].
    pub fn head(&mut self, method: &str) -> Result<Head, Error> {
        self.reader.expect(method);
        loop {
            let step = self.reader.step(&self.buffer[self.used..])?;
            self.used += step.consumed;
            match step.event {
                Event::Head(head) => return Ok(head),
                Event::NeedsInput => {
                    if self.fill()? == 0 {
                        return if self.reader.is_between_responses() {
                            Err(Error::Closed)
                        } else {
                            Err(Error::Truncated)
                        };
                    }
                }
                Event::End => {}
                Event::Data(_) => return malformed("body bytes before a head"),
            }
        }
    }

    /// Reads body bytes, passes at most `most` to `visit`, and returns how many; 0 at the end of the body.
    pub fn data(&mut self, most: usize, visit: &mut dyn FnMut(&[u8])) -> Result<usize, Error> {
        loop {
            let unused = &self.buffer[self.used..];
            let step = self.reader.step(&unused[..unused.len().min(most)])?;
            self.used += step.consumed;
            match step.event {
                Event::Data(data) => {
                    visit(data);
                    return Ok(data.len());
                }
                Event::End => return Ok(0),
                Event::NeedsInput if self.used == self.buffer.len() => {
                    if self.fill()? == 0 {
                        return self.reader.finish().map(|()| 0);
                    }
                }
                Event::NeedsInput => {}
                Event::Head(_) => return malformed("a head instead of a body"),
            }
        }
    }

    /// Reads all bytes up to the orderly end of the connection, without parsing them.
    pub fn rest(&mut self) -> Result<Vec<u8>, Error> {
        while self.fill()? > 0 {}
        let rest = self.buffer.split_off(self.used);
        (self.used, self.reader) = (self.buffer.len(), ResponseReader::default());
        Ok(rest)
    }

    /// Reads exactly `length` bytes, without parsing them.
    pub fn exactly(&mut self, length: usize) -> Result<Vec<u8>, Error> {
        while self.buffer.len() - self.used < length {
            if self.fill()? == 0 {
                return Err(Error::Truncated);
            }
        }
        self.used += length;
        Ok(self.buffer[self.used - length..self.used].to_vec())
    }

    /// Expects the orderly end of the connection: no further byte, no reset.
    pub fn end(&mut self) -> Result<(), Error> {
        // A response without a body may still be at its end.
        if self.used == self.buffer.len() && self.fill()? == 0 {
            return Ok(());
        }
        malformed(format!("{} bytes after the last response", self.buffer.len() - self.used))
    }

    /// Receives once; 0 is the orderly end of the connection.
    fn fill(&mut self) -> Result<usize, Error> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let received = loop {
            match self.stream.read(&mut self.room) {
                // A signal interrupts a read with a timeout.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received?,
            }
        };
        self.buffer.extend_from_slice(&self.room[..received]);
        Ok(received)
    }
}
