//! Many connections on one thread, each following its script.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::expected::ResponseCheck;
use crate::script::{Ending, Reading, Script};

/// Connections opened before others have their turn.
const OPENS_PER_TURN: u64 = 32;
/// Bytes that a connection sends or receives before others have their turn.
const BYTES_PER_TURN: usize = 256 * 1024;
const READ_BYTES: usize = 64 * 1024;
/// Connections from one loopback address, one after the other: the kernel finds ports quickly up to some ten thousand.
pub(crate) const PER_ADDRESS: u64 = 5_000;
const ADDRESSES: u64 = 250;
/// Least receive buffer of slow readers, bytes: the server must wait for them early.
const SLOW_RECEIVE_BUFFER: usize = 8 * 1024;

/// Bounds of a crowd.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crowd {
    /// Open connections at most.
    pub(crate) open_max: u64,
    /// Time between two connects.
    pub(crate) every: Duration,
    /// Connections are held until then at the latest.
    pub(crate) until: Instant,
    /// Loopback network of the clients. Every crowd has another one: ports stay taken for a minute.
    pub(crate) network: [u8; 3],
    /// Connections in a row from one address, at most [`PER_ADDRESS`].
    pub(crate) per_address: u64,
}

/// How a connection ended. `served`: got all it came for. `closed`, `truncated` (short of a response), `reset`: by the server. `left`: by
/// itself. `refused`: could not connect. `held`: still there. `wrong`: got another response.
type How = &'static str;

/// Returns the next connection, or `None` after the last.
type Next<'a> = &'a mut dyn FnMut(u64) -> Option<(SocketAddr, Arc<Script>)>;
type Record<'a> = &'a mut dyn FnMut(&CrowdMember, How);

impl Crowd {
    /// Opens connection after connection, and records how each ends.
    pub(crate) fn run(self, next: Next<'_>, record: Record<'_>) -> io::Result<()> {
        let state = CrowdState {
            poll: Poll::new()?,
            members: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            begun: Instant::now(),
            opened: 0,
            buffer: vec![0; READ_BYTES],
            crowd: self,
            record,
        };
        state.run(next)
    }
}

struct CrowdState<'a> {
    crowd: Crowd,
    poll: Poll,
    members: Vec<Option<CrowdMember>>,
    free: Vec<usize>,
    /// Times at which a connection has something to do. An entry may be outdated; then its turn does nothing.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    begun: Instant,
    opened: u64,
    buffer: Vec<u8>,
    record: Record<'a>,
}

impl CrowdState<'_> {
    fn run(mut self, next: Next<'_>) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut has_more = true;
        while Instant::now() < self.crowd.until {
            for _ in 0..OPENS_PER_TURN {
                if has_more && self.live() < self.crowd.open_max && self.opening_time() <= Instant::now() {
                    match next(self.opened) {
                        Some((address, script)) => self.open(address, script)?,
                        None => has_more = false,
                    }
                }
            }
            if !has_more && self.live() == 0 {
                break;
            }
            let opening = (has_more && self.live() < self.crowd.open_max).then(|| self.opening_time());
            let due = self.due.peek().map(|Reverse((at, _))| *at);
            let wake = opening.into_iter().chain(due).fold(self.crowd.until, Instant::min);
            match self.poll.poll(&mut events, Some(wake.saturating_duration_since(Instant::now()))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                self.turn(event.token().0, Some(event));
            }
            let now = Instant::now();
            for _ in 0..self.due.len() {
                match self.due.peek() {
                    Some(&Reverse((at, index))) if at <= now => {
                        self.due.pop();
                        self.turn(index, None);
                    }
                    _ => break,
                }
            }
        }
        self.members.iter().flatten().for_each(|member| (self.record)(member, "held"));
        Ok(())
    }

    fn live(&self) -> u64 {
        (self.members.len() - self.free.len()) as u64
    }

    /// Time at which the next connection is opened.
    fn opening_time(&self) -> Instant {
        self.begun + self.crowd.every.mul_f64(self.opened as f64)
    }

    fn open(&mut self, address: SocketAddr, script: Arc<Script>) -> io::Result<()> {
        let index = self.free.pop().unwrap_or(self.members.len());
        let mut stream = self.connect(address, &script)?;
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, Token(index), both)?;
        self.opened += 1;
        if index == self.members.len() {
            self.members.push(None);
        }
        self.members[index] = Some(CrowdMember::new(stream, script));
        Ok(())
    }

    /// Begins to connect; the socket becomes writable when the connection is established.
    fn connect(&self, address: SocketAddr, script: &Script) -> io::Result<TcpStream> {
        let [first, second, third] = self.crowd.network;
        let source =
            Ipv4Addr::new(first, second, third, 1 + (self.opened / self.crowd.per_address % ADDRESSES) as u8);
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if let Reading::Slowly { bytes, .. } = script.reading {
            socket.set_recv_buffer_size(bytes.max(SLOW_RECEIVE_BUFFER))?;
        }
        socket.bind(&SocketAddr::new(IpAddr::V4(source), 0).into())?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
            _ => Ok(TcpStream::from_std(socket.into())),
        }
    }

    fn turn(&mut self, index: usize, event: Option<&Event>) {
        let Some(Some(member)) = self.members.get_mut(index) else { return };
        match member.turn(Instant::now(), event, &mut self.buffer) {
            Ok(None) => {}
            Ok(Some(at)) => self.due.push(Reverse((at, index))),
            Err(how) => {
                (self.record)(member, how);
                self.members[index] = None;
                self.free.push(index);
            }
        }
    }
}

/// A connection.
pub(crate) struct CrowdMember {
    pub(crate) script: Arc<Script>,
    pub(crate) opened: Instant,
    /// Bytes received.
    pub(crate) received: u64,
    pub(crate) responses: ResponseCheck,
    stream: TcpStream,
    connected: bool,
    writable: bool,
    half_closed: bool,
    server_closed: bool,
    /// The round that is being sent, and how much of it is sent.
    round: usize,
    sent: u64,
    send_at: Instant,
    read_at: Instant,
}

impl CrowdMember {
    fn new(stream: TcpStream, script: Arc<Script>) -> Self {
        let opened = Instant::now();
        let awaited = script.rounds.first().map_or(VecDeque::new(), |round| round.responses.clone().into());
        Self {
            opened,
            received: 0,
            responses: ResponseCheck::new(script.expected() > 0, awaited, script.last.clone()),
            stream,
            connected: false,
            writable: false,
            half_closed: false,
            server_closed: false,
            round: 0,
            sent: 0,
            send_at: opened,
            read_at: opened,
            script,
        }
    }

    /// Does what is due. Returns when there is more to do without an event, or how the connection ended.
    fn turn(
        &mut self,
        now: Instant,
        event: Option<&Event>,
        buffer: &mut [u8],
    ) -> Result<Option<Instant>, How> {
        let script = &*Arc::clone(&self.script);
        let writable = event.is_some_and(Event::is_writable);
        let failed = event.is_some_and(|event| event.is_error() || event.is_write_closed());
        if failed && !matches!(self.stream.take_error(), Ok(None)) {
            self.read_rest(script, buffer);
            return Err(if self.connected { "reset" } else { "refused" });
        }
        self.writable |= writable;
        self.connected |= writable;
        let leaves_at = script.leaves_after.map(|time| self.opened + time);
        if !self.connected {
            return Ok(leaves_at.map(|at| at.max(now)));
        }
        if leaves_at.is_some_and(|at| at <= now) {
            return Err(self.leave());
        }
        let mut send_at = self.send(script, now).inspect_err(|_| self.read_rest(script, buffer))?;
        let read_at = self.read(script, now, event.is_some_and(Event::is_read_closed), buffer)?;
        if self.round < script.rounds.len() && self.responses.awaited.is_empty() {
            // The next round may be due.
            send_at = self.send(script, now).inspect_err(|_| self.read_rest(script, buffer))?;
        }
        if self.round >= script.rounds.len() && self.responses.has(script.responses) {
            match script.ending {
                Ending::ServerCloses => {}
                Ending::Closes => return Err("served"),
                Ending::Resets => return Err(self.leave()),
            }
        }
        if script.leaves_after_bytes.is_some_and(|most| self.received >= most) {
            return Err(self.leave());
        }
        Ok(send_at.into_iter().chain(read_at).chain(leaves_at).min())
    }

    /// Resets the connection when it is dropped.
    fn leave(&self) -> How {
        // Where the socket doesn't take the option, the connection ends in order instead.
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        "left"
    }

    fn send(&mut self, script: &Script, now: Instant) -> Result<Option<Instant>, How> {
        if let Reading::After(time) = script.reading
            && self.opened + time <= now
        {
            return Ok(None);
        }
        let mut budget = BYTES_PER_TURN;
        while self.writable {
            let Some(round) = script.rounds.get(self.round) else {
                if script.half_close && !self.half_closed {
                    self.half_closed = true;
                    // A failed connection shows on the next read.
                    let _ = self.stream.shutdown(Shutdown::Write);
                }
                return Ok(None);
            };
            let Some(bytes) = round.bytes_at(self.sent) else {
                if let Some(next) = script.rounds.get(self.round + 1) {
                    if !self.responses.awaited.is_empty() {
                        return Ok(None);
                    }
                    self.responses.awaited.extend(next.responses.iter().cloned());
                }
                (self.round, self.sent) = (self.round + 1, 0);
                continue;
            };
            if self.send_at > now || budget == 0 {
                return Ok(Some(self.send_at.max(now)));
            }
            match self.stream.write(&bytes[..bytes.len().min(budget)]) {
                Ok(length) => {
                    self.sent += length as u64;
                    budget -= length;
                    self.send_at = round.pause_at(self.sent).map_or(self.send_at, |pause| now + pause);
                }
                Err(error) if would_block(&error) => self.writable = false,
                Err(_) => return Err("reset"),
            }
        }
        Ok(None)
    }

    fn read(
        &mut self,
        script: &Script,
        now: Instant,
        closed: bool,
        buffer: &mut [u8],
    ) -> Result<Option<Instant>, How> {
        if self.server_closed {
            return Ok(None);
        }
        match script.reading {
            Reading::After(time) if self.opened + time > now => Ok(Some(self.opened + time)),
            _ if closed => self.receive(script, usize::MAX, buffer).map(|_| None),
            Reading::AtOnce | Reading::Ignoring | Reading::After(_) => {
                Ok(self.receive(script, BYTES_PER_TURN, buffer)?.then_some(now))
            }
            Reading::Never => Ok(None),
            Reading::Slowly { .. } if self.read_at > now => Ok(Some(self.read_at)),
            Reading::Slowly { bytes, every } => {
                self.read_at = now + every;
                self.receive(script, bytes, buffer).map(|_| Some(self.read_at))
            }
        }
    }

    /// Receives up to `most` bytes. Returns true if there may be more.
    fn receive(&mut self, script: &Script, most: usize, buffer: &mut [u8]) -> Result<bool, How> {
        let mut left = most;
        while left > 0 && script.leaves_after_bytes.is_none_or(|most| self.received < most) {
            let room = buffer.len().min(left);
            match self.stream.read(&mut buffer[..room]) {
                Ok(0) => {
                    self.server_closed = true;
                    return if script.sends_on { Ok(false) } else { Err(self.responses.finish()) };
                }
                Ok(length) => {
                    left -= length;
                    self.received += length as u64;
                    if !matches!(script.reading, Reading::Ignoring) {
                        self.responses.take(&buffer[..length])?;
                    }
                }
                Err(error) if would_block(&error) => return Ok(false),
                Err(_) => return Err("reset"),
            }
        }
        Ok(left == 0)
    }

    /// Receives what arrived before the end: it may have the response.
    fn read_rest(&mut self, script: &Script, buffer: &mut [u8]) {
        if !self.server_closed {
            // Only the status counts.
            let _ = self.receive(script, BYTES_PER_TURN, buffer);
        }
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}
