//! Connections that are held: opened at a rate, each with one request, and then idle but for a few requests, until the server's
//! timeout or the end of the orders. Such a client runs in a process of its own, which responds to each order with its counts.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Error, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use serde::{Deserialize, Serialize};

use super::{Load, LoadClient, LoadConnection, ORDERS};

/// Orders to send requests on idle connections, to stop that, and to do nothing but count.
pub(crate) const START_ASKING: u8 = b'a';
pub(crate) const STOP_ASKING: u8 = b's';
pub(crate) const COUNT: u8 = b'c';
/// Wait while connections are to be opened. The kernel counts in milliseconds.
const OPENING_WAIT: Duration = Duration::from_millis(1);
/// Time for a response, and the interval of the search for late ones, which is the longest wait.
const RESPONSE_MAX: Duration = Duration::from_secs(10);
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// Failures after which no further connection is opened.
pub(crate) const FAILURES_MAX: u64 = 100;
/// Clients see the end of an idle connection this much early, if they saw its response late.
const EARLY_MS: u64 = 1_000;
/// Length of a run that its orders end.
const ENDLESS: Duration = Duration::from_secs(30 * 86_400);

/// How connections are opened, and when the server closes them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeldConnections {
    pub(crate) source: Ipv4Addr,
    /// One for each connection.
    pub(crate) ports: Range<u16>,
    pub(crate) opened_per_s: u32,
    /// Connections without a response at which no other is opened.
    pub(crate) pending_max: u64,
    /// Time after which the server closes an idle connection.
    pub(crate) keep_alive_ms: u64,
}

/// Counts of one process, a line of JSON for each order, or of all together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldCounts {
    /// Connections still to be opened.
    pub(crate) unopened: u64,
    /// Connections without a response, just opened or asked again.
    pub(crate) pending: u64,
    /// Connections that are open after their response.
    pub(crate) held: u64,
    pub(crate) responses: u64,
    /// Longest time to one, from the connect or the request.
    pub(crate) slowest_ms: u64,
    /// Idle connections that the server closed after its timeout.
    pub(crate) expired: u64,
    /// Longest delay of these after the timeout.
    pub(crate) latest_expiry_ms: u64,
    /// Failures by reason.
    pub(crate) failures: BTreeMap<String, u64>,
}

impl HeldCounts {
    pub(crate) fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Returns true if every connection was opened and no response is missing.
    pub(crate) fn is_settled(&self) -> bool {
        self.unopened == 0 && self.pending == 0
    }

    /// Adds another process's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.unopened += other.unopened;
        self.pending += other.pending;
        self.held += other.held;
        self.responses += other.responses;
        self.slowest_ms = self.slowest_ms.max(other.slowest_ms);
        self.expired += other.expired;
        self.latest_expiry_ms = self.latest_expiry_ms.max(other.latest_expiry_ms);
        for (reason, count) in &other.failures {
            *self.failures.entry(reason.clone()).or_default() += count;
        }
    }
}

/// The state of a client that holds connections.
pub(super) struct Holder<'a> {
    task: &'a HeldConnections,
    orders: OwnedFd,
    reports: &'a mut dyn Write,
    pub(super) asks: bool,
    pub(super) is_over: bool,
    /// Connections that are closed, and the requests that they had not responded to.
    closed: u64,
    unanswered: u64,
    expired: u64,
    latest_expiry_ms: u64,
    next_search: Instant,
}

impl Holder<'_> {
    /// Returns the source address of a connection.
    pub(super) fn source(&self, number: u64) -> SocketAddr {
        SocketAddr::from((self.task.source, self.task.ports.start + number as u16))
    }
}

/// Gives an order and returns the counts that come back.
pub(crate) fn order(
    order: u8,
    orders: &mut impl Write,
    reports: &mut impl BufRead,
) -> io::Result<HeldCounts> {
    let mut line = String::new();
    orders.write_all(&[order])?;
    reports.read_line(&mut line)?;
    serde_json::from_str(&line).map_err(|_| Error::other("it has ended"))
}

/// A client in a thread of its own; dropping it ends the connections.
pub(crate) struct HeldThread {
    orders: UnixStream,
    reports: BufReader<UnixStream>,
}

impl HeldThread {
    pub(crate) fn start(load: Load, task: HeldConnections) -> io::Result<Self> {
        let (orders, given) = UnixStream::pair()?;
        let (reports, mut written) = UnixStream::pair()?;
        thread::spawn(move || hold(&load, &task, given.into(), &mut written));
        Ok(Self { orders, reports: BufReader::new(reports) })
    }

    pub(crate) fn order(&mut self, it: u8) -> io::Result<HeldCounts> {
        order(it, &mut self.orders, &mut self.reports)
    }
}

/// Opens and holds connections until the end of `orders`. The load has a rate, which holds while idle connections are asked.
pub(crate) fn hold(
    load: &Load,
    task: &HeldConnections,
    orders: OwnedFd,
    reports: &mut dyn Write,
) -> io::Result<()> {
    let mut client = LoadClient::open(load, None)?;
    client.connections.reserve_exact(task.ports.len());
    epoll::add(&client.epoll, &orders, EventData::new_u64(ORDERS), EventFlags::IN)?;
    client.held = Some(Holder {
        task,
        orders,
        reports,
        asks: false,
        is_over: false,
        closed: 0,
        unanswered: 0,
        expired: 0,
        latest_expiry_ms: 0,
        next_search: Instant::now(),
    });
    client.begin(ENDLESS)?;
    client.serve()
}

impl LoadClient<'_> {
    /// Opens what is due, and gives up on late responses. Returns the time until it must be called again; nothing if no
    /// connections are held.
    pub(super) fn tend_held(&mut self) -> Option<Duration> {
        let task = self.held.as_ref()?.task;
        let due = (self.begin.elapsed().as_secs_f64() * f64::from(task.opened_per_s)) as usize;
        while self.unopened() > 0 && self.pending() < task.pending_max && self.connections.len() < due {
            if !self.open_next() {
                // Its port is not tried again.
                self.connections.push(LoadConnection::new(None, self.load, 0));
                self.held.iter_mut().for_each(|held| held.closed += 1);
            }
        }
        self.give_up_on_late_responses();
        let is_opening = self.unopened() > 0 && self.pending() < task.pending_max;
        Some(if is_opening { OPENING_WAIT } else { SEARCH_INTERVAL })
    }

    /// Returns the number of connections that are still to be opened.
    fn unopened(&self) -> u64 {
        let has_failed = self.counts.socket_errors() + self.counts.wrong_responses() >= FAILURES_MAX;
        let task = self.held.as_ref().filter(|_| !has_failed).map(|held| held.task);
        task.map_or(0, |task| (task.ports.len() - self.connections.len()) as u64)
    }

    /// Returns the number of connections that await a response.
    fn pending(&self) -> u64 {
        let unanswered = self.held.as_ref().map_or(0, |held| held.unanswered);
        self.counts.requests - self.counts.responses - unanswered
    }

    /// Carries out orders, a byte each, and responds with the counts. Their end ends the client.
    pub(super) fn take_orders(&mut self) -> io::Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        let mut orders = [0; 64];
        let length = rustix::io::read(&held.orders, &mut orders)?;
        held.is_over = length == 0;
        for order in &orders[..length] {
            let Some(counts) = self.held_counts() else { return Ok(()) };
            let Some(held) = &mut self.held else { return Ok(()) };
            match *order {
                START_ASKING => (held.asks, self.next_due) = (true, Instant::now()),
                STOP_ASKING => held.asks = false,
                _ => {}
            }
            let line = serde_json::to_string(&counts).map_err(Error::other)? + "\n";
            held.reports.write_all(line.as_bytes())?;
            held.reports.flush()?;
        }
        Ok(())
    }

    /// Closes a connection for good.
    pub(super) fn retire(&mut self, number: usize) {
        if let Some(held) = &mut self.held {
            held.closed += 1;
            held.unanswered += u64::from(self.connections[number].outstanding);
            self.connections[number].close();
        }
    }

    /// The server has closed an idle connection: on schedule, or too early.
    pub(super) fn expire(&mut self, number: usize) {
        let Some(held) = &mut self.held else { return };
        let idle_ms = self.connections[number].since.map_or(0, |since| since.elapsed().as_millis() as u64);
        if idle_ms + EARLY_MS < held.task.keep_alive_ms {
            self.counts.read_errors += 1;
        } else {
            held.expired += 1;
            held.latest_expiry_ms =
                held.latest_expiry_ms.max(idle_ms.saturating_sub(held.task.keep_alive_ms));
        }
        self.retire(number);
    }

    /// Closes connections whose response takes too long.
    fn give_up_on_late_responses(&mut self) {
        let now = Instant::now();
        let Some(held) = self.held.as_mut().filter(|held| now >= held.next_search) else { return };
        held.next_search = now + SEARCH_INTERVAL;
        for number in 0..self.connections.len() {
            let connection = &self.connections[number];
            let is_late =
                connection.since.is_some_and(|since| now.saturating_duration_since(since) > RESPONSE_MAX);
            if is_late && !connection.is_idle() {
                self.fail(number, None, |counts| &mut counts.timeouts);
            }
        }
    }

    fn held_counts(&self) -> Option<HeldCounts> {
        let held = self.held.as_ref()?;
        Some(HeldCounts {
            unopened: self.unopened(),
            pending: self.pending(),
            held: self.connections.len() as u64 - held.closed - self.pending(),
            responses: self.counts.responses,
            slowest_ms: self.latencies[0].max() / 1_000_000,
            expired: held.expired,
            latest_expiry_ms: held.latest_expiry_ms,
            failures: self.counts.errors(self.connect_error.as_ref()).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
