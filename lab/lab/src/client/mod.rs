//! The load generator: one thread and epoll; a closed loop, a fixed rate or rounds; pipelining, connections that end,
//! requests that differ, receive buffers of a given size, and large downloads beside the requests.
//!
//! It checks each response's status and its length, which is known from a probe.
//! At a fixed rate a request's latency counts from when it was due, so a stalled server can't hide behind a waiting client.

mod connection;
mod downloads;
mod requests;
mod source;
mod tally;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use connection::{Connection, Received};
pub(crate) use downloads::DOWNLOAD_BYTES_MAX;
use downloads::Downloads;
use requests::Requests;
pub(crate) use source::Sources;
pub(crate) use tally::{Latency, Tally};

/// Events per wait.
const EVENTS_MAX: usize = 512;
/// Events per wait at a fixed rate: few enough that due requests leave in between.
const RATE_EVENTS_MAX: usize = 64;
/// Due requests sent before responses are received again.
const SENDS_MAX: usize = 64;
/// Bytes per receive, shared by all connections.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Maximum wait without a look at the clock.
const WAIT: Duration = Duration::from_millis(100);
/// Failed connects after which the run ends.
const CONNECT_FAILURES_MAX: u64 = 100;
/// Latency beyond which a response counts as a timeout at a fixed rate.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Largest recorded latency in microseconds.
const LATENCY_US_MAX: u64 = 600_000_000;
/// Time for downloads to start before the first request.
const LEAD: Duration = Duration::from_millis(100);

/// A request and what its response must be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) request: String,
    pub(crate) status: u16,
    /// Length of the whole response.
    pub(crate) bytes: u64,
}

/// Moment at which a connection sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Pacing {
    /// As soon as all its responses have arrived.
    Closed,
    /// As soon as the responses on all connections have arrived.
    Rounds,
    /// So many requests a second, each on the connection that has been idle longest.
    Rate(u32),
}

/// A client's task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) address: SocketAddr,
    pub(crate) millis: u64,
    /// Ends the run early after so many responses.
    pub(crate) responses_max: Option<u64>,
    pub(crate) connections: u32,
    pub(crate) depth: u32,
    pub(crate) requests_per_connection: u32,
    pub(crate) pacing: Pacing,
    pub(crate) receive_buffer_bytes: Option<u32>,
    /// Records the latency of each response.
    pub(crate) latencies: bool,
    /// Targets to download meanwhile, a connection each.
    pub(crate) downloads: Vec<String>,
    /// Sends 64 paths, with a cookie and a header order per connection.
    pub(crate) varied: bool,
    /// Sent in turn; each connection starts at another one.
    pub(crate) exchanges: Vec<Exchange>,
}

impl Load {
    /// Returns a closed loop on one connection.
    pub(crate) fn new(address: SocketAddr, millis: u64, exchanges: Vec<Exchange>) -> Self {
        Self {
            address,
            millis,
            responses_max: None,
            connections: 1,
            depth: 1,
            requests_per_connection: 0,
            pacing: Pacing::Closed,
            receive_buffer_bytes: None,
            latencies: false,
            downloads: Vec::new(),
            varied: false,
            exchanges,
        }
    }
}

struct Client<'a> {
    load: &'a Load,
    epoll: OwnedFd,
    events: Vec<Event>,
    connections: Vec<Connection>,
    sources: Sources,
    /// Connections without an outstanding request, longest idle first. Unused in a closed loop.
    idle: VecDeque<usize>,
    /// Next due time at a fixed rate.
    next_due: Instant,
    end: Instant,
    /// Last return from a wait: until the next look at the schedule the client itself is the delay.
    looked: Instant,
    latencies: Histogram<u64>,
    /// Due times of requests whose connection failed.
    lost: Vec<Instant>,
    tally: Tally,
}

/// Runs a load and counts. Errors are the kernel's at the start; later ones are counted.
pub(crate) fn run(load: &Load) -> io::Result<Tally> {
    let started = Instant::now();
    let latencies = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).map_err(io::Error::other)?;
    let events_max = if matches!(load.pacing, Pacing::Rate(_)) { RATE_EVENTS_MAX } else { EVENTS_MAX };
    let mut client = Client {
        load,
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        events: Vec::with_capacity(events_max),
        connections: Vec::new(),
        sources: Sources::new(load.receive_buffer_bytes),
        idle: (0..load.connections as usize).collect(),
        next_due: started,
        end: started,
        looked: started,
        latencies,
        lost: Vec::new(),
        tally: Tally::default(),
    };
    for number in 0..load.connections {
        let socket = client.connect(number as usize)?;
        client.connections.push(Connection::new(socket, Requests::new(load, number)));
    }
    // A closed loop starts with its first connection, a schedule when all are open.
    let begun = if load.pacing == Pacing::Closed { started } else { Instant::now() };
    client.end = begun + Duration::from_millis(load.millis);
    if load.downloads.is_empty() {
        (client.next_due, client.looked) = (begun, begun);
        client.serve()?;
    } else {
        let mut downloads = Downloads::start(load, &mut client.sources, &client.epoll)?;
        client.next_due = Instant::now() + LEAD;
        client.end = client.next_due + Duration::from_millis(load.millis);
        client.looked = Instant::now();
        client.serve_beside(&mut downloads)?;
    }
    client.tally.duration_us = micros(begun.elapsed());
    Ok(client.finish())
}

impl Client<'_> {
    fn serve(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; RECEIVE_BYTES];
        while !self.is_over() {
            self.send_what_is_due();
            self.receive(self.patience(), &mut buffer)?;
        }
        Ok(())
    }

    /// Polls the requests after every receive of a download: what this thread adds to a latency is one such receive.
    fn serve_beside(&mut self, downloads: &mut Downloads) -> io::Result<()> {
        let mut buffer = vec![0; RECEIVE_BYTES];
        while !self.is_over() && self.tally.read_errors == 0 {
            self.send_what_is_due();
            let ready = downloads.wait(self.patience())?;
            self.looked = Instant::now();
            for number in ready {
                if downloads.receive(number, &mut buffer).is_err() {
                    self.tally.read_errors += 1;
                }
                self.send_what_is_due();
                self.receive(Duration::ZERO, &mut buffer)?;
            }
        }
        (self.tally.downloaded_bytes, self.tally.least_downloaded_bytes) = downloads.bytes();
        Ok(())
    }

    /// Returns true after the last response, or when those still missing have taken too long.
    fn is_over(&self) -> bool {
        let now = Instant::now();
        let is_full = self.load.responses_max.is_some_and(|most| self.tally.responses >= most);
        let is_at_end = match self.load.pacing {
            Pacing::Closed | Pacing::Rounds => now >= self.end,
            Pacing::Rate(_) => {
                let is_sent = self.next_due >= self.end && self.idle.len() == self.connections.len();
                now >= self.end && is_sent || now >= self.end + TIMEOUT
            }
        };
        is_full || is_at_end || self.tally.connect_errors >= CONNECT_FAILURES_MAX
    }

    fn patience(&self) -> Duration {
        match self.load.pacing {
            Pacing::Rate(_) if !self.idle.is_empty() && self.next_due < self.end => {
                self.next_due.saturating_duration_since(Instant::now()).min(WAIT)
            }
            Pacing::Rate(_) => WAIT / 10,
            Pacing::Closed | Pacing::Rounds => WAIT,
        }
    }

    fn send_what_is_due(&mut self) {
        match self.load.pacing {
            Pacing::Closed => {}
            Pacing::Rounds if self.idle.len() == self.connections.len() => {
                while let Some(number) = self.idle.pop_front() {
                    self.send(number, None);
                }
            }
            Pacing::Rounds => {}
            Pacing::Rate(rate) => {
                let now = Instant::now();
                self.tally.longest_turn_us = self.tally.longest_turn_us.max(micros(now - self.looked));
                self.looked = now;
                for _ in 0..SENDS_MAX {
                    if self.next_due > now || self.next_due >= self.end {
                        return;
                    }
                    let Some(number) = self.idle.pop_front() else { return };
                    self.send(number, Some(self.next_due));
                    self.next_due += Duration::from_secs(1) / rate.max(1);
                }
            }
        }
    }

    /// Sends the next requests; their latency counts from when they were due, else from now.
    fn send(&mut self, number: usize, due: Option<Instant>) {
        let since = self.load.latencies.then(|| due.unwrap_or_else(Instant::now));
        self.tally.requests += u64::from(self.load.depth);
        if self.connections[number].send(self.load, since).is_err() {
            self.tally.write_errors += 1;
            self.reconnect(number);
        }
    }

    fn receive(&mut self, patience: Duration, buffer: &mut [u8]) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.events);
        wait(&self.epoll, &mut events, patience)?;
        if !patience.is_zero() {
            self.looked = Instant::now();
        }
        for event in &events {
            self.ready(event.data.u64() as usize, buffer);
        }
        self.events = events;
        Ok(())
    }

    /// Receives until the socket is empty; in a closed loop sends the next requests as soon as the last responses are whole.
    fn ready(&mut self, number: usize, buffer: &mut [u8]) {
        loop {
            if self.load.pacing == Pacing::Closed && self.connections[number].is_idle() {
                self.send(number, None);
            } else if self.connections[number].flush().is_err() {
                self.tally.write_errors += 1;
                return self.reconnect(number);
            }
            let connection = &mut self.connections[number];
            let responses = self.tally.responses;
            match connection.receive(self.load, buffer, &mut self.tally) {
                Received::Nothing => return,
                Received::Bytes => {}
                Received::End => {
                    self.tally.read_errors += 1;
                    return self.reconnect(number);
                }
                Received::Unexpected => {
                    self.tally.status_errors += 1;
                    return self.reconnect(number);
                }
            }
            if responses == self.tally.responses || !connection.is_idle() {
                continue;
            }
            if let Some(since) = connection.since.take() {
                let latency = since.elapsed();
                let has_timeout = matches!(self.load.pacing, Pacing::Rate(_));
                self.tally.timeouts += u64::from(has_timeout && latency > TIMEOUT);
                self.latencies.saturating_record(micros(latency).max(1));
            }
            if self.load.pacing != Pacing::Closed {
                self.idle.push_back(number);
            }
            let limit = u64::from(self.load.requests_per_connection);
            if limit > 0 && self.connections[number].responses >= limit {
                return self.reconnect(number);
            }
        }
    }

    fn connect(&mut self, number: usize) -> io::Result<OwnedFd> {
        let socket = self.sources.connect(self.load.address)?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &socket, EventData::new_u64(number as u64), flags)?;
        Ok(socket)
    }

    fn reconnect(&mut self, number: usize) {
        let was_idle = self.connections[number].is_idle();
        self.lost.extend(self.connections[number].since.take());
        match self.connect(number) {
            Ok(socket) => self.connections[number].renew(socket),
            Err(_) => return self.tally.connect_errors += 1,
        }
        if self.load.pacing != Pacing::Closed && !was_idle {
            self.idle.push_back(number);
        }
    }

    fn finish(mut self) -> Tally {
        if matches!(self.load.pacing, Pacing::Rate(_)) {
            // Responses that never came count with the time until now.
            self.lost.extend(self.connections.iter_mut().filter_map(|connection| connection.since.take()));
            for since in self.lost.drain(..) {
                self.tally.timeouts += 1;
                self.latencies.saturating_record(micros(since.elapsed().max(TIMEOUT)));
            }
        }
        self.tally.receive_buffer_bytes = self.sources.granted_bytes();
        self.tally.latency = self.load.latencies.then(|| Latency::of(&self.latencies));
        self.tally
    }
}

/// Waits for events, at most as many as fit into `events`.
fn wait(epoll: &OwnedFd, events: &mut Vec<Event>, patience: Duration) -> io::Result<()> {
    events.clear();
    let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
    match epoll::wait(epoll, spare_capacity(events), Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
