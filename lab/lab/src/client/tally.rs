//! A client's counts, printed as one line of JSON by wrk's script and our own client.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Responses received whole.
    pub(crate) responses: u64,
    /// Bytes received, those of unfinished responses included.
    pub(crate) bytes: u64,
    pub(crate) duration_us: u64,
    pub(crate) connect_errors: u64,
    /// Receives that failed, and connections that ended early.
    pub(crate) read_errors: u64,
    pub(crate) write_errors: u64,
    pub(crate) timeouts: u64,
    /// Responses with another status, or more bytes than expected.
    pub(crate) status_errors: u64,
    /// Smallest receive buffer granted to a connection; 0 where none was requested.
    #[serde(rename = "receive_buffer_bytes_granted")]
    pub(crate) receive_buffer_bytes: u64,
    /// Requests sent; wrk doesn't count them.
    #[serde(default)]
    pub(crate) requests: u64,
    /// Longest time at a fixed rate that the client was busy without a look at the schedule.
    #[serde(default, rename = "client_longest_turn_us")]
    pub(crate) longest_turn_us: u64,
    #[serde(default)]
    pub(crate) downloaded_bytes: u64,
    #[serde(default)]
    pub(crate) least_downloaded_bytes: u64,
    #[serde(default)]
    pub(crate) latency: Option<Latency>,
}

/// Percentiles of the latencies, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) p999_us: u64,
    pub(crate) max_us: u64,
}

impl Latency {
    pub(super) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self { p50_us: at(0.5), p99_us: at(0.99), p999_us: at(0.999), max_us: histogram.max() }
    }
}

impl Tally {
    /// Returns the number of failures that are no response.
    pub(crate) fn socket_errors(&self) -> u64 {
        self.connect_errors + self.read_errors + self.write_errors + self.timeouts
    }

    /// Finds and parses the line in a client's output.
    pub(crate) fn parse(output: &str) -> Option<Self> {
        serde_json::from_str(output.lines().find(|line| line.starts_with('{'))?).ok()
    }

    pub(crate) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
