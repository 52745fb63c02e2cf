//! One request, looked at closely: what a run may expect.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long the server may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A longer answer is not read.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its length, head included.
    pub bytes: u64,
    /// Its head, without the blank line.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// Asks for the target once.
///
/// # Errors
/// No connection, no answer in time, or none whose end is known.
pub fn get(address: SocketAddr, target: &str) -> Result<Answer, String> {
    get_from(address, "lab", target)
}

/// Asks a host for the target once.
///
/// # Errors
/// As [`get`].
pub fn get_from(address: SocketAddr, host: &str, target: &str) -> Result<Answer, String> {
    exchange(address, host, target).map_err(|error| format!("GET {target}: {error}"))
}

fn exchange(address: SocketAddr, host: &str, target: &str) -> Result<Answer, String> {
    let say = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(say)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(say)?;
    // In one piece: null servers answer whatever they receive.
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(say)?;
    let mut received = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = stream.read(&mut buffer).map_err(say)?;
        if length == 0 {
            return Err(format!("closed after {} bytes", received.len()));
        }
        received.extend_from_slice(&buffer[..length]);
        if let Some(answer) = parse(&received)? {
            return Ok(answer);
        }
        if received.len() > ANSWER_BYTES_MAX {
            return Err(format!("more than {ANSWER_BYTES_MAX} bytes"));
        }
    }
}

/// The answer, or nothing if it is not whole yet.
///
/// # Errors
/// What is no HTTP/1.1 answer with a `Content-Length`, or goes on after its end.
pub fn parse(received: &[u8]) -> Result<Option<Answer>, String> {
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| format!("no status line: {head:?}"))?;
    let length = head.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.ok_or_else(|| format!("no Content-Length: {head:?}"))?;
    let body = &received[end + 4..];
    if body.len() > length {
        return Err(format!("{} bytes more than announced", body.len() - length));
    }
    let whole = body.len() == length;
    Ok(whole.then(|| Answer { status, bytes: received.len() as u64, head, body: body.to_vec() }))
}
