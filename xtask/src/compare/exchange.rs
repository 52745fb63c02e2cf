//! One request to one server as raw bytes, and whatever comes back: these servers may answer anything.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::harness::answer::Fault;
use crate::harness::client::PATIENCE;

/// Asked for behind each request, to see whether the connection stays, and whether both sides agree on where the request has ended.
const NEXT: &[u8] = b"GET /small.txt HTTP/1.1\r\nHost: compare.test\r\nConnection: close\r\n\r\n";

/// Bytes of one answer at most.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status line's version; `None` where there is no status line, as in HTTP/0.9.
    pub(super) version: Option<String>,
    /// 0 without a status line.
    pub(super) status: u16,
    /// Names in small letters, values as they came.
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Statuses of what came before, such as 100.
    pub(super) interim: Vec<u16>,
    pub(super) after: After,
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Closes,
    /// A next request was answered with this status.
    Stays(u16),
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// Sends a request and reads what comes; `None` where the connection is closed without a word.
pub(super) fn exchange(request: &[u8], address: SocketAddr) -> Result<Option<Answer>, Fault> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut connection = Connection { stream, bytes: Vec::new(), is_ended: false };
    connection.stream.write_all(request)?;
    let Some(mut answer) = connection.answer(request.starts_with(b"HEAD "))? else { return Ok(None) };
    answer.after = connection.after()?;
    Ok(Some(answer))
}

struct Connection {
    stream: TcpStream,
    /// What came and was not yet taken.
    bytes: Vec<u8>,
    is_ended: bool,
}

impl Connection {
    /// The final answer, with those before it.
    fn answer(&mut self, to_head: bool) -> Result<Option<Answer>, Fault> {
        let mut interim = Vec::new();
        loop {
            let Some(head) = self.head()? else { return Ok(None) };
            let mut answer = parse(&head)?;
            if (100..200).contains(&answer.status) {
                interim.push(answer.status);
                continue;
            }
            answer.body = self.body(&answer, to_head)?;
            answer.interim = interim;
            return Ok(Some(answer));
        }
    }

    /// Whether another request is answered.
    fn after(&mut self) -> Result<After, Fault> {
        if self.is_ended || self.stream.write_all(NEXT).is_err() {
            return Ok(After::Closes);
        }
        match self.head() {
            Ok(Some(head)) => Ok(After::Stays(parse(&head)?.status)),
            Ok(None) | Err(Fault::Reset) => Ok(After::Closes),
            Err(fault) => Err(fault),
        }
    }

    /// A head with its empty line, or all there is where no status line begins it; `None` at the end.
    fn head(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        const START: &[u8] = b"HTTP/";
        loop {
            let begins = self.bytes.len().min(START.len());
            if self.bytes[..begins] != START[..begins] {
                self.read_to_end()?;
                return Ok(Some(b"\r\n".to_vec()));
            }
            if let Some(place) = self.bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                return Ok(Some(self.bytes.drain(..place + 4).collect()));
            }
            if !self.more()? {
                return if self.bytes.is_empty() { Ok(None) } else { Err(Fault::Truncated) };
            }
        }
    }

    fn body(&mut self, answer: &Answer, to_head: bool) -> Result<Vec<u8>, Fault> {
        if to_head || matches!(answer.status, 204 | 304) {
            return Ok(Vec::new());
        }
        let is_chunked = answer.field("transfer-encoding").is_some();
        match answer.field("content-length").and_then(|length| length.parse().ok()) {
            _ if is_chunked => self.chunks(),
            Some(length) => self.exactly(length),
            None => {
                self.read_to_end()?;
                Ok(std::mem::take(&mut self.bytes))
            }
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(line.trim(), 16)
                .map_err(|_| Fault::Malformed(format!("chunk size {line:?}")))?;
            body.extend(self.exactly(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn line(&mut self) -> Result<String, Fault> {
        loop {
            if let Some(place) = self.bytes.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.bytes.drain(..place + 2).collect();
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            self.some()?;
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, Fault> {
        while self.bytes.len() < length {
            self.some()?;
        }
        Ok(self.bytes.drain(..length).collect())
    }

    fn some(&mut self) -> Result<(), Fault> {
        if self.more()? { Ok(()) } else { Err(Fault::Truncated) }
    }

    fn read_to_end(&mut self) -> Result<(), Fault> {
        while self.more()? {}
        Ok(())
    }

    /// Receives once; false at the end. One that has been closed hard has ended too.
    fn more(&mut self) -> Result<bool, Fault> {
        const READ_BYTES: usize = 16 * 1024;
        if self.bytes.len() > ANSWER_BYTES_MAX {
            return Err(Fault::Malformed("an endless answer".to_owned()));
        }
        let mut buffer = [0; READ_BYTES];
        let count = match self.stream.read(&mut buffer).map_err(Fault::from) {
            Ok(count) => count,
            Err(Fault::Reset) => 0,
            Err(fault) => return Err(fault),
        };
        self.is_ended = count == 0;
        self.bytes.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    }
}

fn parse(head: &[u8]) -> Result<Answer, Fault> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_end().split("\r\n");
    let line = lines.next().unwrap_or_default();
    let version = line.split_once(' ').map(|(version, _)| version.to_owned());
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    if version.is_some() && status.is_none() {
        return Err(Fault::Malformed(format!("status line {line:?}")));
    }
    let pairs = lines.filter_map(|line| line.split_once(':'));
    let fields = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let (status, body, interim) = (status.unwrap_or(0), Vec::new(), Vec::new());
    Ok(Answer { version, status, fields, body, interim, after: After::Closes })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::{After, NEXT, exchange};

    /// What is made of these answers, the second one to a next request.
    fn answered(first: &'static [u8], second: &'static [u8]) -> Result<Option<super::Answer>, super::Fault> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 1];
            stream.read_exact(&mut request).expect("a request");
            stream.write_all(first).expect("sent");
            if !second.is_empty() {
                stream.read_exact(&mut vec![0; NEXT.len()]).expect("a next request");
                stream.write_all(second).expect("sent");
            }
        });
        let answer = exchange(b"G", address);
        server.join().expect("it was served");
        answer
    }

    #[test]
    fn answers_of_every_form_are_read() {
        let answer = answered(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\n\r\n",
        );
        let answer = answer.expect("no fault").expect("an answer");
        assert_eq!((answer.status, answer.interim, answer.body), (200, vec![100], b"ab".to_vec()));
        assert_eq!(answer.after, After::Stays(204));
        let answer =
            answered(b"HTTP/1.0 404 None\r\nA: b\r\n\r\nrest", b"").expect("no fault").expect("an answer");
        assert_eq!((answer.status, answer.field("a"), &answer.body[..]), (404, Some("b"), &b"rest"[..]));
        assert_eq!(answer.after, After::Closes);
        let answer = answered(b"index", b"").expect("no fault").expect("an answer");
        assert_eq!((answer.version, answer.status, &answer.body[..]), (None, 0, &b"index"[..]));
        assert_eq!(answered(b"", b""), Ok(None));
        assert!(answered(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1", b"").is_err());
    }
}
