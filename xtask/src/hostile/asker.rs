//! One normal client's connection: it asks when it is told to, one request at a time, and compares each answer.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::template::Template;

/// Requests that may wait behind one that is not answered; further ones count as failed.
const WAITING_MAX: usize = 256;

/// A keep-alive connection.
#[derive(Debug)]
pub(super) struct Asker {
    stream: TcpStream,
    /// When each request came up that is not answered yet; the first is on its way.
    waiting: VecDeque<Instant>,
    received: Vec<u8>,
}

impl Asker {
    /// Connects and registers under `token`.
    pub(super) fn open(address: SocketAddr, registry: &Registry, token: Token) -> std::io::Result<Self> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        Ok(Self { stream, waiting: VecDeque::new(), received: Vec::new() })
    }

    /// Asks now, or when the answers before it are there: the wait counts as latency.
    pub(super) fn ask(&mut self, now: Instant, request: &[u8]) -> Result<(), String> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(format!("{WAITING_MAX} requests wait for an answer"));
        }
        self.waiting.push_back(now);
        if self.waiting.len() == 1 { self.send(request) } else { Ok(()) }
    }

    /// How many requests are not answered.
    pub(super) fn unanswered(&self) -> usize {
        self.waiting.len()
    }

    /// Reads what has come. An answer gives its moment and latency to `answered`, and lets the next request go.
    pub(super) fn read(
        &mut self,
        request: &[u8],
        template: &Template,
        answered: &mut dyn FnMut(Instant, Duration),
    ) -> Result<(), String> {
        let mut piece = [0; 4096];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err("the connection ended".to_owned()),
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(format!("reading: {error}")),
            }
            if self.received.len() < template.length() {
                continue;
            }
            if !template.matches(&self.received) {
                return Err(format!("a wrong answer: {:?}", String::from_utf8_lossy(&self.received)));
            }
            self.received.clear();
            let Some(asked) = self.waiting.pop_front() else {
                return Err("an answer to nothing".to_owned());
            };
            answered(asked, asked.elapsed());
            if !self.waiting.is_empty() {
                self.send(request)?;
            }
        }
    }

    /// A request is far smaller than a socket's buffer.
    fn send(&mut self, request: &[u8]) -> Result<(), String> {
        self.stream.write_all(request).map_err(|error| format!("sending: {error}"))
    }
}
