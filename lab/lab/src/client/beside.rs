//! Small requests at a fixed rate beside large downloads, all in one thread: the time from when a request was due until its
//! answer is whole. Requests go out when they are due, whether or not earlier ones are answered, and small answers are looked for behind
//! every receive of a download: what this thread itself adds is one such receive.

use std::fmt::{self, Display};
use std::io::{self, Error};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::STATUS_LINE;
use super::latency::{micros, percentile};
use super::source::Sources;
use crate::counts::Counts;
use crate::downloads::{CLIENTS, DOWNLOAD_BYTES_MAX, target};

/// How the line of counts begins.
const MARK: &str = "lab-beside";
/// A small request is due each so often.
const INTERVAL: Duration = Duration::from_millis(2);
/// Connections that small requests are sent on in turn, so that one late answer does not delay the next request.
const SMALL_CONNECTIONS: u32 = 64;
/// Downloads run so long before the first small request.
const LEAD: Duration = Duration::from_millis(100);
/// Bytes of one receive: what the small answer may have to wait for in this thread.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Latencies kept: more than fall due in the longest run.
const LATENCIES_MAX: usize = 100_000;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    /// Small answers, whole and right.
    pub answers: u64,
    /// Half of them came within, in microseconds.
    pub p50_us: u64,
    /// 99 of 100 came within.
    pub p99_us: u64,
    /// All of them came within.
    pub max_us: u64,
    /// The longest time that this client itself was busy without a look at its sockets: so much is its own.
    pub longest_turn_us: u64,
    /// Bytes of all downloads.
    pub downloaded_bytes: u64,
    /// Bytes of the one that got least.
    pub least_downloaded_bytes: u64,
    /// Sockets that failed, wrong answers, downloads that got too far.
    pub errors: u64,
}

impl Beside {
    /// Finds and reads the line in the client's output.
    pub fn parse(output: &str) -> Option<Self> {
        let counts = Counts::find(output, MARK)?;
        Some(Self {
            answers: counts.count("answers")?,
            p50_us: counts.count("p50_us")?,
            p99_us: counts.count("p99_us")?,
            max_us: counts.count("max_us")?,
            longest_turn_us: counts.count("longest_turn_us")?,
            downloaded_bytes: counts.count("downloaded_bytes")?,
            least_downloaded_bytes: counts.count("least_downloaded_bytes")?,
            errors: counts.count("errors")?,
        })
    }
}

impl Display for Beside {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{MARK} answers={} p50_us={} p99_us={}", self.answers, self.p50_us, self.p99_us)?;
        write!(out, " max_us={} longest_turn_us={}", self.max_us, self.longest_turn_us)?;
        write!(out, " downloaded_bytes={}", self.downloaded_bytes)?;
        write!(out, " least_downloaded_bytes={} errors={}", self.least_downloaded_bytes, self.errors)
    }
}

/// What to ask, and for how long.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whom to ask.
    pub address: SocketAddr,
    /// The small file.
    pub target: String,
    /// Length of its whole answer.
    pub answer_bytes: usize,
    /// How long small requests are sent.
    pub duration: Duration,
}

/// A connection for small requests.
struct Small {
    socket: OwnedFd,
    /// When the request under way was due; none is under way.
    due: Option<Instant>,
    received: usize,
}

struct Client<'a> {
    request: &'a Request,
    small: Vec<Small>,
    /// The small connections alone.
    small_epoll: OwnedFd,
    /// Small connections on which nothing is under way.
    free: Vec<usize>,
    next_due: Instant,
    downloads: Vec<(OwnedFd, u64)>,
    latencies_us: Vec<u64>,
    longest_turn_us: u64,
    errors: u64,
}

/// Downloads, asks, and counts.
///
/// # Errors
/// What the kernel refuses at the start. Later failures are counted.
pub fn run(request: &Request) -> io::Result<Beside> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let small_epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut sources = Sources::new();
    let mut connect = |number: u32| -> io::Result<OwnedFd> {
        let socket = sources.connect(request.address)?;
        epoll::add(&epoll, &socket, EventData::new_u64(u64::from(number)), EventFlags::IN)?;
        Ok(socket)
    };
    // The small ones behind the downloads', by their numbers among the events.
    let small = (CLIENTS..CLIENTS + SMALL_CONNECTIONS)
        .map(|number| connect(number).map(|socket| Small { socket, due: None, received: 0 }));
    let small: Vec<Small> = small.collect::<io::Result<_>>()?;
    for (number, small) in small.iter().enumerate() {
        epoll::add(&small_epoll, &small.socket, EventData::new_u64(number as u64), EventFlags::IN)?;
    }
    let downloads = (0..CLIENTS).map(|number| {
        let socket = connect(number)?;
        ask(&socket, &target(number))?;
        Ok((socket, 0))
    });
    let downloads: Vec<(OwnedFd, u64)> = downloads.collect::<io::Result<_>>()?;
    let next_due = Instant::now() + LEAD;
    let (free, latencies_us) = ((0..small.len()).collect(), Vec::with_capacity(LATENCIES_MAX));
    let mut client = Client {
        request,
        small,
        small_epoll,
        free,
        next_due,
        downloads,
        latencies_us,
        longest_turn_us: 0,
        errors: 0,
    };
    client.serve_until(&epoll, next_due + request.duration)?;
    Ok(client.counts())
}

/// Waits for events, at most as many as fit into `events`, which is empty.
fn wait(epoll: &OwnedFd, events: &mut Vec<Event>, timeout: &Timespec) -> io::Result<()> {
    match epoll::wait(epoll, spare_capacity(events), Some(timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn ask(socket: &OwnedFd, target: &str) -> io::Result<()> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: lab\r\n\r\n");
    let sent = rustix::net::send(socket, request.as_bytes(), SendFlags::NOSIGNAL)?;
    if sent == request.len() { Ok(()) } else { Err(Error::other("a request was cut")) }
}

impl Client<'_> {
    fn serve_until(&mut self, epoll: &OwnedFd, end: Instant) -> io::Result<()> {
        let mut events = Vec::with_capacity((CLIENTS + SMALL_CONNECTIONS) as usize);
        let mut small_events = Vec::with_capacity(SMALL_CONNECTIONS as usize);
        let mut buffer = vec![0; RECEIVE_BYTES];
        while Instant::now() < end && self.errors == 0 && self.latencies_us.len() < LATENCIES_MAX {
            self.ask_what_is_due()?;
            let wake = if self.free.is_empty() { end } else { self.next_due.min(end) };
            let timeout = wake.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(timeout).map_err(Error::other)?;
            events.clear();
            wait(epoll, &mut events, &timeout)?;
            let mut looked = Instant::now();
            for event in &events {
                let number = event.data.u64() as usize;
                match number.checked_sub(CLIENTS as usize) {
                    Some(small) => self.answered(small, &mut buffer),
                    None => self.downloaded(number, &mut buffer),
                }
                self.look_for_small(&mut small_events, &mut buffer)?;
                self.longest_turn_us = self.longest_turn_us.max(micros(looked.elapsed()));
                looked = Instant::now();
            }
        }
        // Those that are still under way have taken so long at least.
        (0..self.small.len()).for_each(|small| self.note_latency(small));
        Ok(())
    }

    /// Sends the small requests that are due, takes the small answers that are there.
    fn look_for_small(&mut self, events: &mut Vec<Event>, buffer: &mut [u8]) -> io::Result<()> {
        self.ask_what_is_due()?;
        events.clear();
        wait(&self.small_epoll, events, &Timespec::default())?;
        for event in events {
            self.answered(event.data.u64() as usize, buffer);
        }
        Ok(())
    }

    /// As many as are due and have a connection; the others are late from the moment they were due.
    fn ask_what_is_due(&mut self) -> io::Result<()> {
        let now = Instant::now();
        while self.next_due <= now
            && let Some(free) = self.free.pop()
        {
            let small = &mut self.small[free];
            ask(&small.socket, &self.request.target)?;
            small.due = Some(self.next_due);
            self.next_due += INTERVAL;
        }
        Ok(())
    }

    fn answered(&mut self, number: usize, buffer: &mut [u8]) {
        let Some(small) = self.small.get_mut(number) else { return };
        let length = match rustix::net::recv(&small.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((length, _)) if length > 0 => length,
            Err(Errno::AGAIN) => return,
            Ok(_) | Err(_) => return self.errors += 1,
        };
        let wrong = small.received == 0 && !buffer[..length].starts_with(STATUS_LINE);
        small.received += length;
        if wrong || small.due.is_none() || small.received > self.request.answer_bytes {
            self.errors += 1;
        } else if small.received == self.request.answer_bytes {
            small.received = 0;
            self.free.push(number);
            self.note_latency(number);
        }
    }

    fn note_latency(&mut self, number: usize) {
        if let Some(due) = self.small[number].due.take() {
            self.latencies_us.push(micros(due.elapsed()));
        }
    }

    fn downloaded(&mut self, number: usize, buffer: &mut [u8]) {
        let Some((socket, bytes)) = self.downloads.get_mut(number) else { return };
        match rustix::net::recv(&*socket, &mut *buffer, RecvFlags::empty()) {
            Ok((length, _)) if length > 0 => {
                let right = *bytes > 0 || buffer[..length].starts_with(STATUS_LINE);
                *bytes += length as u64;
                self.errors += u64::from(!right || *bytes > DOWNLOAD_BYTES_MAX);
            }
            Err(Errno::AGAIN) => {}
            Ok(_) | Err(_) => self.errors += 1,
        }
    }

    fn counts(mut self) -> Beside {
        self.latencies_us.sort_unstable();
        let sorted = &self.latencies_us;
        Beside {
            answers: sorted.len() as u64,
            p50_us: percentile(sorted, 50),
            p99_us: percentile(sorted, 99),
            max_us: percentile(sorted, 100),
            longest_turn_us: self.longest_turn_us,
            downloaded_bytes: self.downloads.iter().map(|(_, bytes)| bytes).sum(),
            least_downloaded_bytes: self.downloads.iter().map(|(_, bytes)| *bytes).min().unwrap_or(0),
            errors: self.errors,
        }
    }
}
