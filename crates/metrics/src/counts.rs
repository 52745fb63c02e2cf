//! A worker's counts. Its thread alone writes them and any thread reads: no lock and no locked instruction.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use shearwater::{ExchangeEnd, FinishedExchange};

use crate::histogram::Histogram;
use crate::limits::SITES_COUNTED_MAX;

/// A counter with a single writer, so that a load and a store suffice.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Methods that are counted by name; all others, which clients choose, are `other`.
pub(crate) const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "other"];

/// Classes of statuses; `none` is an exchange without a response.
pub(crate) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Indices of classes.
pub(crate) const CLASS_4XX: usize = 4;
pub(crate) const CLASS_5XX: usize = 5;

/// Ends of exchanges.
pub(crate) const ENDS: [ExchangeEnd; 7] = [
    ExchangeEnd::Complete,
    ExchangeEnd::Truncated,
    ExchangeEnd::Disconnected,
    ExchangeEnd::TimedOut,
    ExchangeEnd::Evicted,
    ExchangeEnd::Aborted,
    ExchangeEnd::Unknown,
];

/// Tags of sites: 0 is none, the last one all sites beyond the limit.
pub(crate) const TAGS: usize = SITES_COUNTED_MAX + 2;

/// Counts of a site.
#[derive(Debug, Default)]
pub(crate) struct SiteCounts {
    pub(crate) classes: [Counter; CLASSES.len()],
    pub(crate) bytes_sent: Counter,
}

/// Counts of a worker.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct WorkerCounts {
    pub(crate) requests: [[Counter; CLASSES.len()]; METHODS.len()],
    /// `501` and `505`, which clients cause. They are in `5xx` too.
    pub(crate) unsupported: Counter,
    pub(crate) duration: Histogram,
    pub(crate) first_byte: Histogram,
    pub(crate) ends: [Counter; ENDS.len()],
    pub(crate) sites: Box<[SiteCounts]>,
}

impl WorkerCounts {
    pub(crate) fn new() -> Self {
        Self {
            requests: Default::default(),
            unsupported: Counter::default(),
            duration: Histogram::default(),
            first_byte: Histogram::default(),
            ends: Default::default(),
            sites: (0..TAGS).map(|_| SiteCounts::default()).collect(),
        }
    }

    /// Counts an exchange.
    pub(crate) fn record(&self, exchange: &FinishedExchange<'_>) {
        let class = class(exchange.status());
        self.requests[method(exchange.method())][class].add(1);
        if let Some(501 | 505) = exchange.status() {
            self.unsupported.add(1);
        }
        self.duration.record(micros(exchange.duration()));
        if let Some(first_byte) = exchange.first_byte() {
            self.first_byte.record(micros(first_byte));
        }
        self.ends[end(exchange.end())].add(1);
        let site = &self.sites[usize::from(exchange.tag()).min(TAGS - 1)];
        site.classes[class].add(1);
        site.bytes_sent.add(exchange.bytes_sent());
    }
}

fn micros(duration: Duration) -> u64 {
    duration.as_secs().wrapping_mul(1_000_000) + u64::from(duration.subsec_micros())
}

/// Returns the index of a method in [`METHODS`].
fn method(method: &[u8]) -> usize {
    match method {
        b"GET" => 0,
        b"HEAD" => 1,
        b"POST" => 2,
        b"PUT" => 3,
        b"PATCH" => 4,
        b"DELETE" => 5,
        b"OPTIONS" => 6,
        b"CONNECT" => 7,
        b"TRACE" => 8,
        _ => METHODS.len() - 1,
    }
}

/// Returns the index of a status in [`CLASSES`].
fn class(status: Option<u16>) -> usize {
    status.map_or(0, |status| usize::from(status / 100).min(CLASSES.len() - 1))
}

/// Returns the index of an end in [`ENDS`].
fn end(end: ExchangeEnd) -> usize {
    match end {
        ExchangeEnd::Complete => 0,
        ExchangeEnd::Truncated => 1,
        ExchangeEnd::Disconnected => 2,
        ExchangeEnd::TimedOut => 3,
        ExchangeEnd::Evicted => 4,
        ExchangeEnd::Aborted => 5,
        _ => ENDS.len() - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, ENDS, METHODS, class, end, method};

    #[test]
    fn indices_are_those_of_the_names() {
        for (index, name) in METHODS.iter().enumerate() {
            assert_eq!(method(name.as_bytes()), index, "{name}");
        }
        for (name, other) in [(&b"get"[..], "other"), (b"", "other"), (b"GETGETGET", "other")] {
            assert_eq!(METHODS[method(name)], other);
        }
        for (status, name) in [(None, "none"), (Some(101), "1xx"), (Some(204), "2xx"), (Some(599), "5xx")] {
            assert_eq!(CLASSES[class(status)], name);
        }
        ENDS.into_iter().enumerate().for_each(|(index, of)| assert_eq!(end(of), index));
    }
}
