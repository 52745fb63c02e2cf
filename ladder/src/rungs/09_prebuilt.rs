//! Rung 9, prebuilt: a request allocates nothing, and its response is copied from one that is ready.

use std::array;
use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::rules::{Reply, Rules};
use crate::sys::{self, Epoll, READABLE, WRITABLE};
use crate::wire::{
    self, ACCEPT_PAUSE, HEAD_BYTES_MAX, IDLE_TIMEOUT, LINGER_BYTES_MAX, RECEIVE_BYTES, SWEEP_INTERVAL,
};

/// Serves whichever client is ready, on all cores.
pub(crate) fn serve(address: SocketAddr) -> io::Result<Infallible> {
    let cores = thread::available_parallelism()?.get();
    // The kernel spreads new connections over listeners that share a port.
    let listeners = (0..cores).map(|_| sys::listen_shared(address)).collect::<io::Result<Vec<_>>>()?;
    let run = |(core, listener)| thread::spawn(move || run(core, listener));
    let threads: Vec<_> = listeners.into_iter().enumerate().map(run).collect();
    threads.into_iter().find_map(|thread| thread.join().ok()).unwrap_or_else(|| Err(ErrorKind::Other.into()))
}

fn run(core: usize, listener: TcpListener) -> io::Result<Infallible> {
    sys::pin_to_core(core)?;
    listener.set_nonblocking(true)?;
    let epoll = Epoll::new()?;
    epoll.add(&listener, READABLE)?;
    let (chunk, responses) = (vec![0; RECEIVE_BYTES], Responses::default());
    EventLoop { epoll, listener, connections: Vec::new(), chunk, responses }.run()
}

struct EventLoop {
    epoll: Epoll,
    listener: TcpListener,
    /// By descriptor number.
    connections: Vec<Option<Connection>>,
    chunk: Vec<u8>,
    responses: Responses,
}

impl EventLoop {
    fn run(&mut self) -> io::Result<Infallible> {
        let (mut events, mut swept) = (sys::events(), Instant::now());
        loop {
            let count = self.epoll.wait(&mut events, SWEEP_INTERVAL)?;
            let now = Instant::now();
            self.responses.update();
            for event in &events[..count] {
                let number = event.u64 as usize;
                if number == self.listener.as_raw_fd() as usize {
                    self.accept(now);
                } else if let Some(connection) = &mut self.connections[number] {
                    let progress = connection.progress(&mut self.chunk, &self.responses, now);
                    let watch = |flags| connection.watch(&self.epoll, flags);
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
            if prepared.and_then(|()| self.epoll.add(&stream, READABLE)).is_err() {
                continue;
            }
            let number = stream.as_raw_fd() as usize;
            if self.connections.len() <= number {
                self.connections.resize_with(number + 1, || None);
            }
            self.connections[number] = Some(Connection {
                stream,
                watched: READABLE,
                input: Vec::new(),
                used: 0,
                scanned: 0,
                output: Vec::new(),
                state: State::Head,
                active: now,
            });
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// The events that the kernel reports.
    watched: u32,
    /// Received bytes, of which the first `used` are done with.
    input: Vec<u8>,
    used: usize,
    /// No head ends before this byte of the input.
    scanned: usize,
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
    fn progress(&mut self, chunk: &mut [u8], responses: &Responses, now: Instant) -> io::Result<u32> {
        self.active = now;
        // A client that doesn't read its responses isn't read from either.
        if !self.flush(responses)? {
            return Ok(WRITABLE);
        }
        match self.stream.read(chunk) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.input.extend_from_slice(&chunk[..length]);
                self.process(responses)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(if self.flush(responses)? { READABLE } else { WRITABLE })
    }

    /// Changes the events to wait for, if they are others.
    fn watch(&mut self, epoll: &Epoll, flags: u32) -> io::Result<()> {
        if flags == self.watched {
            return Ok(());
        }
        self.watched = flags;
        epoll.modify(&self.stream, flags)
    }

    /// Uses up the input; all responses go into the output.
    fn process(&mut self, responses: &Responses) -> io::Result<()> {
        self.take_requests(responses)?;
        self.input.drain(..self.used);
        self.scanned -= self.used;
        self.used = 0;
        Ok(())
    }

    fn take_requests(&mut self, responses: &Responses) -> io::Result<()> {
        loop {
            match &mut self.state {
                State::Head => {
                    let Some(length) = self.read_head() else { return Ok(()) };
                    let head = length.map(|length| &self.input[self.used..self.used + length]);
                    match head.and_then(parse) {
                        Ok(reply) => {
                            self.consume(length.unwrap_or_default());
                            if reply.expects_continue {
                                self.output.extend_from_slice(wire::CONTINUE);
                            }
                            self.state = State::Body(reply);
                        }
                        Err(status) => self.respond(responses, status, false, false),
                    }
                }
                State::Body(reply) => {
                    let present = reply.body_bytes.min((self.input.len() - self.used) as u64);
                    reply.body_bytes -= present;
                    let Reply { status, head_only, keep_alive, body_bytes, .. } = *reply;
                    self.consume(present as usize);
                    if body_bytes > 0 {
                        return Ok(());
                    }
                    self.respond(responses, status, head_only, keep_alive);
                }
                State::Last => return Ok(()),
                State::Linger(left) => {
                    let present = self.input.len() - self.used;
                    *left = left.checked_sub(present as u64).ok_or(ErrorKind::FileTooLarge)?;
                    self.consume(present);
                    return Ok(());
                }
            }
        }
    }

    /// Counts bytes of the input as used.
    fn consume(&mut self, length: usize) {
        self.used += length;
        self.scanned = self.used;
    }

    /// Returns the length of a complete head, or the status to refuse it with.
    fn read_head(&mut self) -> Option<Result<usize, u16>> {
        let end = self.input.len().min(self.used + HEAD_BYTES_MAX);
        let window = &self.input[self.scanned..end];
        if let Some(at) = window.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            return Some(Ok(self.scanned + at + 4 - self.used));
        }
        // The next bytes may complete an end that has begun.
        self.scanned = end.saturating_sub(3).max(self.used);
        (end - self.used == HEAD_BYTES_MAX).then_some(Err(431))
    }

    /// Appends a response to the output.
    fn respond(&mut self, responses: &Responses, status: u16, head_only: bool, keep_alive: bool) {
        self.state = if keep_alive { State::Head } else { State::Last };
        match status {
            200 | 404 => self.output.extend_from_slice(responses.get(status, head_only, keep_alive)),
            _ => self.output.extend(wire::encode(status, head_only, keep_alive).bytes()),
        }
    }

    /// Sends the output, as far as the kernel takes it. Returns true if nothing is left.
    fn flush(&mut self, responses: &Responses) -> io::Result<bool> {
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
            self.process(responses)?;
        }
        Ok(true)
    }
}

/// Responses to valid requests, encoded once a second.
#[derive(Default)]
struct Responses {
    unix_seconds: u64,
    encoded: [String; 8],
}

impl Responses {
    /// Encodes the responses again if the date has changed.
    fn update(&mut self) {
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if unix_seconds != self.unix_seconds {
            self.unix_seconds = unix_seconds;
            let encode = |bits: usize| wire::encode([200, 404][bits >> 2], bits & 2 != 0, bits & 1 != 0);
            self.encoded = array::from_fn(encode);
        }
    }

    fn get(&self, status: u16, head_only: bool, keep_alive: bool) -> &[u8] {
        let index = usize::from(status == 404) << 2 | usize::from(head_only) << 1 | usize::from(keep_alive);
        self.encoded[index].as_bytes()
    }
}

/// Reads a head once, without a list of its parts, and decides the response.
fn parse(head: &[u8]) -> Result<Reply, u16> {
    let text = str::from_utf8(head).map_err(|_| 400_u16)?;
    // An empty line before a request is skipped (RFC 9112, section 2.2).
    let text = text.strip_prefix("\r\n").unwrap_or(text);
    let mut lines = text.strip_suffix("\r\n\r\n").unwrap_or(text).split("\r\n");
    let mut words = lines.next().unwrap_or_default().splitn(3, ' ');
    let [Some(method), Some(target), Some(version)] = [(); 3].map(|()| words.next()) else { return Err(400) };
    let mut rules = Rules::new(method, target, version)?;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(400_u16)?;
        rules.header(name, value)?;
    }
    rules.reply()
}
