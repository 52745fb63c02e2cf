//! A client process: one thread and one event loop that holds thousands of connections, opens them at a rate, and verifies
//! each response. It ends with its parent, whose orders are its standard input.

use std::collections::VecDeque;
use std::io::{self, Error, Write};
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{Domain, Protocol, Socket, Type};

use super::protocol::{Counts, Order, Task};

/// Events per wait.
const EVENTS_MAX: usize = 256;
/// Bytes per receive.
const RECEIVE_BYTES: usize = 16 * 1024;
/// Wait while work is due or responses are missing. The kernel counts in milliseconds.
const WAIT_MIN: Duration = Duration::from_millis(1);
const WAIT_MAX: Duration = Duration::from_millis(50);
/// Interval between two reports of one order.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);
/// Time for a response, from the connect or the request.
const RESPONSE_MS_MAX: u32 = 10_000;
/// Failures after which no further connection is opened.
const FAILURES_MAX: u64 = 100;
/// Clients see the end of an idle connection this much early, if they saw its response late.
const EARLY_MS: u32 = 1_000;
/// Attempts to find an idle connection by chance.
const PICKS_MAX: u32 = 8;
/// Events of a connection whose end has come.
const ENDED: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);
/// Event data of standard input; connections have their numbers.
const ORDERS: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Waiting,
    Idle,
    /// Not opened yet, failed, expired or closed.
    Closed,
}

struct Connection {
    socket: Option<Socket>,
    state: State,
    /// Bytes of the response so far.
    received: u32,
    /// When its last request began or its last response ended, in milliseconds since the start.
    since_ms: u32,
}

/// An order being carried out.
#[derive(Clone, Copy)]
struct Work {
    order: Order,
    begun: Instant,
    /// Connections opened or requests sent for it.
    done: u32,
}

struct Holder<W> {
    task: Task,
    epoll: OwnedFd,
    orders: OwnedFd,
    reports: W,
    connections: Vec<Connection>,
    /// Connections whose responses are missing, the oldest first; also some that have theirs.
    pending: VecDeque<u32>,
    /// Responses that are missing.
    missing: u32,
    work: Option<Work>,
    /// An order that has arrived in part.
    line: Vec<u8>,
    counts: Counts,
    reported: Counts,
    last_report: Instant,
    started: Instant,
    random: fastrand::Rng,
    buffer: Vec<u8>,
}

/// Runs a task until standard input ends.
pub(crate) fn run(task: &str) -> Result<(), String> {
    let task = serde_json::from_str(task).map_err(|error| format!("task: {error}"))?;
    testkit::process::raise_descriptor_limit();
    let orders = io::stdin().as_fd().try_clone_to_owned();
    let run = orders.and_then(|orders| Holder::new(task, orders, io::stdout())).and_then(Holder::run);
    run.map_err(|error| format!("client process: {error}"))
}

/// Returns how many of a rate are due after a time.
fn due(per_second: u32, elapsed: Duration) -> u32 {
    (elapsed.as_secs_f64() * f64::from(per_second)) as u32
}

/// Returns the time until one more than `done` is due.
fn until_due(per_second: u32, done: u32, elapsed: Duration) -> Duration {
    (Duration::from_secs(1) * (done + 1) / per_second.max(1)).saturating_sub(elapsed)
}

impl<W: Write> Holder<W> {
    fn new(task: Task, orders: OwnedFd, reports: W) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &orders, EventData::new_u64(ORDERS), EventFlags::IN)?;
        let now = Instant::now();
        let seed = task.share.source.to_bits().into();
        Ok(Self {
            connections: Vec::with_capacity(task.share.connections() as usize),
            task,
            epoll,
            orders,
            reports,
            pending: VecDeque::new(),
            missing: 0,
            work: None,
            line: Vec::new(),
            counts: Counts::default(),
            reported: Counts::default(),
            last_report: now,
            started: now,
            random: fastrand::Rng::with_seed(seed),
            buffer: vec![0; RECEIVE_BYTES],
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let until_due = self.advance();
            self.give_up_on_late_responses();
            self.report()?;
            let is_quiet = self.work.is_none() && self.missing == 0 && self.counts == self.reported;
            self.wait(&mut events, (!is_quiet).then_some(until_due))?;
            for event in &events {
                match event.data.u64() {
                    ORDERS if !self.read_orders()? => return Ok(()),
                    ORDERS => {}
                    number => self.ready(number as usize, event.flags),
                }
            }
        }
    }

    /// Waits for events; forever without a maximum.
    fn wait(&self, events: &mut Vec<Event>, most: Option<Duration>) -> io::Result<()> {
        events.clear();
        events.reserve(EVENTS_MAX);
        let timeout = most.map(|most| Timespec::try_from(most.clamp(WAIT_MIN, WAIT_MAX))).transpose();
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.map_err(Error::other)?.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads orders; returns false at their end.
    fn read_orders(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 1_024];
        let length = rustix::io::read(&self.orders, &mut buffer)?;
        self.line.extend_from_slice(&buffer[..length]);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let order = serde_json::from_slice(&line).map_err(Error::other)?;
            self.work = Some(Work { order, begun: Instant::now(), done: 0 });
        }
        Ok(length > 0)
    }

    /// Does what is due of the order, and returns the time until more of it is.
    fn advance(&mut self) -> Duration {
        let Some(mut work) = self.work else { return WAIT_MAX };
        let elapsed = work.begun.elapsed();
        let (is_done, until_due) = match work.order {
            Order::Open { per_second, pending_max } => {
                let all = self.task.share.connections();
                while work.done < due(per_second, elapsed).min(all) && self.missing < pending_max {
                    self.open(work.done);
                    work.done += 1;
                }
                if self.counts.failed() >= FAILURES_MAX {
                    work.done = all;
                }
                let has_room = work.done < all && self.missing < pending_max;
                let until_due = if has_room { until_due(per_second, work.done, elapsed) } else { WAIT_MAX };
                (work.done >= all && self.missing == 0, until_due)
            }
            Order::Ask { per_second, millis } => {
                let left = Duration::from_millis(millis.into()).saturating_sub(elapsed);
                while !left.is_zero() && work.done < due(per_second, elapsed) {
                    self.ask();
                    work.done += 1;
                }
                let until_due =
                    if left.is_zero() { WAIT_MAX } else { until_due(per_second, work.done, elapsed) };
                (left.is_zero() && self.missing == 0, until_due.min(left))
            }
            Order::Close => {
                self.connections.clear();
                self.pending.clear();
                (self.missing, self.counts.held) = (0, 0);
                (true, WAIT_MAX)
            }
        };
        self.work = (!is_done).then_some(work);
        self.counts.done += u32::from(is_done);
        until_due
    }

    /// Starts to connect the connection of this number.
    fn open(&mut self, number: u32) {
        let mut connection =
            Connection { socket: None, state: State::Closed, received: 0, since_ms: self.now_ms() };
        match self.connect(number) {
            Ok(socket) => {
                connection.socket = Some(socket);
                connection.state = State::Connecting;
                self.pending.push_back(number);
                self.missing += 1;
            }
            Err((step, error)) => self.fail(step, &error),
        }
        self.connections.push(connection);
    }

    fn connect(&self, number: u32) -> Result<Socket, (&'static str, Error)> {
        let step = |step: &'static str| move |error: Error| (step, error);
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::IPV4, kind, Some(Protocol::TCP)).map_err(step("socket"))?;
        // An earlier run's connection may still wait for the end of TIME_WAIT.
        socket.set_reuse_address(true).map_err(step("socket"))?;
        let port = self.task.share.ports.start + number as u16;
        let source = SocketAddr::from((self.task.share.source, port));
        socket.bind(&source.into()).map_err(step("bind"))?;
        match socket.connect(&self.task.server.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => {
                return Err(("connect", error));
            }
            _ => {}
        }
        socket.set_tcp_nodelay(true).map_err(step("socket"))?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64(number.into());
        epoll::add(&self.epoll, &socket, data, flags).map_err(|error| ("epoll", error.into()))?;
        Ok(socket)
    }

    /// Sends a request on an idle connection, chosen at random.
    fn ask(&mut self) {
        let count = self.connections.len();
        let idle = (0..PICKS_MAX.min(count as u32))
            .map(|_| self.random.usize(..count))
            .find(|number| self.connections[*number].state == State::Idle);
        let Some(number) = idle else { return };
        self.connections[number].since_ms = self.now_ms();
        self.pending.push_back(number as u32);
        self.missing += 1;
        self.counts.held -= 1;
        self.send(number);
    }

    /// Sends the request whole: it is shorter than any socket's buffer.
    fn send(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        let Some(socket) = &connection.socket else { return };
        match send(socket, self.task.request.as_bytes(), SendFlags::NOSIGNAL) {
            Ok(length) if length == self.task.request.len() => connection.state = State::Waiting,
            // Not connected yet.
            Err(Errno::AGAIN) if connection.state == State::Connecting => {}
            Ok(_) => self.end(number, "send", &Error::other("cut")),
            Err(error) if connection.state == State::Connecting => self.end(number, "connect", &error.into()),
            Err(error) => self.end(number, "send", &error.into()),
        }
    }

    fn ready(&mut self, number: usize, flags: EventFlags) {
        if self.connections.get(number).is_some_and(|connection| connection.state == State::Connecting) {
            self.send(number);
        }
        if !flags.intersects(EventFlags::IN | ENDED) {
            return;
        }
        let mut buffer = mem::take(&mut self.buffer);
        while let Some(Connection { socket: Some(socket), .. }) = self.connections.get(number) {
            match recv(socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => self.closed(number),
                Ok((length, _)) => {
                    self.received(number, &buffer[..length]);
                    // A short read empties the socket, unless its end comes with it.
                    if length < buffer.len() && !flags.intersects(ENDED) {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(error) => self.end(number, "receive", &error.into()),
            }
        }
        self.buffer = buffer;
    }

    fn received(&mut self, number: usize, piece: &[u8]) {
        let now_ms = self.now_ms();
        let connection = &mut self.connections[number];
        let start = connection.received as usize;
        if connection.state != State::Waiting {
            return self.end(number, "receive", &Error::other("bytes that nothing was asked for"));
        }
        if !self.task.expected.matches(start, piece) {
            return self.end(number, "receive", &Error::other("a wrong response"));
        }
        connection.received += piece.len() as u32;
        if connection.received as usize == self.task.expected.length() {
            let took_ms = now_ms - connection.since_ms;
            (connection.state, connection.received, connection.since_ms) = (State::Idle, 0, now_ms);
            self.missing -= 1;
            self.counts.held += 1;
            self.counts.responses += 1;
            self.counts.slowest_ms = self.counts.slowest_ms.max(took_ms);
        }
    }

    /// The server has closed a connection: on schedule, or a failure.
    fn closed(&mut self, number: usize) {
        let (now_ms, timeout_ms) = (self.now_ms(), self.task.keep_alive_ms);
        let connection = &mut self.connections[number];
        let idle_ms = now_ms - connection.since_ms;
        if connection.state != State::Idle {
            self.end(number, "receive", &Error::other("closed before the response"));
        } else if idle_ms + EARLY_MS < timeout_ms {
            self.end(number, "receive", &Error::other("closed while idle"));
        } else {
            (connection.socket, connection.state) = (None, State::Closed);
            self.counts.held -= 1;
            self.counts.expired += 1;
            self.counts.latest_expiry_ms =
                self.counts.latest_expiry_ms.max(idle_ms.saturating_sub(timeout_ms));
        }
    }

    /// Ends a connection that has failed.
    fn end(&mut self, number: usize, step: &str, error: &Error) {
        let connection = &mut self.connections[number];
        match connection.state {
            State::Idle => self.counts.held -= 1,
            State::Connecting | State::Waiting => self.missing -= 1,
            State::Closed => {}
        }
        (connection.socket, connection.state) = (None, State::Closed);
        self.fail(step, error);
    }

    fn fail(&mut self, step: &str, error: &Error) {
        *self.counts.failures.entry(format!("{step}: {error}")).or_default() += 1;
    }

    /// Ends connections whose response takes too long.
    fn give_up_on_late_responses(&mut self) {
        let now_ms = self.now_ms();
        while let Some(&number) = self.pending.front() {
            let number = number as usize;
            let Connection { state, since_ms, .. } = self.connections[number];
            if matches!(state, State::Connecting | State::Waiting) {
                if now_ms - since_ms < RESPONSE_MS_MAX {
                    return;
                }
                let step = if state == State::Connecting { "connect" } else { "receive" };
                self.end(number, step, &Error::other("nothing for 10 s"));
            }
            self.pending.pop_front();
        }
    }

    /// Writes the counts after an order, and from time to time where they changed.
    fn report(&mut self) -> io::Result<()> {
        let is_done = self.counts.done > self.reported.done;
        if is_done || self.counts != self.reported && self.last_report.elapsed() >= REPORT_INTERVAL {
            let mut line = serde_json::to_vec(&self.counts).map_err(Error::other)?;
            line.push(b'\n');
            self.reports.write_all(&line)?;
            self.reports.flush()?;
            self.reported.clone_from(&self.counts);
            self.last_report = Instant::now();
        }
        Ok(())
    }

    fn now_ms(&self) -> u32 {
        self.started.elapsed().as_millis() as u32
    }
}

#[cfg(test)]
mod tests;
