//! A raw client on one connection: it sends what it is told, and reads exactly one answer at a time.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::answer::{BodyLength, Fault, HEAD_MAX, Head};

/// How long a read or a write may wait before it counts as "no answer".
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connect is tried again while the system has no local port free.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// The most body bytes one answer may have when it is read into memory.
const BODY_MAX: u64 = 64 * 1024 * 1024;
/// How many bytes one read asks for.
const READ_SIZE: usize = 64 * 1024;

/// One answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its head.
    pub(crate) head: Head,
    /// Its body, without chunk framing.
    pub(crate) body: Vec<u8>,
}

/// A connection, with what was received and not yet used.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    used: usize,
}

impl Client {
    /// Connects; waits a bounded time for a free local port.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Fault> {
        let deadline = Instant::now() + CONNECT_PATIENCE;
        loop {
            match TcpStream::connect(address) {
                Ok(stream) => return Self::over(stream),
                Err(error)
                    if error.kind() == std::io::ErrorKind::AddrNotAvailable && Instant::now() < deadline =>
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes over a connected stream.
    pub(crate) fn over(stream: TcpStream) -> Result<Self, Fault> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: Vec::new(), used: 0 })
    }

    /// The socket itself.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends all bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stream.write_all(bytes).map_err(Fault::from)
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish_sending(&self) -> Result<(), Fault> {
        self.stream.shutdown(Shutdown::Write).map_err(Fault::from)
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) -> Result<(), Fault> {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).map_err(Fault::from)
    }

    /// Sends a request and reads its answer.
    pub(crate) fn exchange(&mut self, request: &[u8], to_head: bool) -> Result<Answer, Fault> {
        self.send(request)?;
        self.answer(to_head)
    }

    /// Reads one whole answer and not a byte more.
    pub(crate) fn answer(&mut self, to_head: bool) -> Result<Answer, Fault> {
        let head = self.head()?;
        let body = match head.body_length(to_head) {
            BodyLength::None => Vec::new(),
            BodyLength::Exactly(length) => self.exactly(length)?,
            BodyLength::Chunked => self.chunked()?,
            BodyLength::UntilClose => self.until_close()?,
        };
        Ok(Answer { head, body })
    }

    /// Reads one head.
    pub(crate) fn head(&mut self) -> Result<Head, Fault> {
        let length = self.find(b"\r\n\r\n", HEAD_MAX)? + 4;
        let head = Head::parse(&self.buffer[self.used..self.used + length]);
        self.take(length);
        head
    }

    /// Gives up to `most` body bytes to `visit`, at least one unless `most` is 0, and returns how many.
    pub(crate) fn some(&mut self, most: u64, visit: &mut dyn FnMut(&[u8])) -> Result<u64, Fault> {
        if most == 0 {
            return Ok(0);
        }
        if self.waiting().is_empty() {
            self.fill_or_truncated()?;
        }
        let waiting = self.waiting();
        let length = waiting.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        visit(&waiting[..length]);
        self.take(length);
        Ok(length as u64)
    }

    /// Expects the end of the connection: no further byte, no reset.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        if self.waiting().is_empty() && self.fill()? == 0 {
            return Ok(());
        }
        Err(Fault::Malformed(format!("{} bytes where the connection should end", self.waiting().len())))
    }

    fn exactly(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        if length > BODY_MAX {
            return Err(Fault::Malformed(format!("a body of {length} bytes")));
        }
        let mut body = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        while (body.len() as u64) < length {
            let missing = length - body.len() as u64;
            self.some(missing, &mut |bytes| body.extend_from_slice(bytes))?;
        }
        Ok(body)
    }

    /// RFC 9112 section 7.1, without extensions or trailers: this server sends none.
    fn chunked(&mut self) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        loop {
            let digits = self.line()?;
            let Ok(size) = u64::from_str_radix(&digits, 16) else {
                return Err(Fault::Malformed(format!("chunk size {digits:?}")));
            };
            let chunk = self.exactly(size)?;
            body.extend_from_slice(&chunk);
            if !self.line()?.is_empty() {
                return Err(Fault::Malformed("no line end after a chunk".to_owned()));
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn until_close(&mut self) -> Result<Vec<u8>, Fault> {
        while self.fill()? > 0 {
            if self.waiting().len() as u64 > BODY_MAX {
                return Err(Fault::Malformed("an endless body".to_owned()));
            }
        }
        let body = self.waiting().to_vec();
        self.take(body.len());
        Ok(body)
    }

    fn line(&mut self) -> Result<String, Fault> {
        let length = self.find(b"\r\n", 1024)?;
        let line = String::from_utf8_lossy(&self.waiting()[..length]).into_owned();
        self.take(length + 2);
        Ok(line)
    }

    /// Where `mark` begins in what is waiting, reading on until it is there.
    fn find(&mut self, mark: &[u8], most: usize) -> Result<usize, Fault> {
        loop {
            let waiting = self.waiting();
            if let Some(at) = waiting.windows(mark.len()).position(|window| window == mark) {
                return Ok(at);
            }
            if waiting.len() > most {
                return Err(Fault::Malformed(format!("no {mark:?} in {most} bytes")));
            }
            if waiting.is_empty() {
                let received = self.fill()?;
                if received == 0 {
                    return Err(Fault::Closed);
                }
            } else {
                self.fill_or_truncated()?;
            }
        }
    }

    fn waiting(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    fn take(&mut self, length: usize) {
        self.used += length;
        if self.used == self.buffer.len() {
            self.buffer.clear();
            self.used = 0;
        }
    }

    fn fill_or_truncated(&mut self) -> Result<usize, Fault> {
        match self.fill()? {
            0 => Err(Fault::Truncated),
            received => Ok(received),
        }
    }

    /// Receives once; 0 is the end of the connection.
    fn fill(&mut self) -> Result<usize, Fault> {
        let used = std::mem::take(&mut self.used);
        self.buffer.drain(..used);
        let old = self.buffer.len();
        self.buffer.resize(old + READ_SIZE, 0);
        let received = self.stream.read(&mut self.buffer[old..]);
        self.buffer.truncate(old + *received.as_ref().unwrap_or(&0));
        received.map_err(Fault::from)
    }
}

/// A request without body, on a connection that stays.
pub(crate) fn request(method: &str, target: &str) -> Vec<u8> {
    request_with(method, target, "")
}

/// A request without body; `fields` are further field lines, each with its line end.
pub(crate) fn request_with(method: &str, target: &str, fields: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: trial.test\r\n{fields}\r\n").into_bytes()
}
