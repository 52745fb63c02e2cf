//! Connections that are held: opened at a rate, each with one request, and then idle but for a few requests, until the server's
//! timeout or the end of the orders. Such a client runs in a process of its own.

use std::collections::BTreeMap;
use std::io::{self, Error, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use serde::{Deserialize, Serialize};

use super::{Load, LoadClient, LoadConnection, ORDERS};

/// Wait while connections are to be opened. The kernel counts in milliseconds.
const OPENING_WAIT: Duration = Duration::from_millis(1);
/// Interval between two reports.
pub(crate) const REPORT_INTERVAL: Duration = Duration::from_millis(250);
/// Time for a response, and the interval of the search for late ones.
const RESPONSE_MAX: Duration = Duration::from_secs(10);
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// Failures after which no further connection is opened.
pub(crate) const FAILURES_MAX: u64 = 100;
/// Clients see the end of an idle connection this much early, if they saw its response late.
const EARLY_MS: u64 = 1_000;
/// Length of a run that its orders end.
const ENDLESS: Duration = Duration::from_secs(30 * 86_400);

/// The client's end of connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourcePorts {
    pub(crate) source: Ipv4Addr,
    /// One for each connection.
    pub(crate) ports: Range<u16>,
}

impl SourcePorts {
    pub(crate) fn connections(&self) -> u32 {
        u32::from(self.ports.end - self.ports.start)
    }
}

/// How connections are opened, and when the server closes them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeldConnections {
    pub(crate) share: SourcePorts,
    pub(crate) opened_per_s: u32,
    /// Connections without a response at which no other is opened.
    pub(crate) pending_max: u64,
    /// Time after which the server closes an idle connection.
    pub(crate) keep_alive_ms: u64,
}

/// Counts of one process, a line of its reports, or of all together.
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
    /// Each byte starts or stops the requests on idle connections; their end ends the client.
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
    reported: HeldCounts,
    last_report: Instant,
}

impl Holder<'_> {
    /// Returns the source address of a connection.
    pub(super) fn source(&self, number: u64) -> SocketAddr {
        let SourcePorts { source, ports } = &self.task.share;
        SocketAddr::from((*source, ports.start + number as u16))
    }
}

/// Opens and holds connections until the end of `orders`. The load has a rate, which holds while idle connections are asked, and
/// an expected response.
pub(crate) fn hold(
    load: &Load,
    task: &HeldConnections,
    orders: OwnedFd,
    reports: &mut dyn Write,
) -> io::Result<()> {
    let mut client = LoadClient::open(load, None)?;
    client.connections.reserve_exact(task.share.connections() as usize);
    epoll::add(&client.epoll, &orders, EventData::new_u64(ORDERS), EventFlags::IN)?;
    let now = Instant::now();
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
        next_search: now,
        reported: HeldCounts { unopened: task.share.connections().into(), ..HeldCounts::default() },
        last_report: now,
    });
    client.begin(ENDLESS)?;
    client.serve()
}

impl LoadClient<'_> {
    /// Opens what is due, gives up on late responses, and reports. Returns the time until it must be called again; nothing if no
    /// connections are held.
    pub(super) fn tend_held(&mut self) -> io::Result<Option<Duration>> {
        let Some(counts) = self.held_counts() else { return Ok(None) };
        let is_opening = self.open_due(counts);
        self.give_up_on_late_responses();
        self.report()?;
        Ok(Some(if is_opening { OPENING_WAIT } else { REPORT_INTERVAL }))
    }

    /// Opens connections that are due, with a request each; returns true if others will be.
    fn open_due(&mut self, mut counts: HeldCounts) -> bool {
        let Some(task) = self.held.as_ref().map(|held| held.task) else { return false };
        let due = (self.begin.elapsed().as_secs_f64() * f64::from(task.opened_per_s)) as usize;
        while counts.unopened > 0 && counts.pending < task.pending_max && self.connections.len() < due {
            if !self.open_next() {
                // Its port is not tried again.
                self.connections.push(LoadConnection::new(None, self.load, 0));
                self.held.iter_mut().for_each(|held| held.closed += 1);
            }
            (counts.unopened, counts.pending) = (counts.unopened - 1, counts.pending + 1);
        }
        counts.unopened > 0 && counts.pending < task.pending_max
    }

    /// Reads orders.
    pub(super) fn read_orders(&mut self) -> io::Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        let length = rustix::io::read(&held.orders, &mut [0; 64])?;
        held.is_over = length == 0;
        held.asks ^= length % 2 == 1;
        self.next_due = Instant::now();
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
        let failures: BTreeMap<_, _> = self.counts.errors(self.connect_error.as_ref()).collect();
        let has_failed = failures.values().sum::<u64>() >= FAILURES_MAX;
        let opened = self.connections.len() as u64;
        let pending = self.counts.requests - self.counts.responses - held.unanswered;
        Some(HeldCounts {
            unopened: if has_failed { 0 } else { u64::from(held.task.share.connections()) - opened },
            pending,
            held: opened - held.closed - pending,
            responses: self.counts.responses,
            slowest_ms: self.latencies[0].max() / 1_000_000,
            expired: held.expired,
            latest_expiry_ms: held.latest_expiry_ms,
            failures,
        })
    }

    /// Writes the counts when all responses have come, and from time to time where they changed.
    fn report(&mut self) -> io::Result<()> {
        let (Some(counts), Some(held)) = (self.held_counts(), &mut self.held) else { return Ok(()) };
        let has_settled = !held.asks && counts.is_settled() && !held.reported.is_settled();
        if has_settled || counts != held.reported && held.last_report.elapsed() >= REPORT_INTERVAL {
            let line = serde_json::to_string(&counts).map_err(Error::other)? + "\n";
            held.reports.write_all(line.as_bytes())?;
            held.reports.flush()?;
            (held.reported, held.last_report) = (counts, Instant::now());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
