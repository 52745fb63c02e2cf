//! The document of `/status.json`, schema 1. Members may be added; their meaning never changes.
//!
//! All counts are since the start: a reader computes rates from two documents. Unknown counts are absent, never 0.

mod protocols;
mod recent;

use std::collections::BTreeMap;

pub use protocols::{Certificate, Http2, Tls};
pub use recent::{Check, Column, Columns, Finding, Level, Percentile, Percentiles, Rates, Recent, Verdict};
use serde::{Deserialize, Serialize};
use shearwater::engine::visible::OneLine;

use crate::counts::{CLASSES, ENDS, METHODS};
use crate::families::states;
use crate::histogram::HistogramValues;
use crate::metrics::CompressionCounts;
use crate::snapshot::{ServerFigures, SiteFigures, Snapshot};
use crate::verdict::FAULTS;

/// The schema's number.
pub const SCHEMA: u32 = 1;

/// Counts by name.
pub type Counts = BTreeMap<String, u64>;

/// The status of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// 1.
    pub schema: u32,
    /// The server.
    pub server: Server,
    /// Its configuration.
    pub configuration: Configuration,
    /// Requests.
    pub requests: Requests,
    /// Time from a request's first byte to the end of its exchange.
    pub duration_seconds: Histogram,
    /// Time from a request's first byte to the response's.
    pub first_byte_seconds: Histogram,
    /// Exchanges by their end: `complete` or why not.
    pub ends: Counts,
    /// Bytes on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// How often each limit was reached, with the names of `docs/limits.md`.
    #[serde(default)]
    pub limits_hit: Vec<LimitHits>,
    /// Faults of handlers, files and the end of a drain.
    #[serde(default)]
    pub faults: Counts,
    /// The file cache.
    pub cache: Option<Cache>,
    /// The compression of files on the fly.
    #[serde(default)]
    pub compression: Option<CompressionCounts>,
    /// The access log.
    pub log: Option<Log>,
    /// Sites.
    #[serde(default)]
    pub sites: Vec<Site>,
    /// TLS; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// HTTP/2; absent before the first connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2>,
    /// The process.
    pub process: Process,
    /// The last messages to the operator, the newest last.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// The state of the server in words.
    #[serde(default)]
    pub verdict: Verdict,
    /// Rates of the last seconds; absent in the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// Counts of the last five minutes.
    #[serde(default)]
    pub recent: Recent,
    /// The last five minutes, second by second.
    #[serde(default)]
    pub history: Columns,
}

/// A server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Server {
    /// Version of the program.
    pub version: String,
    /// Number of the process.
    pub pid: u32,
    /// `epoll`, `kqueue` or `io_uring`; absent before the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Worker threads; absent before the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
    /// `starting`, `serving` or `draining`.
    pub state: String,
    /// Time of the start, in seconds since 1970.
    pub started_unix_seconds: u64,
    /// Time since then.
    pub uptime_seconds: f64,
    /// Addresses, `unix:` before paths.
    pub listen: Vec<String>,
}

/// A configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Configuration {
    /// The file; `null` without one.
    pub file: Option<String>,
    /// Reloads that took effect.
    pub reloads: u64,
    /// Reloads that were refused.
    pub reloads_refused: u64,
    /// Time of the last one that took effect.
    pub last_reload_unix_seconds: Option<u64>,
    /// The last one, whether or not it took effect; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<ReloadOutcome>,
}

/// The outcome of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReloadOutcome {
    /// Its time, in seconds since 1970.
    pub unix_seconds: u64,
    /// Lines with its errors and their places; `null` if it took effect.
    pub errors: Option<String>,
}

/// Requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Requests {
    /// All of them.
    pub total: u64,
    /// By the class of their status; `none` without a response.
    pub by_class: Counts,
    /// `501` and `505`, which clients cause. They are in `5xx` too.
    #[serde(default)]
    pub unsupported: u64,
    /// By method; `other` for unknown ones.
    pub by_method: Counts,
}

/// A histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Histogram {
    /// Number of durations.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Numbers of durations up to each bound.
    pub buckets: Vec<Bucket>,
}

/// A bucket of a histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bucket {
    /// Inclusive upper bound; `null` is infinity.
    pub le: Option<f64>,
    /// Number of durations up to it.
    pub count: u64,
}

/// Bytes on the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bytes {
    /// Received.
    pub received: u64,
    /// Sent: accepted by the kernel.
    pub sent: u64,
}

/// Connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Connections {
    /// Open now.
    pub open: u64,
    /// Accepted.
    pub accepted: u64,
    /// Closed.
    pub closed: u64,
    /// Reset at once because their address held too many.
    pub refused: u64,
    /// Reset by the server.
    pub reset: u64,
    /// Broken by the client or the network.
    pub broken: u64,
    /// Upgraded to another protocol.
    pub upgraded: u64,
    /// Open connections in states that are known: `unfinished` (request), `sending` (a response), `upgraded`. A connection
    /// may be in the first two; idle ones are in none.
    #[serde(default)]
    pub by_state: Counts,
}

/// How often a limit was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitHits {
    /// Its name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// A file cache, all workers together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cache {
    /// Files in memory now.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Look-ups that found a file in memory.
    pub hits: u64,
    /// Look-ups that didn't.
    pub misses: u64,
}

/// An access log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Log {
    /// Its destination.
    pub destination: String,
    /// Lines written.
    pub written: u64,
    /// Lines dropped.
    pub dropped: u64,
    /// The destination can't be written to now: lines wait.
    #[serde(default)]
    pub failing: bool,
}

/// A site.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Site {
    /// Its first host; `(default)` without one, and `(other)` for sites beyond the limit.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Requests by the class of their status.
    pub by_class: Counts,
    /// Bytes of responses sent.
    pub bytes_sent: u64,
    /// Requests per second, as in [`Rates`]; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// Bytes sent per second, as in [`Rates`]; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_per_second: Option<f64>,
}

/// A process. Figures that the system doesn't report are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Process {
    /// Resident memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    /// CPU time of all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Open descriptors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_descriptors: Option<u64>,
    /// Limit of descriptors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors_max: Option<u64>,
}

/// A message to the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Its time, in seconds since 1970.
    pub unix_seconds: u64,
    /// `error`, `warning` or `info`.
    pub level: String,
    /// The text.
    pub text: String,
}

/// Pairs names with counts.
fn named<'a>(names: impl IntoIterator<Item = &'a str>, counts: impl IntoIterator<Item = u64>) -> Counts {
    names.into_iter().map(ToOwned::to_owned).zip(counts).collect()
}

impl From<&HistogramValues> for Histogram {
    fn from(values: &HistogramValues) -> Self {
        let buckets = values.cumulative().map(|(le, count)| Bucket { le, count }).collect();
        Self { count: values.count(), sum: values.sum_seconds(), buckets }
    }
}

impl From<&SiteFigures> for Site {
    fn from(site: &SiteFigures) -> Self {
        Self {
            name: site.name.clone(),
            requests: site.classes.iter().sum(),
            by_class: named(CLASSES, site.classes),
            bytes_sent: site.bytes_sent,
            ..Self::default()
        }
    }
}

impl From<&Snapshot> for Status {
    fn from(snapshot: &Snapshot) -> Self {
        let of_class = |class| snapshot.of_class(class);
        let by_method = snapshot.requests.iter().map(|classes| classes.iter().sum());
        let configuration = &snapshot.configuration;
        let process = &snapshot.process;
        let mut status = Self {
            schema: SCHEMA,
            server: server(snapshot),
            configuration: Configuration {
                file: configuration.file.clone(),
                reloads: configuration.reloads,
                reloads_refused: configuration.reloads_refused,
                last_reload_unix_seconds: configuration.last_reload,
                last_outcome: configuration.last_outcome.clone(),
            },
            requests: Requests {
                total: snapshot.requests_total(),
                unsupported: snapshot.unsupported,
                by_class: named(CLASSES, (0..CLASSES.len()).map(of_class)),
                by_method: named(METHODS, by_method),
            },
            duration_seconds: (&snapshot.duration).into(),
            first_byte_seconds: (&snapshot.first_byte).into(),
            ends: named(ENDS.map(|end| end.name()), snapshot.ends),
            cache: snapshot.cache.map(|cache| Cache {
                files: cache.files,
                bytes: cache.bytes,
                hits: cache.hits,
                misses: cache.misses,
            }),
            compression: snapshot.compression,
            log: snapshot.log.as_ref().map(|log| Log {
                destination: log.destination.clone(),
                written: log.written,
                dropped: log.dropped,
                failing: log.is_failing,
            }),
            sites: snapshot.sites.iter().map(Into::into).collect(),
            process: Process {
                resident_bytes: process.resident_bytes,
                cpu_seconds: Some(process.cpu_seconds),
                open_descriptors: process.open_descriptors,
                descriptors_max: process.descriptors_max,
            },
            ..Self::default()
        };
        if let Some(figures) = &snapshot.server {
            status.add_server(figures);
            status.tls = figures.has_tls.then(|| protocols::tls(snapshot, figures));
            status.http2 = (figures.totals.http2_connections > 0).then(|| protocols::http2(&figures.totals));
        }
        status
    }
}

fn server(snapshot: &Snapshot) -> Server {
    let figures = snapshot.server.as_ref();
    Server {
        version: snapshot.version.clone(),
        pid: std::process::id(),
        driver: figures.map(|server| server.driver.to_owned()),
        workers: figures.map(|server| server.workers),
        state: snapshot.readiness.name().to_owned(),
        started_unix_seconds: snapshot.started_unix_seconds,
        uptime_seconds: snapshot.uptime_seconds,
        listen: figures.map(|server| server.listen.clone()).unwrap_or_default(),
    }
}

impl Status {
    fn add_server(&mut self, figures: &ServerFigures) {
        let totals = &figures.totals;
        self.bytes = Some(Bytes { received: totals.bytes_received, sent: totals.bytes_sent });
        self.connections = Some(Connections {
            open: totals.connections_open(),
            accepted: totals.connections_accepted,
            closed: totals.connections_closed,
            refused: totals.connections_refused,
            reset: totals.connections_reset,
            broken: totals.connections_broken,
            upgraded: totals.connections_upgraded,
            by_state: states(totals).into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        });
        let limits = totals.limits();
        self.limits_hit = limits.map(|(name, count)| LimitHits { name: name.to_owned(), count }).collect();
        self.faults = FAULTS.iter().map(|(name, count, ..)| ((*name).to_owned(), count(totals))).collect();
        let messages = figures.messages.iter();
        self.messages = messages
            .map(|message| Message {
                unix_seconds: message.unix_seconds,
                level: message.level.name().to_owned(),
                text: OneLine(&message.text).to_string(),
            })
            .collect();
    }
}
