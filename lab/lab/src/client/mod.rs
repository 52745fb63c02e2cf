//! The load generator: one thread, one event loop; a closed loop, a fixed rate or rounds; pipelining, connections that end,
//! requests that differ, receive buffers of a given size, and large downloads beside the requests.
//!
//! It checks each response's status and the length of its body, which a probe has found. Files of a set are compared whole.
//! At a fixed rate a timer wakes it for each request to the nanosecond, and a latency counts from when its request was due, so
//! that the time of a stall counts in full.

mod connection;
mod downloads;
mod generated;
mod held;
mod http2;
mod load;
mod response;
mod schedule;
#[cfg(test)]
pub(crate) mod tests;
mod ticks;
mod wire;

use std::collections::VecDeque;
use std::io::{self, Error};
use std::iter::repeat_n;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use socket2::Socket;

pub(crate) use connection::SOURCE_ADDRESSES;
use connection::{LoadConnection, ReceiveResult, connect_from, source_address};
pub(crate) use downloads::DOWNLOAD_BYTES_MAX;
use downloads::Download;
pub(crate) use generated::GeneratedRequests;
use held::Holder;
pub(crate) use held::{
    COUNT, FAILURES_MAX, HeldConnections, HeldCounts, HeldThread, START_ASKING, STOP_ASKING, hold, order,
};
use http2::Streams;
pub(crate) use http2::TextStream;
pub(crate) use load::{
    Arrivals, CheckedRequest, Latency, Load, LoadCounts, LoadOptions, LoadOutcome, Pacing,
};
pub(crate) use response::ExpectedResponse;
use schedule::micros;
use ticks::TICK;
pub(crate) use ticks::{Observer, Stage};
use wire::Wire;
pub(crate) use wire::{ClientTls, Handshakes};

/// Events per wait.
const EVENTS_MAX: usize = 512;
/// Events per wait at a fixed rate: few enough that due requests leave in between.
const RATE_EVENTS_MAX: usize = 64;
/// Bytes per receive, shared by all connections.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Maximum wait without a look at the clock.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Failed connects after which the run ends.
const CONNECT_FAILURES_MAX: u64 = 100;
/// Largest recorded latency in nanoseconds.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// Time for downloads to start before the first request.
const LEAD: Duration = Duration::from_millis(100);
/// Event data of the timer, of orders to hold connections, and of the first download; connections have their numbers.
const TIMER: u64 = u64::MAX;
const ORDERS: u64 = u64::MAX - 1;
const DOWNLOADS: u64 = 1 << 32;
/// Errors that only a connecting socket has.
const CONNECT_ERRORS: [Errno; 4] =
    [Errno::CONNREFUSED, Errno::TIMEDOUT, Errno::HOSTUNREACH, Errno::NETUNREACH];
/// Events after which a socket is read until its end.
const ENDS: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

struct LoadClient<'a> {
    load: &'a Load,
    tls: Option<ClientTls>,
    /// Set where connections are held.
    held: Option<Holder<'a>>,
    observer: Option<Observer<'a>>,
    epoll: OwnedFd,
    events: Vec<Event>,
    timer: OwnedFd,
    connections: Vec<LoadConnection>,
    /// Connections without an outstanding request, longest idle first. Unused in a closed loop.
    idle: VecDeque<usize>,
    downloads: Vec<Download>,
    /// Downloads that may have bytes to receive.
    readable: VecDeque<usize>,
    /// Next due time at a fixed rate, and the one that the timer is set to.
    next_due: Instant,
    timer_due: Option<Instant>,
    arrivals: fastrand::Rng,
    begin: Instant,
    end: Instant,
    last_tick: Instant,
    /// Number of the stage, and the connections that it may have.
    stage: usize,
    active: usize,
    /// Last return from a wait, and last time that due requests were sent. While this thread does neither, it is the delay.
    looked: Instant,
    sent: Instant,
    /// True if a connection was idle then, for the next request.
    had_idle: bool,
    /// Latencies of each stage; one if there are none.
    latencies: Vec<Histogram<u64>>,
    /// Due times of requests whose connection failed.
    lost: Vec<Instant>,
    /// Responses before the end, and the time in which they came.
    responses_in_time: u64,
    in_time: Duration,
    connect_error: Option<io::Error>,
    counts: LoadCounts,
}

/// Runs a load and counts. Errors are the kernel's at the start; later ones are counted.
pub(crate) fn run(load: &Load) -> Result<LoadCounts, String> {
    let of_set = load.files.as_ref().map(|set| Load { requests: set.requests(), ..load.clone() });
    run_observed(of_set.as_ref().unwrap_or(load), None).map(|outcome| outcome.counts)
}

/// Runs a load without a set of files, and reports its progress.
pub(crate) fn run_observed<'a>(
    load: &'a Load,
    observer: Option<Observer<'a>>,
) -> Result<LoadOutcome, String> {
    let outcome = LoadClient::open(load, observer).and_then(LoadClient::run);
    outcome.map_err(|error| format!("client: {error}"))
}

impl<'a> LoadClient<'a> {
    /// Opens all connections.
    fn open(load: &'a Load, observer: Option<Observer<'a>>) -> io::Result<Self> {
        let started = Instant::now();
        let events_max = if matches!(load.pacing, Pacing::Rate(_)) { RATE_EVENTS_MAX } else { EVENTS_MAX };
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).map_err(Error::other)?;
        let mut client = Self {
            load,
            tls: load.tls.map(|tls| ClientTls::new(tls, load.http2)).transpose()?,
            held: None,
            observer,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(events_max),
            timer: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?,
            connections: Vec::new(),
            idle: (0..load.connections as usize).collect(),
            downloads: Vec::new(),
            readable: VecDeque::new(),
            next_due: started,
            timer_due: None,
            arrivals: fastrand::Rng::with_seed(load.seed),
            begin: started,
            end: started,
            last_tick: started,
            stage: 0,
            active: usize::MAX,
            looked: started,
            sent: started,
            had_idle: true,
            latencies: vec![histogram; load.options.stages.len().max(1)],
            lost: Vec::new(),
            responses_in_time: 0,
            in_time: Duration::ZERO,
            connect_error: None,
            counts: LoadCounts::default(),
        };
        if let (Some(Handshakes::Resumed), Some(tls)) = (load.tls, &client.tls) {
            tls.get_tickets(load.connections as usize, load.address, &load.requests[0].request)?;
        }
        for number in 0..load.connections {
            let wire = client.connect_wire(number.into(), true)?;
            client.connections.push(LoadConnection::new(Some(wire), load, number));
        }
        load.downloads.iter().try_for_each(|target| client.start_download(target))?;
        client.next_due = Instant::now() + if load.downloads.is_empty() { Duration::ZERO } else { LEAD };
        Ok(client)
    }

    fn run(mut self) -> io::Result<LoadOutcome> {
        self.begin(Duration::from_millis(self.load.millis))?;
        self.serve()?;
        self.counts.duration_us = micros(self.begin.elapsed());
        Ok(self.finish())
    }

    /// Starts the clocks.
    fn begin(&mut self, length: Duration) -> io::Result<()> {
        self.begin = self.next_due;
        self.end = self.begin + length;
        self.last_tick = self.begin - TICK;
        self.looked = Instant::now();
        self.sent = self.looked;
        Ok(epoll::add(&self.epoll, &self.timer, EventData::new_u64(TIMER), EventFlags::IN)?)
    }

    /// Opens a connection whose events have this data.
    fn connect(&mut self, data: u64, may_block: bool) -> io::Result<Socket> {
        let requested = self.load.receive_buffer_bytes;
        let source = self.held.as_ref().map(|held| held.source(data));
        let source = source.or_else(|| source_address(self.load.address, self.counts.connections_opened));
        let socket = connect_from(source, self.load.address, requested, may_block)?;
        self.counts.connections_opened += 1;
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

    /// Opens one for requests.
    fn connect_wire(&mut self, data: u64, may_block: bool) -> io::Result<Wire> {
        let socket = self.connect(data, may_block)?;
        let streams = self.load.http2.then(|| Streams::new(self.load.beside.as_deref()));
        Wire::new(socket, self.tls.as_ref(), streams)
    }

    /// Requests come first: what this thread adds to a latency is one receive of a download.
    fn serve(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; RECEIVE_BYTES];
        let patience = if self.load.is_tool() { TICK } else { WAIT_MAX };
        while !self.is_over() {
            let held_patience = self.tend_held();
            self.send_what_is_due();
            self.set_timer()?;
            let wait = if self.readable.is_empty() { patience } else { Duration::ZERO };
            self.wait(held_patience.unwrap_or(wait))?;
            self.looked = Instant::now();
            let events = std::mem::take(&mut self.events);
            for event in &events {
                match event.data.u64() {
                    // Reading starts its next interval; the number that has passed follows from the clock.
                    TIMER => drop(rustix::io::read(&self.timer, &mut [0; 8])),
                    ORDERS => self.take_orders()?,
                    number if number < DOWNLOADS => {
                        let flags = event.flags;
                        self.ready(number as usize, &mut buffer, flags.intersects(ENDS));
                    }
                    number => self.queue_download((number - DOWNLOADS) as usize),
                }
            }
            self.events = events;
            if let Some(number) = self.readable.pop_front() {
                self.receive_download(number, &mut buffer);
            }
            if patience == TICK {
                self.tick(self.looked, &mut buffer);
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
        if let Some(held) = &self.held {
            return held.is_over;
        }
        let now = Instant::now();
        if now < self.end {
            self.responses_in_time = self.counts.responses;
            self.in_time = now.saturating_duration_since(self.begin);
        }
        if self.is_ending() {
            self.active = 0;
        }
        let is_full = self.load.responses_max.is_some_and(|most| self.counts.responses >= most);
        let has_failed = self.counts.connect_errors >= CONNECT_FAILURES_MAX
            || !self.downloads.is_empty() && self.counts.read_errors > 0;
        let is_at_end = match self.load.pacing {
            Pacing::Closed => {
                let is_idle = || self.connections.iter().all(LoadConnection::is_idle);
                let is_awaiting = self.is_ending() && !is_idle() && now < self.end + self.timeout();
                now >= self.end && !is_awaiting
            }
            Pacing::Rounds => now >= self.end,
            Pacing::Rate(_) => {
                let is_sent = || self.next_due >= self.end && self.connections.iter().all(|it| it.is_idle());
                now >= self.end && is_sent() || now >= self.end + self.timeout()
            }
        };
        is_full || has_failed || is_at_end
    }

    /// Returns true after the end of a scenario's closed loop, when only outstanding responses are awaited.
    fn is_ending(&self) -> bool {
        self.load.pacing == Pacing::Closed && !self.load.is_tool() && Instant::now() >= self.end
    }

    /// Sends the next requests; their latency counts from when they were due, else from now.
    fn send(&mut self, number: usize, due: Option<Instant>) {
        let since = self.load.latencies.then(|| due.unwrap_or_else(Instant::now));
        self.counts.requests += u64::from(self.load.depth);
        if let Err(error) = self.connections[number].send(self.load, since) {
            self.fail(number, Some(error), |counts| &mut counts.write_errors);
        }
    }

    /// Receives until the socket is empty; in a closed loop sends the next requests as soon as the last responses are whole.
    /// Unless the connection may be at its end, a short receive says that the socket is empty.
    fn ready(&mut self, number: usize, buffer: &mut [u8], may_end: bool) {
        let is_leaving = self.is_leaving();
        let connection = &mut self.connections[number];
        let was_idle = connection.is_idle();
        if was_idle && self.load.pacing == Pacing::Closed && number < self.active {
            self.send(number, None);
        } else if was_idle && is_leaving {
            return connection.close();
        } else if let Err(error) = connection.flush(self.load) {
            return self.fail(number, Some(error), |counts| &mut counts.write_errors);
        } else if !was_idle && connection.is_idle() {
            self.end_batch(number, None);
        }
        loop {
            let (responses, was_idle) = (self.counts.responses, self.connections[number].is_idle());
            let received = self.connections[number].receive(self.load, buffer, &mut self.counts);
            match received {
                ReceiveResult::Nothing => return,
                ReceiveResult::Closing if !self.load.is_tool() && !self.is_last(number) => {
                    return self.fail(number, None, |it| &mut it.read_errors);
                }
                ReceiveResult::Bytes | ReceiveResult::Last | ReceiveResult::Closing => {}
                ReceiveResult::End(None) if was_idle && self.held.is_some() => return self.expire(number),
                ReceiveResult::End(error) => return self.fail(number, error, |it| &mut it.read_errors),
                ReceiveResult::Unexpected => return self.fail(number, None, |it| &mut it.status_errors),
                ReceiveResult::Malformed => return self.fail(number, None, |it| &mut it.malformed_errors),
            }
            let now = self.record_latency(number, self.counts.responses - responses);
            if matches!(received, ReceiveResult::Closing) {
                if self.connections[number].is_idle() {
                    self.queue_idle(number);
                }
                return if self.is_leaving() {
                    self.connections[number].close();
                } else {
                    self.reconnect(number);
                };
            }
            if !was_idle && self.connections[number].is_idle() {
                self.end_batch(number, now);
            }
            if matches!(received, ReceiveResult::Last) && !may_end {
                return;
            }
        }
    }

    /// Returns true if a connection has had as many responses as it should.
    fn is_last(&self, number: usize) -> bool {
        let limit = self.load.requests_per_connection;
        limit > 0 && self.connections[number].responses >= limit
    }

    /// Returns true if idle connections are to be closed: at the end, a server that ends them may serve no other before.
    fn is_leaving(&self) -> bool {
        self.load.requests_per_connection > 0 && self.active == 0 && self.is_ending()
    }

    fn queue_idle(&mut self, number: usize) {
        if self.load.pacing != Pacing::Closed && number < self.active {
            self.idle.push_back(number);
        }
    }

    /// Makes a connection ready for the next requests, or replaces it after its last; in a closed loop sends them.
    fn end_batch(&mut self, number: usize, now: Option<Instant>) {
        self.queue_idle(number);
        if self.is_leaving() {
            self.connections[number].close();
        } else if self.is_last(number) {
            self.reconnect(number);
        } else if self.load.pacing == Pacing::Closed && number < self.active {
            self.send(number, now);
        }
    }

    /// Counts a failed connection and replaces it. For the tool one that the server closes between two requests is no error.
    fn fail(&mut self, number: usize, errno: Option<Errno>, error: fn(&mut LoadCounts) -> &mut u64) {
        if let Some(errno) = errno.filter(|errno| CONNECT_ERRORS.contains(errno)) {
            self.counts.connect_errors += 1;
            self.connect_error = Some(errno.into());
        } else if !self.load.is_tool() || !self.connections[number].is_idle() {
            *error(&mut self.counts) += 1;
        }
        self.reconnect(number);
    }

    /// Replaces a connection; a held one is only closed.
    fn reconnect(&mut self, number: usize) {
        if self.held.is_some() {
            return self.retire(number);
        }
        let was_idle = self.connections[number].is_idle();
        let outstanding = self.connections[number].outstanding as usize;
        if let Some(since) = self.connections[number].since.take() {
            self.lost.extend(repeat_n(since, outstanding));
        }
        match self.connect_wire(number as u64, false) {
            Ok(wire) => self.connections[number].renew(wire),
            Err(error) => {
                self.counts.connect_errors += 1;
                return self.connect_error = Some(error);
            }
        }
        if !was_idle {
            self.queue_idle(number);
        }
    }
}
