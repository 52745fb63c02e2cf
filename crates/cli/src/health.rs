//! `shearwater health`: one request to a server, for health checks where no other client exists.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::args::Health;
use crate::failure::Failure;
use crate::report;

/// Length of `HTTP/1.1 200`.
const STATUS_BYTES: usize = 12;

/// Requests the URL. Fails unless the status is 2xx or 3xx.
pub(crate) fn check(arguments: &Health) -> Result<(), Failure> {
    let url = arguments.url.as_str();
    let unhealthy = |why: String| Failure { code: 1, ..Failure::start(format!("{url}: {why}")) };
    let status = request(url, Instant::now() + arguments.timeout).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            unhealthy(format!("no response within {:?}", arguments.timeout))
        }
        _ => unhealthy(error.to_string()),
    })?;
    match status {
        200..400 => report::print(&format!("{url}: {status}\n")),
        _ => Err(unhealthy(format!("status {status}"))),
    }
}

fn request(url: &str, deadline: Instant) -> io::Result<u16> {
    if let Some(path) = url.strip_prefix("unix:") {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(left(deadline)?))?;
        stream.set_write_timeout(Some(left(deadline)?))?;
        return status(stream, "localhost", "/");
    }
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
    let has_port = authority.rsplit(']').next().is_some_and(|last| last.contains(':'));
    let address = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let mut addresses = address.to_socket_addrs()?;
    let address = addresses.next().ok_or_else(|| Error::other("the name has no address"))?;
    let stream = TcpStream::connect_timeout(&address, left(deadline)?)?;
    stream.set_read_timeout(Some(left(deadline)?))?;
    stream.set_write_timeout(Some(left(deadline)?))?;
    status(stream, authority, path)
}

/// Returns the time that is left, or an error if there is none.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Sends a request and returns the status of its response. A server that sends single bytes is waited for 12 times.
fn status(mut stream: impl Read + Write, host: &str, path: &str) -> io::Result<u16> {
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: shearwater\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut line = [0; STATUS_BYTES];
    stream.read_exact(&mut line).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Error::other("the server closed the connection without a response"),
        _ => error,
    })?;
    let line = std::str::from_utf8(&line).ok();
    let status = line.and_then(|line| line.strip_prefix("HTTP/1.")?.get(2..)?.parse().ok());
    status.ok_or_else(|| Error::other("the response is not HTTP/1.1"))
}
