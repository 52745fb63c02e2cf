//! A client's task and its counts, which pass between processes as JSON.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::generated::GeneratedRequests;
use super::response::ExpectedResponse;
use super::ticks::Stage;
use super::wire::Handshakes;
use crate::file_set::FileSet;
use crate::load::{parse_duration, parse_stage};

/// A request and what its response must be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CheckedRequest {
    pub(crate) request: String,
    pub(crate) expected: ExpectedResponse,
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
    /// Encrypts connections, with such handshakes.
    pub(crate) tls: Option<Handshakes>,
    /// Sends requests in streams of HTTP/2, by prior knowledge or after ALPN.
    pub(crate) http2: bool,
    /// Target that each connection of HTTP/2 downloads all the time in a stream of its own.
    pub(crate) beside: Option<String>,
    pub(crate) millis: u64,
    /// Ends the run early after so many responses.
    pub(crate) responses_max: Option<u64>,
    pub(crate) connections: u32,
    /// Requests sent before their responses are awaited.
    pub(crate) depth: u32,
    /// Requests after which a connection is closed and another opened; 0 is never.
    pub(crate) requests_per_connection: u32,
    pub(crate) pacing: Pacing,
    pub(crate) receive_buffer_bytes: Option<u32>,
    /// Records the latency of each response.
    pub(crate) latencies: bool,
    /// Targets to download meanwhile, a connection each.
    pub(crate) downloads: Vec<String>,
    /// Replaces the headers by those of a browser, in an order and with a cookie of each connection's own.
    pub(crate) own_headers: bool,
    /// Sent in turn; each connection starts at another one.
    pub(crate) requests: Vec<CheckedRequest>,
    /// Requested in random order instead.
    pub(crate) files: Option<FileSet>,
    /// Percentage of requests for the first of them. If not zero, only their latencies are recorded.
    pub(crate) hot_percent: u32,
    /// Seed of the random order.
    pub(crate) seed: u64,
    /// Not passed between processes.
    #[serde(skip)]
    pub(crate) options: LoadOptions,
}

/// Options of `cargo lab load`, which no scenario has.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LoadOptions {
    /// Sent instead of the requests.
    #[arg(skip)]
    pub(crate) generated: Option<GeneratedRequests>,
    /// Latency from which a response counts as a timeout
    // A load that has one is the tool's: it doesn't await its last responses, and replaces connections that the server ends.
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Intervals between the requests of a rate
    #[arg(long, value_enum, default_value = "constant", requires = "rate")]
    pub(crate) arrivals: Arrivals,
    /// Linear changes of the number of connections, from 0: CONNECTIONS[:DURATION],…; at once without a duration
    #[arg(long, value_delimiter = ',', value_parser = parse_stage, conflicts_with_all = ["connections", "duration"])]
    pub(crate) stages: Vec<Stage>,
    /// Maximum speed at which each connection reads
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
    pub(crate) read_bytes_per_s: Option<u64>,
    /// Maximum speed at which each connection writes
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
    pub(crate) write_bytes_per_s: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arrivals {
    #[default]
    Constant,
    /// Exponentially distributed, as of many independent clients
    Poisson,
}

/// A client's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LoadCounts {
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
    /// Responses with another status, or bytes after the last one.
    pub(crate) status_errors: u64,
    /// Responses with the right status and a body of another length, or of other bytes.
    pub(crate) length_errors: u64,
    pub(crate) content_errors: u64,
    /// Responses that are not HTTP/1.1.
    pub(crate) malformed_errors: u64,
    /// Smallest receive buffer granted to a connection, where one was requested.
    pub(crate) receive_buffer_bytes_granted: Option<u64>,
    /// Requests sent.
    pub(crate) requests: u64,
    pub(crate) connections_opened: u64,
    pub(crate) full_handshakes: u64,
    pub(crate) resumed_handshakes: u64,
    /// Longest wait of a due request for the client itself, at a fixed rate.
    pub(crate) client_longest_turn_us: u64,
    /// Sum of such waits from 1 ms on.
    pub(crate) client_stalled_us: u64,
    pub(crate) downloaded_bytes: u64,
    /// Bytes of the download that got least.
    pub(crate) least_downloaded_bytes: u64,
    pub(crate) latency: Option<Latency>,
}

/// A run in detail.
#[derive(Debug)]
pub(crate) struct LoadOutcome {
    pub(crate) counts: LoadCounts,
    /// Latencies of each stage; one if there are none.
    pub(crate) latencies: Vec<Histogram<u64>>,
    /// Requests due at a fixed rate.
    pub(crate) due: u64,
    /// Responses before the end, and the time until the last look at them.
    pub(crate) responses_in_time: u64,
    pub(crate) in_time: Duration,
    /// The last failed connect.
    pub(crate) connect_error: Option<io::Error>,
}

/// Mean and percentiles of the latencies, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Latency {
    pub(crate) mean_ns: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p90_ns: u64,
    pub(crate) p95_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) p999_ns: u64,
    pub(crate) max_ns: u64,
}

impl Load {
    /// Returns true for a load of `cargo lab load`.
    pub(super) fn is_tool(&self) -> bool {
        self.options.timeout.is_some()
    }
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self {
            mean_ns: histogram.mean() as u64,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: histogram.max(),
        }
    }

    /// Returns the figures of a round, by name.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
            ("p50_ms", self.p50_ns),
            ("p95_ms", self.p95_ns),
            ("p99_ms", self.p99_ns),
            ("p999_ms", self.p999_ns),
            ("max_ms", self.max_ns),
        ];
        all.into_iter().map(|(name, ns)| (name, ns as f64 / 1e6))
    }
}

impl LoadCounts {
    /// Returns the number of failures that are no response.
    pub(crate) fn socket_errors(&self) -> u64 {
        self.connect_errors + self.read_errors + self.write_errors + self.timeouts
    }

    /// Returns the number of responses that are not as expected.
    pub(crate) fn wrong_responses(&self) -> u64 {
        self.status_errors + self.length_errors + self.content_errors + self.malformed_errors
    }

    /// Returns the share of requests without a right response in time, in per cent. A failed connect counts as a request.
    pub(crate) fn errors_percent(&self) -> f64 {
        let all = (self.requests + self.connect_errors).max(1);
        // A late response may be wrong too.
        let wrong = (self.socket_errors() + self.wrong_responses()).min(all);
        wrong as f64 / all as f64 * 100.0
    }

    /// Returns the kinds of errors that occurred, and the reason of the last failed connect.
    pub(crate) fn errors(&self, connect_error: Option<&io::Error>) -> impl Iterator<Item = (String, u64)> {
        let kinds = [
            ("failed connects", self.connect_errors),
            ("connections closed or reset too early", self.read_errors),
            ("failed writes", self.write_errors),
            ("timeouts", self.timeouts),
            ("responses with another status, or unexpected bytes", self.status_errors),
            ("responses of another length", self.length_errors),
            ("responses with another content", self.content_errors),
            ("malformed responses", self.malformed_errors),
        ];
        let named = move |(at, (kind, count)): (usize, (&str, u64))| {
            let reason =
                connect_error.filter(|_| at == 0).map_or_else(String::new, |error| format!(" ({error})"));
            (format!("{kind}{reason}"), count)
        };
        kinds.into_iter().enumerate().filter(|(_, (_, count))| *count > 0).map(named)
    }

    /// Finds and parses the line in a client's output.
    pub(crate) fn parse(output: &str) -> Option<Self> {
        serde_json::from_str(output.lines().find(|line| line.starts_with('{'))?).ok()
    }
}
