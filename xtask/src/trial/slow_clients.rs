//! Clients that send one byte of a request head a second, and what became of each of them.
//!
//! One thread, non-blocking sockets. Every client has a step each quarter of a second, all with the same period, so the next
//! step is always at the front of one queue. The first of four steps sends a byte; clients with an odd number read only right
//! after that byte, so that many of them send into a connection that has been answered already.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::harness::answer::{BodyLength, Head};

const STEP: Duration = Duration::from_millis(250);
const STEPS_PER_BYTE: u64 = 4;
/// The thread wakes at most this often.
const TICK: Duration = Duration::from_millis(1);
/// More than any answer of a few hundred bytes.
const ANSWER_MAX: usize = 16 * 1024;
/// What is sent, byte after byte; after it, the last field goes on for ever.
const OPENING: &[u8] = b"GET / HTTP/1.1\r\nHost: trial.test\r\nX-Slow: ";

/// What became of one slow client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// Still connected when the trial stopped waiting.
    Held,
    /// A whole answer with this status, then the end of the connection, this long after the connect.
    Answered { status: u16, after: Duration },
    /// Anything else.
    Wrong(String),
}

/// All slow clients of a trial.
#[derive(Debug)]
pub(super) struct SlowClients {
    address: SocketAddr,
    queue: VecDeque<(Instant, Slow)>,
    fates: Vec<Fate>,
    opened: u64,
}

#[derive(Debug)]
struct Slow {
    stream: TcpStream,
    number: u64,
    opened: Instant,
    steps: u64,
    sent: usize,
    received: Vec<u8>,
}

impl SlowClients {
    /// None yet.
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, queue: VecDeque::new(), fates: Vec::new(), opened: 0 }
    }

    /// Opens `count` clients evenly over `spread`, stepping those that are there meanwhile.
    pub(super) fn open(&mut self, count: u64, spread: Duration) {
        let begin = Instant::now();
        for number in 0..count {
            let at = begin + spread.mul_f64(number as f64 / count.max(1) as f64);
            self.step_until(at);
            self.open_one();
        }
        self.step_until(begin + spread);
    }

    fn open_one(&mut self) {
        let number = self.opened;
        self.opened += 1;
        let opened = Instant::now();
        let connected =
            TcpStream::connect(self.address).and_then(|stream| stream.set_nonblocking(true).map(|()| stream));
        match connected {
            Ok(stream) => {
                let slow = Slow { stream, number, opened, steps: 0, sent: 0, received: Vec::new() };
                self.queue.push_back((opened + STEP, slow));
            }
            Err(error) => self.fates.push(Fate::Wrong(format!("connect: {error}"))),
        }
    }

    /// Lets every client take its steps until `end`, or until none is left.
    pub(super) fn step_until(&mut self, end: Instant) {
        while let Some(now) = self.sleep_until_due(end) {
            while self.queue.front().is_some_and(|(due, _)| *due <= now) {
                self.step_first();
            }
        }
    }

    /// Sleeps until the first step is due; `None` when that is not before `end`.
    fn sleep_until_due(&self, end: Instant) -> Option<Instant> {
        let due = self.queue.front().map_or(end, |(due, _)| *due);
        let now = Instant::now();
        if now >= end {
            return None;
        }
        if due > now {
            std::thread::sleep(TICK.max(due - now).min(end - now));
        }
        Some(Instant::now())
    }

    fn step_first(&mut self) {
        let Some((due, mut slow)) = self.queue.pop_front() else { return };
        match slow.step() {
            Some(fate) => self.fates.push(fate),
            None => self.queue.push_back((due + STEP, slow)),
        }
    }

    /// How many are still connected.
    pub(super) fn held(&self) -> usize {
        self.queue.len()
    }

    /// Ends the trial: what became of each.
    pub(super) fn finish(mut self) -> Vec<Fate> {
        let held = self.queue.len();
        self.fates.extend(std::iter::repeat_n(Fate::Held, held));
        self.fates
    }
}

impl Slow {
    /// One step: perhaps a byte, perhaps a read. `Some` when this client's story is over.
    fn step(&mut self) -> Option<Fate> {
        let sends = self.steps.is_multiple_of(STEPS_PER_BYTE);
        self.steps += 1;
        if sends && let Some(fate) = self.send_byte() {
            return Some(fate);
        }
        if sends || self.number.is_multiple_of(2) { self.read() } else { None }
    }

    fn send_byte(&mut self) -> Option<Fate> {
        let byte = OPENING.get(self.sent).copied().unwrap_or(b'a');
        match self.stream.write(&[byte]) {
            Ok(_) => {
                self.sent += 1;
                None
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => Some(self.wrong(&format!("sending: {error}"))),
        }
    }

    fn read(&mut self) -> Option<Fate> {
        let mut piece = [0; 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Some(self.judge()),
                Ok(length) => self.received.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) => return Some(self.wrong(&format!("reading: {error}"))),
            }
            if self.received.len() > ANSWER_MAX {
                return Some(self.wrong("an endless answer"));
            }
        }
    }

    fn wrong(&self, why: &str) -> Fate {
        let (received, seconds) = (self.received.len(), self.opened.elapsed().as_secs());
        Fate::Wrong(format!("{why} ({received} bytes received, {seconds} s after the connect)"))
    }

    /// The connection has ended: was there exactly one whole answer on it?
    fn judge(&self) -> Fate {
        let end = self.received.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end else {
            return self.wrong("ended without a whole head");
        };
        let (head, body) = self.received.split_at(end + 4);
        match Head::parse(head) {
            Ok(head) if head.body_length(false) == BodyLength::Exactly(body.len() as u64) => {
                Fate::Answered { status: head.status, after: self.opened.elapsed() }
            }
            Ok(head) => self.wrong(&format!("{} body bytes after {:?}", body.len(), head.text)),
            Err(fault) => self.wrong(&fault.to_string()),
        }
    }
}
