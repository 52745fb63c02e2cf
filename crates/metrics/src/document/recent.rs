//! The parts of the document about the last seconds and minutes: verdict, rates and history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Counts;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Not configured, or unknown.
    Off,
    /// Nothing unusual.
    #[default]
    Ok,
    /// Something that the operator may want to know, or trouble that has ended.
    Notice,
    /// The server or its clients suffer.
    Trouble,
}

/// The state of a server in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The worst level of the findings.
    pub level: Level,
    /// The worst finding, or that there is none.
    pub headline: String,
    /// The server's state and its requests per second.
    pub state: String,
    /// Findings of the last five minutes, the worst first.
    pub findings: Vec<Finding>,
    /// Number of further findings, beyond [`FINDINGS_MAX`](crate::limits::FINDINGS_MAX).
    pub findings_left_out: usize,
    /// Each thing that was checked, with its value of the last minute.
    pub checks: Vec<Check>,
}

/// Something that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// Severity.
    pub level: Level,
    /// Name of the check that it belongs to.
    pub check: String,
    /// A sentence.
    pub text: String,
    /// A remedy; `null` if the sentence has all.
    pub help: Option<String>,
    /// Time of its beginning within the history; `null` if unknown.
    pub since_unix_seconds: Option<u64>,
    /// Time of its end; `null` while it lasts.
    pub ended_unix_seconds: Option<u64>,
}

/// A thing that was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The worst level of its findings.
    pub level: Level,
    /// Its value.
    pub value: String,
}

/// Rates per second, and percentiles, of the last [seconds](Self::seconds).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rates {
    /// Length of that time: 5 s, less after the start.
    pub seconds: f64,
    /// Requests.
    pub requests: f64,
    /// Requests by the class of their status.
    pub by_class: BTreeMap<String, f64>,
    /// Bytes received.
    pub received: f64,
    /// Bytes sent.
    pub sent: f64,
    /// Connections accepted.
    pub accepted: f64,
    /// Connections closed.
    pub closed: f64,
    /// Completed TLS handshakes.
    pub handshakes: f64,
    /// Requests by HTTP/2.
    #[serde(default)]
    pub http2_requests: f64,
    /// The part of these handshakes that continued an earlier session; `null` without one.
    pub resumed_part: Option<f64>,
    /// Lines of the access log.
    pub log_lines: f64,
    /// The part of look-ups that found a file in memory; `null` without one.
    pub cache_hit_part: Option<f64>,
    /// CPU time per second.
    pub cpu: f64,
    /// Percentiles of the time from a request's first byte to the end of its exchange.
    pub duration: Percentiles,
    /// Percentiles of the time from a request's first byte to the response's.
    pub first_byte: Percentiles,
}

/// Percentiles; `null` without requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// Half of the durations are at most this.
    pub p50: Option<Percentile>,
    /// 90 %.
    pub p90: Option<Percentile>,
    /// 99 %.
    pub p99: Option<Percentile>,
}

/// A percentile, as far as a histogram tells: the truth is between the bounds of a bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Percentile {
    /// Linear interpolation in the bucket, in seconds.
    pub estimate: f64,
    /// Lower bound of the bucket, in seconds.
    pub low: f64,
    /// Upper bound in seconds; `null` for the last bucket.
    pub high: Option<f64>,
}

/// Counts of the last five minutes; those that are 0 are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recent {
    /// How often each limit was reached.
    pub limits_hit: Counts,
    /// Faults.
    pub faults: Counts,
}

/// A value for each second, the newest last; `null` if it is unknown.
pub type Column = Vec<Option<f64>>;

/// The last five minutes in columns of the same length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Columns {
    /// Requests per second.
    pub requests: Column,
    /// `4xx` per second.
    pub client_errors: Column,
    /// `5xx` without `501` and `505`, per second.
    pub server_errors: Column,
    /// Bytes sent per second.
    pub sent: Column,
    /// Bytes received per second.
    pub received: Column,
    /// Open connections.
    pub open: Column,
    /// Median of the duration of requests, in seconds.
    pub p50: Column,
    /// 99th percentile of the duration of requests, in seconds.
    pub p99: Column,
}
