//! Many connections and requests at a fixed rate: each goes out when it is due, on the connection that has rested for longest, whether or
//! not earlier ones are answered, and its time counts from when it was due.

use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::io::{self, Error};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::STATUS_LINE;
use super::latency::{micros, percentile};
use super::source::Sources;
use crate::counts::Counts;

/// How the line of counts begins.
const MARK: &str = "lab-crowd";
/// An answer that takes longer is a timeout, as it is for `wrk`.
const TIMEOUT_US: u64 = 2_000_000;
/// Events of one wait: little enough that what is due goes out in between.
const EVENTS_MAX: usize = 64;
/// Requests sent before answers are looked for again.
const SENDS_MAX: usize = 64;
const RECEIVE_BYTES: usize = 64 * 1024;
/// Latencies kept: beyond, the client ends.
pub const REQUESTS_MAX: u64 = 50_000_000;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Crowd {
    /// Requests sent.
    pub requests: u64,
    /// Answers, whole and with status 200.
    pub answers: u64,
    /// Half of them came within, in microseconds.
    pub p50_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
    /// All of them.
    pub max_us: u64,
    /// Answers that took longer than two seconds, or never came.
    pub timeouts: u64,
    /// Sockets that failed, answers that were wrong.
    pub errors: u64,
    /// The longest time that this client was busy without a look at what is due: so much is its own.
    pub longest_turn_us: u64,
}

impl Display for Crowd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{MARK} requests={} answers={} p50_us={}", self.requests, self.answers, self.p50_us)?;
        write!(out, " p99_us={} max_us={} timeouts={}", self.p99_us, self.max_us, self.timeouts)?;
        write!(out, " errors={} longest_turn_us={}", self.errors, self.longest_turn_us)
    }
}

impl Crowd {
    /// Finds and reads the line in the client's output.
    pub fn parse(output: &str) -> Option<Self> {
        let counts = Counts::find(output, MARK)?;
        Some(Self {
            requests: counts.count("requests")?,
            answers: counts.count("answers")?,
            p50_us: counts.count("p50_us")?,
            p99_us: counts.count("p99_us")?,
            max_us: counts.count("max_us")?,
            timeouts: counts.count("timeouts")?,
            errors: counts.count("errors")?,
            longest_turn_us: counts.count("longest_turn_us")?,
        })
    }
}

/// What to ask, and for how long.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whom to ask.
    pub address: SocketAddr,
    /// The file.
    pub target: String,
    /// Length of its whole answer.
    pub answer_bytes: usize,
    /// Connections, all open before the first request.
    pub connections: u32,
    /// Requests that fall due in a second, over all connections.
    pub rate: u32,
    /// For how long they do.
    pub duration: Duration,
}

struct Connection {
    socket: OwnedFd,
    /// When the request under way was due.
    due: Option<Instant>,
    received: usize,
}

struct Client<'a> {
    bytes: Vec<u8>,
    answer_bytes: usize,
    interval: Duration,
    connections: &'a mut [Connection],
    /// Connections on which nothing is under way, the longest rested first.
    free: VecDeque<usize>,
    next_due: Instant,
    end: Instant,
    latencies_us: Vec<u64>,
    counts: Crowd,
}

/// Connects, asks, and counts.
///
/// # Errors
/// What the kernel refuses at the start. Later failures are counted.
pub fn run(request: &Request) -> io::Result<Crowd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut sources = Sources::new();
    let connect = |number: u32| {
        let socket = sources.connect(request.address)?;
        epoll::add(&epoll, &socket, EventData::new_u64(u64::from(number)), EventFlags::IN)?;
        Ok(Connection { socket, due: None, received: 0 })
    };
    let mut connections = (0..request.connections).map(connect).collect::<io::Result<Vec<_>>>()?;
    let begin = Instant::now();
    let requests = u64::from(request.rate) * request.duration.as_secs();
    let mut client = Client {
        bytes: format!("GET {} HTTP/1.1\r\nHost: lab\r\n\r\n", request.target).into_bytes(),
        answer_bytes: request.answer_bytes,
        interval: Duration::from_secs(1) / request.rate.max(1),
        free: (0..connections.len()).collect(),
        connections: &mut connections,
        next_due: begin,
        end: begin + request.duration,
        latencies_us: Vec::with_capacity(usize::try_from(requests.min(REQUESTS_MAX)).unwrap_or(0)),
        counts: Crowd::default(),
    };
    client.serve(&epoll)?;
    Ok(client.counted())
}

impl Client<'_> {
    /// Until nothing is due any more and all is answered, or what is left has taken too long.
    fn serve(&mut self, epoll: &OwnedFd) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut buffer = vec![0; RECEIVE_BYTES];
        let give_up = self.end + Duration::from_micros(TIMEOUT_US);
        let mut looked = Instant::now();
        loop {
            self.ask_what_is_due();
            let now = Instant::now();
            self.counts.longest_turn_us = self.counts.longest_turn_us.max(micros(now - looked));
            let is_done = now >= self.end && self.free.len() == self.connections.len();
            if is_done || now >= give_up || self.latencies_us.len() as u64 >= REQUESTS_MAX {
                return Ok(());
            }
            let wake = if now < self.end && !self.free.is_empty() { self.next_due } else { give_up };
            let timeout = wake.saturating_duration_since(now).min(Duration::from_millis(10));
            let timeout = Timespec::try_from(timeout).map_err(Error::other)?;
            events.clear();
            match epoll::wait(epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            looked = Instant::now();
            for event in &events {
                self.answered(event.data.u64() as usize, &mut buffer);
            }
        }
    }

    fn ask_what_is_due(&mut self) {
        let now = Instant::now();
        for _ in 0..SENDS_MAX {
            if self.next_due > now || self.next_due >= self.end {
                return;
            }
            let Some(free) = self.free.pop_front() else { return };
            let connection = &mut self.connections[free];
            connection.due = Some(self.next_due);
            self.next_due += self.interval;
            self.counts.requests += 1;
            let sent = rustix::net::send(&connection.socket, &self.bytes, SendFlags::NOSIGNAL);
            // Its connection takes no further one: it stays under way, and ends as a timeout beside.
            self.counts.errors += u64::from(sent != Ok(self.bytes.len()));
        }
    }

    fn answered(&mut self, number: usize, buffer: &mut [u8]) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        let length = match rustix::net::recv(&connection.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((length, _)) if length > 0 => length,
            Err(Errno::AGAIN) => return,
            // It is closed: no further look at it.
            Ok(_) | Err(_) => return self.lose(number),
        };
        let wrong = connection.received == 0 && !buffer[..length].starts_with(STATUS_LINE);
        connection.received += length;
        if wrong || connection.due.is_none() || connection.received > self.answer_bytes {
            return self.lose(number);
        }
        if connection.received == self.answer_bytes {
            connection.received = 0;
            self.note_latency(number);
            self.counts.answers += 1;
            self.free.push_back(number);
        }
    }

    /// The connection failed: it is shut, which the kernel tells once more at most, and asks no more.
    fn lose(&mut self, number: usize) {
        self.counts.errors += 1;
        self.free.retain(|free| *free != number);
        if let Ok(other) = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) {
            self.connections[number].socket = other;
        }
    }

    fn note_latency(&mut self, number: usize) {
        if let Some(due) = self.connections[number].due.take() {
            let latency_us = micros(due.elapsed());
            self.counts.timeouts += u64::from(latency_us > TIMEOUT_US);
            self.latencies_us.push(latency_us);
        }
    }

    fn counted(mut self) -> Crowd {
        // What never came is late, and has taken so long at least.
        for due in self.connections.iter_mut().filter_map(|connection| connection.due.take()) {
            self.counts.timeouts += 1;
            self.latencies_us.push(micros(due.elapsed()).max(TIMEOUT_US));
        }
        self.latencies_us.sort_unstable();
        let sorted = &self.latencies_us;
        Crowd {
            p50_us: percentile(sorted, 50),
            p99_us: percentile(sorted, 99),
            max_us: percentile(sorted, 100),
            ..self.counts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Crowd;

    #[test]
    fn what_is_printed_is_read() {
        let counts = Crowd {
            requests: 5,
            answers: 4,
            p50_us: 3,
            p99_us: 8,
            max_us: 9,
            timeouts: 1,
            errors: 2,
            longest_turn_us: 7,
        };
        assert_eq!(Crowd::parse(&format!("noise\n{counts}\n")), Some(counts));
        assert_eq!(Crowd::parse("lab-crowd requests=1"), None);
    }
}
