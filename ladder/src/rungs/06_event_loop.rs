//! Rung 6, event loop: one thread serves all connections, and each whenever it is ready.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Instant;

use crate::rules::{Reply, Rules};
use crate::sys::{self, Epoll, ONE_SHOT, READABLE, WRITABLE};
use crate::wire::{
    self, ACCEPT_PAUSE, HEAD_BYTES_MAX, IDLE_TIMEOUT, LINGER_BYTES_MAX, RECEIVE_BYTES, SWEEP_INTERVAL,
};

/// Serves whichever client is ready.
pub(crate) fn serve(address: SocketAddr) -> io::Result<Infallible> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new()?;
    epoll.add(&listener, READABLE)?;
    EventLoop { epoll, listener, connections: Vec::new(), chunk: vec![0; RECEIVE_BYTES] }.run()
}

struct EventLoop {
    epoll: Epoll,
    listener: TcpListener,
    /// By descriptor number.
    connections: Vec<Option<Connection>>,
    chunk: Vec<u8>,
}

impl EventLoop {
    fn run(&mut self) -> io::Result<Infallible> {
        let (mut events, mut swept) = (sys::events(), Instant::now());
        loop {
            let count = self.epoll.wait(&mut events, SWEEP_INTERVAL)?;
            let now = Instant::now();
            for event in &events[..count] {
                let number = event.u64 as usize;
                if number == self.listener.as_raw_fd() as usize {
                    self.accept(now);
                } else if let Some(connection) = &mut self.connections[number] {
                    let progress = connection.progress(&mut self.chunk, now);
                    let watch = |flags| self.epoll.modify(&connection.stream, flags | ONE_SHOT);
                    if progress.and_then(watch).is_err() {
                        // Closing also ends the watch.
                        self.connections[number] = None;
                    }
                }
            }
            if now - swept >= SWEEP_INTERVAL {
                swept = now;
                let is_idle = |connection: &mut Connection| now - connection.active > IDLE_TIMEOUT;
                self.connections.iter_mut().for_each(|slot| drop(slot.take_if(is_idle)));
            }
        }
    }

    fn accept(&mut self, now: Instant) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return thread::sleep(ACCEPT_PAUSE),
            };
            let prepared = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            if prepared.and_then(|()| self.epoll.add(&stream, READABLE | ONE_SHOT)).is_err() {
                continue;
            }
            let number = stream.as_raw_fd() as usize;
            if self.connections.len() <= number {
                self.connections.resize_with(number + 1, || None);
            }
            self.connections[number] = Some(Connection {
                stream,
                input: Vec::new(),
                output: Vec::new(),
                state: State::Head,
                active: now,
            });
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// Received and not used yet.
    input: Vec<u8>,
    /// Responses that are not sent yet.
    output: Vec<u8>,
    state: State,
    active: Instant,
}

enum State {
    /// Receiving a head.
    Head,
    /// Discarding a body; the response follows.
    Body(Reply),
    /// The last response is in the output.
    Last,
    /// Our side has ended; so many bytes are discarded at most.
    Linger(u64),
}

impl Connection {
    /// Receives, responds and sends as far as possible now. Returns the event to wait for.
    fn progress(&mut self, chunk: &mut [u8], now: Instant) -> io::Result<u32> {
        self.active = now;
        // A client that doesn't read its responses isn't read from either.
        if !self.flush()? {
            return Ok(WRITABLE);
        }
        match self.stream.read(chunk) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.input.extend_from_slice(&chunk[..length]);
                self.process()?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(if self.flush()? { READABLE } else { WRITABLE })
    }

    /// Uses up the input; all responses go into the output.
    fn process(&mut self) -> io::Result<()> {
        loop {
            match &mut self.state {
                State::Head => {
                    let Some(length) = self.read_head() else { return Ok(()) };
                    let head = length.map(|length| &self.input[..length]);
                    match head.and_then(parse) {
                        Ok(reply) => {
                            self.input.drain(..length.unwrap_or_default());
                            if reply.expects_continue {
                                self.output.extend_from_slice(wire::CONTINUE);
                            }
                            self.state = State::Body(reply);
                        }
                        Err(status) => self.respond(status, false, false),
                    }
                }
                State::Body(reply) => {
                    let present = reply.body_bytes.min(self.input.len() as u64);
                    self.input.drain(..present as usize);
                    reply.body_bytes -= present;
                    if reply.body_bytes > 0 {
                        return Ok(());
                    }
                    let Reply { status, head_only, keep_alive, .. } = *reply;
                    self.respond(status, head_only, keep_alive);
                }
                State::Last => return Ok(()),
                State::Linger(left) => {
                    *left = left.checked_sub(self.input.len() as u64).ok_or(ErrorKind::FileTooLarge)?;
                    self.input.clear();
                    return Ok(());
                }
            }
        }
    }

    /// Returns the length of a complete head, or the status to refuse it with.
    fn read_head(&self) -> Option<Result<usize, u16>> {
        let window = &self.input[..self.input.len().min(HEAD_BYTES_MAX)];
        match window.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            Some(at) => Some(Ok(at + 4)),
            None => (window.len() == HEAD_BYTES_MAX).then_some(Err(431)),
        }
    }

    /// Appends a response to the output.
    fn respond(&mut self, status: u16, head_only: bool, keep_alive: bool) {
        self.state = if keep_alive { State::Head } else { State::Last };
        self.output.extend_from_slice(wire::encode(status, head_only, keep_alive).as_bytes());
    }

    /// Sends the output, as far as the kernel takes it. Returns true if nothing is left.
    fn flush(&mut self) -> io::Result<bool> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if let State::Last = self.state {
            // Unread input at a close would reset the connection and lose the response: end our side only.
            self.stream.shutdown(Shutdown::Write)?;
            self.state = State::Linger(LINGER_BYTES_MAX);
            self.process()?;
        }
        Ok(true)
    }
}

/// Finds the parts of a head, then decides the response or the status to refuse it with.
fn parse(head: &[u8]) -> Result<Reply, u16> {
    let text = str::from_utf8(head).map_err(|_| 400_u16)?;
    // An empty line before a request is skipped (RFC 9112, section 2.2).
    let text = text.strip_prefix("\r\n").unwrap_or(text);
    let mut lines = text.strip_suffix("\r\n\r\n").unwrap_or(text).split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let mut headers: Vec<(&str, &str)> = Vec::new();
    for line in lines {
        headers.push(line.split_once(':').ok_or(400_u16)?);
    }
    let [method, target, version] = words[..] else { return Err(400) };
    let mut rules = Rules::new(method, target, version)?;
    for (name, value) in headers {
        rules.header(name, value)?;
    }
    rules.reply()
}
