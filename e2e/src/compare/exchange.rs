//! One request as raw bytes, and any response: the compared servers may send what ours never does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use testkit::{Error, TIMEOUT};

/// Sent after each response, to see whether the connection stays and both sides agree where the request ended.
const NEXT: &[u8] = b"GET /small.txt HTTP/1.1\r\nHost: compare.test\r\nConnection: close\r\n\r\n";
const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// A response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// Version of the status line; empty without a status line, as in HTTP/0.9.
    pub(super) version: String,
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Statuses of interim responses.
    pub(super) interim: Vec<u16>,
    /// Status of the response to a next request, if the connection stayed.
    pub(super) next: Option<u16>,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Sends a request and reads the response; `None` if the connection ends without one.
pub(super) fn exchange(request: &[u8], address: SocketAddr) -> Result<Option<Received>, Error> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut connection = Connection { stream, bytes: Vec::new(), ended: false };
    connection.stream.write_all(request)?;
    let to_head = request.starts_with(b"HEAD ");
    let Some(mut received) = connection.read(|bytes, ended| response(bytes, to_head, ended))? else {
        return Ok(None);
    };
    if !connection.ended && connection.stream.write_all(NEXT).is_ok() {
        // The head is enough.
        received.next = connection.read(head)?.map(|next| next.status);
    }
    Ok(Some(received))
}

struct Connection {
    stream: TcpStream,
    bytes: Vec<u8>,
    ended: bool,
}

type Parsed = Result<Option<(Received, usize)>, Error>;

impl Connection {
    /// Receives until a response is complete; `None` if the connection ends before its first byte. A reset is an end too.
    fn read(&mut self, parse: impl Fn(&[u8], bool) -> Parsed) -> Result<Option<Received>, Error> {
        loop {
            if let Some((received, used)) = parse(&self.bytes, self.ended)? {
                self.bytes.drain(..used);
                return Ok(Some(received));
            }
            if self.ended || self.bytes.len() > RESPONSE_BYTES_MAX {
                return if self.bytes.is_empty() { Ok(None) } else { Err(Error::Truncated) };
            }
            let mut buffer = [0; 16 * 1024];
            let length = match self.stream.read(&mut buffer).map_err(Error::from) {
                Err(Error::Reset) => 0,
                length => length?,
            };
            self.ended = length == 0;
            self.bytes.extend_from_slice(&buffer[..length]);
        }
    }
}

/// Parses a response with its interim responses, and returns its length.
fn response(bytes: &[u8], to_head: bool, ended: bool) -> Parsed {
    let Some((mut received, head_len)) = head(bytes, ended)? else { return Ok(None) };
    let rest = &bytes[head_len..];
    if (100..200).contains(&received.status) {
        let following = response(rest, to_head, ended)?;
        return Ok(following.map(|(mut following, length)| {
            following.interim.insert(0, received.status);
            (following, head_len + length)
        }));
    }
    let length = received.header("content-length").and_then(|value| value.parse::<usize>().ok());
    let body_len = if to_head || matches!(received.status, 204 | 304) {
        Some(0)
    } else if received.header("transfer-encoding").is_some() {
        let Some((body, length)) = chunks(rest)? else { return Ok(None) };
        received.body = body;
        return Ok(Some((received, head_len + length)));
    } else {
        length.or(ended.then_some(rest.len()))
    };
    let Some(body) = body_len.and_then(|length| rest.get(..length)) else { return Ok(None) };
    received.body = body.to_vec();
    Ok(Some((received, head_len + body.len())))
}

/// Parses a head; everything up to the end if there is no status line.
fn head(bytes: &[u8], ended: bool) -> Parsed {
    const START: &[u8] = b"HTTP/";
    let begin = bytes.len().min(START.len());
    if bytes[..begin] != START[..begin] {
        return Ok(ended.then(|| (Received::default(), 0)));
    }
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let mut words = line.split(' ');
    let version = words.next().unwrap_or_default().to_owned();
    let status = words.next().and_then(|status| status.parse().ok());
    let Some(status) = status else { return Err(Error::Malformed(format!("status line {line:?}"))) };
    let pairs = lines.filter_map(|line| line.split_once(':'));
    let headers = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    Ok(Some((Received { version, status, headers, ..Received::default() }, end + 4)))
}

/// Parses a chunked body. Returns it with its length on the wire.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Error> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Some(line) = bytes[at..].windows(2).position(|window| window == b"\r\n") else { return Ok(None) };
        let digits = String::from_utf8_lossy(&bytes[at..at + line]).trim().to_owned();
        let size = usize::from_str_radix(&digits, 16);
        let size = size.map_err(|_| Error::Malformed(format!("chunk size {digits:?}")))?;
        let begin = at + line + 2;
        let Some(chunk) = bytes.get(begin..begin + size + 2) else { return Ok(None) };
        body.extend_from_slice(&chunk[..size]);
        at = begin + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Received, response};

    fn parse(bytes: &[u8], ended: bool) -> Option<(Received, usize)> {
        response(bytes, false, ended).unwrap()
    }

    #[test]
    fn reads_responses_of_every_form() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
        let (received, length) = parse(bytes, false).unwrap();
        assert_eq!(
            (received.status, received.interim, received.body, length),
            (200, vec![100], b"ab".to_vec(), bytes.len())
        );
        assert!((0..bytes.len()).all(|cut| parse(&bytes[..cut], false).is_none()));
        let (received, _) = parse(b"HTTP/1.0 404 None\r\nA: b\r\n\r\nrest", true).unwrap();
        assert_eq!(
            (received.status, received.header("a"), &received.body[..]),
            (404, Some("b"), &b"rest"[..])
        );
        let (received, _) = parse(b"index", true).unwrap();
        assert_eq!((received.version.as_str(), received.status, &received.body[..]), ("", 0, &b"index"[..]));
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1", true).is_none());
        assert!(response(b"HTTP/1.1 x\r\n\r\n", false, true).is_err());
    }
}
