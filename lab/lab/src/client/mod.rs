//! The load generator: one thread, one event loop; a closed loop, a fixed rate or rounds; pipelining, connections that end,
//! requests that differ, receive buffers of a given size, and large downloads beside the requests.
//!
//! It checks each response's status, and its length, which is known from a probe, or every byte of a file of a set.
//! At a fixed rate a timer wakes it for each request to the nanosecond, and a latency counts from when its request was due, so
//! that a stalled server can't hide behind a waiting client.

mod connection;
mod load;

use std::collections::VecDeque;
use std::io::{self, Error};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use socket2::Socket;

use connection::{LoadConnection, ReceiveResult};
pub(crate) use connection::{SOURCE_ADDRESSES, connect};
pub(crate) use load::{CheckedRequest, Latency, Load, LoadCounts, Pacing};

/// Events per wait.
const EVENTS_MAX: usize = 512;
/// Events per wait at a fixed rate: few enough that due requests leave in between.
const RATE_EVENTS_MAX: usize = 64;
/// Due requests sent before responses are received again.
const SENDS_MAX: usize = 64;
/// Bytes per receive, shared by all connections.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Maximum wait without a look at the clock.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Failed connects after which the run ends.
const CONNECT_FAILURES_MAX: u64 = 100;
/// Latency beyond which a response counts as a timeout at a fixed rate, and time for the last responses of a closed loop.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Largest recorded latency in nanoseconds.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// Time for downloads to start before the first request.
const LEAD: Duration = Duration::from_millis(100);
/// Maximum length of a download: beyond, its file has a hole, which costs the server other work.
pub(crate) const DOWNLOAD_BYTES_MAX: u64 = 176 << 20;
/// Event data of the timer, and of the first download; connections have their numbers.
const TIMER: u64 = u64::MAX;
const DOWNLOADS: u64 = 1 << 32;

struct LoadClient<'a> {
    load: &'a Load,
    epoll: OwnedFd,
    events: Vec<Event>,
    timer: OwnedFd,
    connections: Vec<LoadConnection>,
    /// Connections opened so far.
    opened: u64,
    /// Connections without an outstanding request, longest idle first. Unused in a closed loop.
    idle: VecDeque<usize>,
    downloads: Vec<Download>,
    /// Downloads that may have bytes to receive.
    readable: VecDeque<usize>,
    /// Next due time at a fixed rate.
    next_due: Instant,
    end: Instant,
    /// True after the end of a closed loop, when only outstanding responses are awaited.
    is_ending: bool,
    /// Last return from a wait: until the next look at the schedule the client itself is the delay.
    looked: Instant,
    latencies: Histogram<u64>,
    /// Due times of requests whose connection failed.
    lost: Vec<Instant>,
    counts: LoadCounts,
}

/// A large download, which is received as fast as possible and never finished.
struct Download {
    socket: Socket,
    bytes: u64,
    is_queued: bool,
}

/// Runs a load and counts. Errors are the kernel's at the start; later ones are counted.
pub(crate) fn run(load: &Load) -> Result<LoadCounts, String> {
    let of_set = load.files.as_ref().map(|set| Load { requests: set.requests(), ..load.clone() });
    let counts = LoadClient::open(of_set.as_ref().unwrap_or(load)).and_then(LoadClient::run);
    counts.map_err(|error| format!("client: {error}"))
}

/// Returns the time between two requests.
fn interval(rate: u32) -> Duration {
    Duration::from_secs(1) / rate.max(1)
}

impl<'a> LoadClient<'a> {
    /// Opens all connections.
    fn open(load: &'a Load) -> io::Result<Self> {
        let started = Instant::now();
        let events_max = if matches!(load.pacing, Pacing::Rate(_)) { RATE_EVENTS_MAX } else { EVENTS_MAX };
        let mut client = Self {
            load,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(events_max),
            timer: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?,
            connections: Vec::new(),
            opened: 0,
            idle: (0..load.connections as usize).collect(),
            downloads: Vec::new(),
            readable: VecDeque::new(),
            next_due: started,
            end: started,
            is_ending: false,
            looked: started,
            latencies: Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).map_err(Error::other)?,
            lost: Vec::new(),
            counts: LoadCounts::default(),
        };
        for number in 0..load.connections {
            let socket = client.connect(number.into())?;
            client.connections.push(LoadConnection::new(socket, load, number));
        }
        load.downloads.iter().try_for_each(|target| client.start_download(target))?;
        // A closed loop starts with its first connection, a schedule when all are open.
        if load.pacing != Pacing::Closed {
            client.next_due = Instant::now() + if load.downloads.is_empty() { Duration::ZERO } else { LEAD };
        }
        Ok(client)
    }

    fn run(mut self) -> io::Result<LoadCounts> {
        let begin = self.next_due;
        self.end = begin + Duration::from_millis(self.load.millis);
        self.set_timer()?;
        self.looked = Instant::now();
        self.serve()?;
        self.counts.duration_us = micros(begin.elapsed());
        Ok(self.finish())
    }

    /// Opens a connection whose events have this data.
    fn connect(&mut self, data: u64) -> io::Result<Socket> {
        let requested = self.load.receive_buffer_bytes;
        let socket = connect(self.load.address, self.opened, requested)?;
        self.opened += 1;
        if requested.is_some() {
            // The kernel doubles the figure, for its own records.
            let granted = socket.recv_buffer_size()? as u64 / 2;
            let least = self.counts.receive_buffer_bytes_granted.unwrap_or(granted).min(granted);
            self.counts.receive_buffer_bytes_granted = Some(least);
        }
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &socket, EventData::new_u64(data), flags)?;
        Ok(socket)
    }

    fn start_download(&mut self, target: &str) -> io::Result<()> {
        let socket = self.connect(DOWNLOADS + self.downloads.len() as u64)?;
        let request = format!("GET {target} HTTP/1.1\r\nHost: lab\r\n\r\n");
        if rustix::net::send(&socket, request.as_bytes(), SendFlags::NOSIGNAL)? != request.len() {
            return Err(Error::other("the request of a download was cut"));
        }
        self.downloads.push(Download { socket, bytes: 0, is_queued: false });
        Ok(())
    }

    /// Lets the timer expire whenever a request is due. Waits themselves count in milliseconds.
    fn set_timer(&self) -> io::Result<()> {
        let Pacing::Rate(rate) = self.load.pacing else { return Ok(()) };
        let until = self.next_due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let [it_value, it_interval] = [until, interval(rate)].map(Timespec::try_from);
        let times = Itimerspec {
            it_value: it_value.map_err(Error::other)?,
            it_interval: it_interval.map_err(Error::other)?,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times)?;
        epoll::add(&self.epoll, &self.timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        Ok(())
    }

    /// Requests come first: what this thread adds to a latency is one receive of a download.
    fn serve(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; RECEIVE_BYTES];
        while !self.is_over() {
            self.send_what_is_due();
            self.wait(if self.readable.is_empty() { WAIT_MAX } else { Duration::ZERO })?;
            self.looked = Instant::now();
            let events = std::mem::take(&mut self.events);
            for event in &events {
                match event.data.u64() {
                    // Reading starts its next interval; how many have passed, the clock says.
                    TIMER => drop(rustix::io::read(&self.timer, &mut [0; 8])),
                    number if number < DOWNLOADS => self.ready(number as usize, &mut buffer),
                    number => self.queue_download((number - DOWNLOADS) as usize),
                }
            }
            self.events = events;
            if let Some(number) = self.readable.pop_front() {
                self.receive_download(number, &mut buffer);
            }
        }
        Ok(())
    }

    /// Waits for events, at most as many as fit.
    fn wait(&mut self, patience: Duration) -> io::Result<()> {
        self.events.clear();
        let timeout = Timespec::try_from(patience).map_err(Error::other)?;
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true after the last response, or when those still missing have taken too long.
    fn is_over(&mut self) -> bool {
        let now = Instant::now();
        self.is_ending = self.load.pacing == Pacing::Closed && now >= self.end;
        let is_full = self.load.responses_max.is_some_and(|most| self.counts.responses >= most);
        let has_failed = self.counts.connect_errors >= CONNECT_FAILURES_MAX
            || !self.downloads.is_empty() && self.counts.read_errors > 0;
        let is_at_end = match self.load.pacing {
            Pacing::Closed => {
                let is_idle = || self.connections.iter().all(LoadConnection::is_idle);
                self.is_ending && (is_idle() || now >= self.end + TIMEOUT)
            }
            Pacing::Rounds => now >= self.end,
            Pacing::Rate(_) => {
                let is_sent = self.next_due >= self.end && self.idle.len() == self.connections.len();
                now >= self.end && is_sent || now >= self.end + TIMEOUT
            }
        };
        is_full || has_failed || is_at_end
    }

    fn send_what_is_due(&mut self) {
        match self.load.pacing {
            Pacing::Rounds if self.idle.len() == self.connections.len() => {
                while let Some(number) = self.idle.pop_front() {
                    self.send(number, None);
                }
            }
            Pacing::Closed | Pacing::Rounds => {}
            Pacing::Rate(rate) => {
                let now = Instant::now();
                let turn_us = &mut self.counts.client_longest_turn_us;
                *turn_us = (*turn_us).max(micros(now - self.looked));
                self.looked = now;
                for _ in 0..SENDS_MAX {
                    if self.next_due > now || self.next_due >= self.end {
                        return;
                    }
                    let Some(number) = self.idle.pop_front() else { return };
                    self.send(number, Some(self.next_due));
                    self.next_due += interval(rate);
                }
            }
        }
    }

    /// Sends the next requests; their latency counts from when they were due, else from now.
    fn send(&mut self, number: usize, due: Option<Instant>) {
        let since = self.load.latencies.then(|| due.unwrap_or_else(Instant::now));
        self.counts.requests += u64::from(self.load.depth);
        if self.connections[number].send(self.load, since).is_err() {
            self.counts.write_errors += 1;
            self.reconnect(number);
        }
    }

    /// Receives until the socket is empty; in a closed loop sends the next requests as soon as the last responses are whole.
    fn ready(&mut self, number: usize, buffer: &mut [u8]) {
        loop {
            if self.load.pacing == Pacing::Closed && self.connections[number].is_idle() {
                if self.is_ending {
                    return;
                }
                self.send(number, None);
            } else if self.connections[number].flush().is_err() {
                self.counts.write_errors += 1;
                return self.reconnect(number);
            }
            let responses = self.counts.responses;
            match self.connections[number].receive(self.load, buffer, &mut self.counts) {
                ReceiveResult::Nothing => return,
                ReceiveResult::Bytes => {}
                ReceiveResult::End => {
                    self.counts.read_errors += 1;
                    return self.reconnect(number);
                }
                ReceiveResult::Unexpected => {
                    self.counts.status_errors += 1;
                    return self.reconnect(number);
                }
            }
            if responses == self.counts.responses || !self.connections[number].is_idle() {
                continue;
            }
            self.record_latency(number);
            if self.load.pacing != Pacing::Closed {
                self.idle.push_back(number);
            }
            let limit = self.load.requests_per_connection;
            if limit > 0 && self.connections[number].responses >= limit {
                return self.reconnect(number);
            }
        }
    }

    fn record_latency(&mut self, number: usize) {
        let Some(since) = self.connections[number].since.take() else { return };
        let latency = since.elapsed();
        let has_timeout = matches!(self.load.pacing, Pacing::Rate(_));
        self.counts.timeouts += u64::from(has_timeout && latency > TIMEOUT);
        self.latencies.saturating_record(nanos(latency));
    }

    fn reconnect(&mut self, number: usize) {
        let was_idle = self.connections[number].is_idle();
        self.lost.extend(self.connections[number].since.take());
        match self.connect(number as u64) {
            Ok(socket) => self.connections[number].renew(socket),
            Err(_) => return self.counts.connect_errors += 1,
        }
        if self.load.pacing != Pacing::Closed && !was_idle {
            self.idle.push_back(number);
        }
    }

    fn queue_download(&mut self, number: usize) {
        let download = &mut self.downloads[number];
        if !std::mem::replace(&mut download.is_queued, true) {
            self.readable.push_back(number);
        }
    }

    /// Receives once. A failed socket, a wrong status, or a download that got too far is an error.
    fn receive_download(&mut self, number: usize, buffer: &mut [u8]) {
        let download = &mut self.downloads[number];
        download.is_queued = false;
        let length = match rustix::net::recv(&download.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((length @ 1.., _)) => length,
            Err(Errno::AGAIN) => return,
            Ok(_) | Err(_) => return self.counts.read_errors += 1,
        };
        let is_right = download.bytes > 0 || buffer[..length].starts_with(b"HTTP/1.1 200");
        download.bytes += length as u64;
        self.counts.read_errors += u64::from(!is_right || download.bytes > DOWNLOAD_BYTES_MAX);
        self.queue_download(number);
    }

    fn finish(mut self) -> LoadCounts {
        if self.is_ending {
            let missing = self.connections.iter().filter(|connection| !connection.is_idle());
            self.counts.timeouts += missing.count() as u64;
        }
        if let Pacing::Rate(rate) = self.load.pacing {
            // Responses that never came count with the time until now, and so do requests that found no idle connection.
            for connection in self.connections.iter_mut().filter(|connection| !connection.is_idle()) {
                match connection.since.take() {
                    Some(since) => self.lost.push(since),
                    // Its latency would not have been recorded.
                    None => self.counts.timeouts += 1,
                }
            }
            while self.next_due < self.end {
                self.lost.push(self.next_due);
                self.next_due += interval(rate);
            }
            for since in self.lost {
                self.counts.timeouts += 1;
                self.latencies.saturating_record(nanos(since.elapsed().max(TIMEOUT)));
            }
        }
        let downloaded = self.downloads.iter().map(|download| download.bytes);
        self.counts.downloaded_bytes = downloaded.clone().sum();
        self.counts.least_downloaded_bytes = downloaded.min().unwrap_or(0);
        self.counts.latency = self.load.latencies.then(|| Latency::of(&self.latencies));
        self.counts
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Returns at least 1, the least that a histogram takes.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests;
