//! A wave of hostile connections on one thread, each following its script.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use testkit::ResponseReader;

use super::normal::set_scheduling;
use super::script::{Reading, Script};

/// The connections of a wave are opened evenly over this time.
const SPREAD: Duration = Duration::from_millis(2_500);
/// Connections opened before others have their turn.
const OPENS_PER_TURN: u64 = 32;
/// Bytes that a connection sends or receives before others have their turn.
const BYTES_PER_TURN: usize = 256 * 1024;
const READ_BYTES: usize = 64 * 1024;
/// Connections from one loopback address: the kernel finds ports quickly up to some ten thousand.
const PER_ADDRESS: u64 = 5_000;
/// Receive buffer of slow readers, bytes: the server must wait for them early.
const SLOW_RECEIVE_BUFFER: usize = 8 * 1024;

/// Ends of connections: the first response's status and how it ended, with a count and the latest time after the connect.
///
/// `served`: got all it came for. `closed`, `reset`: by the server. `left`: by itself. `refused`: could not connect. `held`: still there.
#[derive(Debug, Default)]
pub(super) struct Ends(pub(super) BTreeMap<String, (u64, Duration)>);

/// The connections of a wave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wave {
    pub(super) address: SocketAddr,
    pub(super) count: u64,
    /// The wave ends then at the latest.
    pub(super) until: Instant,
    /// Loopback network of the clients. Every wave has another one: ports stay taken for a minute.
    pub(super) network: [u8; 3],
}

type ScriptOf<'a> = &'a mut (dyn FnMut(u64) -> Arc<Script> + Send);

/// Sends a wave. Returns how its connections ended.
pub(super) fn send(wave: Wave, script_of: ScriptOf<'_>) -> io::Result<Ends> {
    let run = || {
        // The normal clients' latency must be the server's doing, not that of attackers on the same core.
        set_scheduling("--idle", "0");
        let mut crowd = Crowd {
            poll: Poll::new()?,
            wave,
            visitors: Vec::new(),
            due: BinaryHeap::new(),
            begun: Instant::now(),
            live: 0,
            ends: Ends::default(),
            buffer: vec![0; READ_BYTES],
        };
        crowd.run(script_of)?;
        let held: Vec<Visitor> = std::mem::take(&mut crowd.visitors).into_iter().flatten().collect();
        held.iter().for_each(|visitor| crowd.ends.add(visitor, "held"));
        Ok(crowd.ends)
    };
    // On a thread of its own, because the priority stays low.
    thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

impl Ends {
    fn add(&mut self, visitor: &Visitor, how: &str) {
        let status = visitor.status.map_or(String::new(), |status| format!("{status} "));
        let (count, last) = self.0.entry(format!("{status}{how}")).or_default();
        *count += 1;
        *last = visitor.opened.elapsed().max(*last);
    }
}

struct Crowd {
    poll: Poll,
    wave: Wave,
    visitors: Vec<Option<Visitor>>,
    /// Times at which a connection has something to do. An entry may be outdated; then its turn does nothing.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    begun: Instant,
    live: u64,
    ends: Ends,
    buffer: Vec<u8>,
}

impl Crowd {
    fn run(&mut self, script_of: ScriptOf<'_>) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        while Instant::now() < self.wave.until && (self.opened() < self.wave.count || self.live > 0) {
            for _ in 0..OPENS_PER_TURN {
                if self.opened() < self.wave.count && self.opening_time() <= Instant::now() {
                    let script = script_of(self.opened());
                    self.open(script);
                }
            }
            let opening = (self.opened() < self.wave.count).then(|| self.opening_time());
            let due = self.due.peek().map(|Reverse((at, _))| *at);
            let next = opening.into_iter().chain(due).fold(self.wave.until, Instant::min);
            match self.poll.poll(&mut events, Some(next.saturating_duration_since(Instant::now()))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                self.turn(event.token().0, Some(event));
            }
            let now = Instant::now();
            for _ in 0..self.due.len() {
                match self.due.peek() {
                    Some(Reverse((at, index))) if *at <= now => {
                        let index = *index;
                        self.due.pop();
                        self.turn(index, None);
                    }
                    _ => break,
                }
            }
        }
        Ok(())
    }

    fn opened(&self) -> u64 {
        self.visitors.len() as u64
    }

    /// Time at which the next connection is opened.
    fn opening_time(&self) -> Instant {
        self.begun + SPREAD.mul_f64(self.opened() as f64 / self.wave.count.max(1) as f64)
    }

    fn open(&mut self, script: Arc<Script>) {
        let index = self.visitors.len();
        let opened = Instant::now();
        let registered = self.connect(&script).and_then(|mut stream| {
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream, Token(index), both).map(|()| stream)
        });
        let visitor = registered.ok().map(|stream| Visitor::new(stream, script, opened));
        self.live += u64::from(visitor.is_some());
        if visitor.is_none() {
            self.ends.0.entry("refused".to_owned()).or_default().0 += 1;
        }
        self.visitors.push(visitor);
    }

    /// Begins to connect; the socket becomes writable when the connection is established.
    fn connect(&self, script: &Script) -> io::Result<TcpStream> {
        let [first, second, third] = self.wave.network;
        let source = Ipv4Addr::new(first, second, third, 1 + (self.opened() / PER_ADDRESS) as u8);
        let socket = Socket::new(Domain::for_address(self.wave.address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if matches!(script.reading, Reading::Slowly { .. }) {
            socket.set_recv_buffer_size(SLOW_RECEIVE_BUFFER)?;
        }
        socket.bind(&SocketAddr::new(IpAddr::V4(source), 0).into())?;
        match socket.connect(&self.wave.address.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
            _ => Ok(TcpStream::from_std(socket.into())),
        }
    }

    fn turn(&mut self, index: usize, event: Option<&Event>) {
        let Some(Some(visitor)) = self.visitors.get_mut(index) else { return };
        match visitor.turn(Instant::now(), event, &mut self.buffer) {
            Ok(None) => {}
            Ok(Some(at)) => self.due.push(Reverse((at, index))),
            Err(how) => {
                self.ends.add(visitor, how);
                self.visitors[index] = None;
                self.live -= 1;
            }
        }
    }
}

/// How a connection ended, see [`Ends`].
type How = &'static str;

/// A hostile connection.
struct Visitor {
    stream: TcpStream,
    script: Arc<Script>,
    opened: Instant,
    connected: bool,
    writable: bool,
    half_closed: bool,
    server_closed: bool,
    sent: u64,
    send_at: Instant,
    read_at: Instant,
    received: u64,
    reader: ResponseReader,
    /// Status of the first response.
    status: Option<u16>,
    responses: u64,
}

impl Visitor {
    fn new(stream: TcpStream, script: Arc<Script>, opened: Instant) -> Self {
        Self {
            stream,
            script,
            opened,
            connected: false,
            writable: false,
            half_closed: false,
            server_closed: false,
            sent: 0,
            send_at: opened,
            read_at: opened,
            received: 0,
            reader: ResponseReader::default(),
            status: None,
            responses: 0,
        }
    }

    /// Does what is due. Returns when there is more to do without an event, or how the connection ended.
    fn turn(
        &mut self,
        now: Instant,
        event: Option<&Event>,
        buffer: &mut [u8],
    ) -> Result<Option<Instant>, How> {
        let leaves_at = self.script.leaves_after.map(|time| self.opened + time);
        let writable = event.is_some_and(Event::is_writable);
        let failed = event.is_some_and(|event| event.is_error() || event.is_write_closed());
        if failed && !matches!(self.stream.take_error(), Ok(None)) {
            self.read_rest(buffer);
            return Err(if self.connected { "reset" } else { "refused" });
        }
        self.writable |= writable;
        self.connected |= writable;
        if self.connected {
            if leaves_at.is_some_and(|at| at <= now) {
                return Err(self.leave());
            }
            let send_at = self.send(now).inspect_err(|_| self.read_rest(buffer))?;
            let read_at = self.read(now, event.is_some_and(Event::is_read_closed), buffer)?;
            if self.script.responses > 0
                && self.responses >= self.script.responses
                && self.status.is_some_and(|status| status < 400)
            {
                return Err("served");
            }
            if self.script.leaves_after_bytes.is_some_and(|most| self.received >= most) {
                return Err(self.leave());
            }
            return Ok(send_at.into_iter().chain(read_at).chain(leaves_at).min());
        }
        Ok(leaves_at.map(|at| at.max(now)))
    }

    /// Resets the connection when it is dropped.
    fn leave(&self) -> How {
        // Where the socket doesn't take the option, the connection ends in order instead.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        "left"
    }

    fn send(&mut self, now: Instant) -> Result<Option<Instant>, How> {
        let mut budget = BYTES_PER_TURN;
        while self.writable {
            let Some(bytes) = self.script.bytes_at(self.sent) else {
                if self.script.half_close && !self.half_closed {
                    self.half_closed = true;
                    // A failed connection shows on the next read.
                    let _ = self.stream.shutdown(Shutdown::Write);
                }
                return Ok(None);
            };
            if self.send_at > now || budget == 0 {
                return Ok(Some(self.send_at.max(now)));
            }
            match self.stream.write(&bytes[..bytes.len().min(budget)]) {
                Ok(length) => {
                    self.sent += length as u64;
                    budget -= length;
                    self.send_at = self.script.pause_at(self.sent).map_or(self.send_at, |pause| now + pause);
                }
                Err(error) if would_block(&error) => self.writable = false,
                Err(_) => return Err("reset"),
            }
        }
        Ok(None)
    }

    fn read(&mut self, now: Instant, closed: bool, buffer: &mut [u8]) -> Result<Option<Instant>, How> {
        if self.server_closed {
            return Ok(None);
        }
        match self.script.reading {
            _ if closed => self.receive(usize::MAX, buffer).map(|_| None),
            Reading::AtOnce => Ok(self.receive(BYTES_PER_TURN, buffer)?.then_some(now)),
            Reading::Never => Ok(None),
            Reading::Slowly { .. } if self.read_at > now => Ok(Some(self.read_at)),
            Reading::Slowly { bytes, every } => {
                self.read_at = now + every;
                self.receive(bytes, buffer).map(|_| Some(self.read_at))
            }
        }
    }

    /// Receives up to `most` bytes. Returns true if there may be more.
    fn receive(&mut self, most: usize, buffer: &mut [u8]) -> Result<bool, How> {
        let mut left = most;
        while left > 0 && self.script.leaves_after_bytes.is_none_or(|most| self.received < most) {
            let room = buffer.len().min(left);
            match self.stream.read(&mut buffer[..room]) {
                Ok(0) => {
                    self.server_closed = true;
                    return if self.script.sends_on { Ok(false) } else { Err("closed") };
                }
                Ok(length) => {
                    left -= length;
                    self.received += length as u64;
                    self.parse(&buffer[..length]);
                }
                Err(error) if would_block(&error) => return Ok(false),
                Err(_) => return Err("reset"),
            }
        }
        Ok(left == 0)
    }

    /// Counts responses. One that breaks the rules has no status, and no attack expects an end without one.
    fn parse(&mut self, mut bytes: &[u8]) {
        while let Ok(step) = self.reader.step(bytes) {
            bytes = &bytes[step.consumed..];
            match step.event {
                testkit::Event::NeedsInput => return,
                testkit::Event::Head(head) => self.status = self.status.or(Some(head.status)),
                testkit::Event::Data(_) => {}
                testkit::Event::End => self.responses += 1,
            }
        }
    }

    /// Receives what arrived before the end: it may have the response.
    fn read_rest(&mut self, buffer: &mut [u8]) {
        if !self.server_closed {
            // Only the status counts.
            let _ = self.receive(BYTES_PER_TURN, buffer);
        }
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}
