//! A small HTTP client for the program's own commands: one request on one connection, all within a deadline.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Maximum length of a response's head, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// A server's URL in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    /// Host and port, or `unix:` and a path.
    address: String,
    host: String,
    path: String,
}

impl Url {
    /// Parses `http://HOST:PORT/PATH`, where scheme, port and path may be omitted, or `unix:PATH`.
    pub(crate) fn parse(text: &str) -> Self {
        if text.starts_with("unix:") {
            return Self { address: text.to_owned(), host: "localhost".to_owned(), path: "/".to_owned() };
        }
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let (host, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let has_port = host.rsplit(']').next().is_some_and(|last| last.contains(':'));
        let address = if has_port { host.to_owned() } else { format!("{host}:80") };
        Self { address, host: host.to_owned(), path: path.to_owned() }
    }

    /// Replaces the path.
    pub(crate) fn with_path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Sends a `GET` request. `version` is 1.0 for a response that can't be chunked.
    ///
    /// The connection fails with [`ErrorKind::TimedOut`] or [`ErrorKind::WouldBlock`] at the deadline.
    pub(crate) fn get(&self, version: &str, deadline: Instant) -> io::Result<Connection> {
        let mut stream = match self.address.strip_prefix("unix:") {
            Some(path) => OwnedFd::from(UnixStream::connect(path)?).into(),
            None => connect(self.address.to_socket_addrs()?, deadline)?,
        };
        stream.set_write_timeout(Some(left(deadline)?))?;
        let (host, path) = (&self.host, &self.path);
        let request = format!(
            "GET {path} HTTP/{version}\r\nHost: {host}\r\nUser-Agent: shearwater\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        Ok(Connection { stream, deadline })
    }

    /// Requests the URL, and returns the status and the body. Fails for a body of more than `bytes_max` bytes.
    pub(crate) fn fetch(&self, bytes_max: usize, deadline: Instant) -> io::Result<(u16, Vec<u8>)> {
        let connection = self.get("1.0", deadline)?;
        let mut bytes = Vec::new();
        connection.take((HEAD_BYTES_MAX + bytes_max + 1) as u64).read_to_end(&mut bytes)?;
        parse_response(&bytes, bytes_max)
    }
}

/// A connection to a server. Each read ends at the deadline.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Possibly a Unix-domain socket: the calls are the same.
    stream: TcpStream,
    deadline: Instant,
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.deadline)?))?;
        self.stream.read(buffer)
    }
}

/// Connects to the first address that accepts: `localhost` has one of IPv6, where the server need not listen.
fn connect(addresses: impl Iterator<Item = SocketAddr>, deadline: Instant) -> io::Result<TcpStream> {
    let mut result = Err(Error::other("the name has no address"));
    for address in addresses {
        result = TcpStream::connect_timeout(&address, left(deadline)?);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Returns the time that is left, or an error if there is none.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Returns the status of a status line: its first 12 bytes suffice.
pub(crate) fn parse_status(line: &[u8]) -> io::Result<u16> {
    let line = line.get(..12).and_then(|line| std::str::from_utf8(line).ok());
    let status = line.and_then(|line| line.strip_prefix("HTTP/1.")?.get(2..)?.parse().ok());
    status.ok_or_else(|| Error::other("the response is not HTTP/1.1"))
}

/// Parses a response that ends with its connection: one to HTTP/1.0 has no transfer coding.
fn parse_response(bytes: &[u8], bytes_max: usize) -> io::Result<(u16, Vec<u8>)> {
    if bytes.is_empty() {
        return Err(Error::other("the server closed the connection without a response"));
    }
    let status = parse_status(bytes)?;
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").filter(|end| *end <= HEAD_BYTES_MAX);
    let end = end.ok_or_else(|| Error::other("the response's head is incomplete or too long"))?;
    let body = &bytes[end + 4..];
    if body.len() > bytes_max {
        return Err(Error::other(format!("the response has more than {bytes_max} bytes")));
    }
    Ok((status, body.to_vec()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use testkit::random;

    use super::{HEAD_BYTES_MAX, Url, connect, parse_response};

    #[test]
    fn connects_to_the_first_address_that_accepts() {
        let free = || TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = |listener: &TcpListener| listener.local_addr().expect("an address");
        let (closed, open) = (address(&free()), free());
        let deadline = Instant::now() + Duration::from_secs(20);
        let stream = connect([closed, address(&open)].into_iter(), deadline).expect("one accepts");
        assert_eq!(stream.peer_addr().expect("connected"), address(&open));
        assert!(connect([closed].into_iter(), deadline).is_err());
    }

    #[test]
    fn parses_urls() {
        for (text, address, host, path) in [
            ("http://127.0.0.1:8080/health", "127.0.0.1:8080", "127.0.0.1:8080", "/health"),
            ("localhost", "localhost:80", "localhost", "/"),
            ("[::1]", "[::1]:80", "[::1]", "/"),
            ("[::1]:81/a/b", "[::1]:81", "[::1]:81", "/a/b"),
            ("unix:/run/a.sock", "unix:/run/a.sock", "localhost", "/"),
        ] {
            let url = Url::parse(text);
            assert_eq!((url.address.as_str(), url.host.as_str(), url.path.as_str()), (address, host, path));
        }
    }

    #[test]
    fn rejects_responses_that_are_incomplete_or_too_large() {
        let whole = "HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello";
        assert_eq!(parse_response(whole.as_bytes(), 5).expect("a response"), (200, b"hello".to_vec()));
        for (response, error) in [
            ("", "the server closed the connection without a response"),
            ("SSH-2.0-OpenSSH_9.2\r\n", "the response is not HTTP/1.1"),
            ("HTTP/1.1 200 OK\r\n", "the response's head is incomplete or too long"),
            ("HTTP/1.1 200 OK\r\n\r\nsix by", "the response has more than 5 bytes"),
        ] {
            assert_eq!(parse_response(response.as_bytes(), 5).expect_err(response).to_string(), error);
        }
        let long = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX));
        assert!(parse_response(long.as_bytes(), 5).is_err());
    }

    #[test]
    fn parses_any_bytes_without_a_panic() {
        let mut random = random::part(24, 1);
        for _ in 0..10_000 {
            let mut bytes = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello".to_vec();
            for _ in 0..random.usize(1..8) {
                let place = random.usize(..bytes.len());
                bytes[place] = random.u8(..);
            }
            bytes.truncate(random.usize(..=bytes.len()));
            if let Ok((_, body)) = parse_response(&bytes, 100) {
                assert!(body.len() <= bytes.len());
            }
        }
    }
}
