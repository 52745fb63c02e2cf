//! `cargo lab load`: the lab's client as a tool. It probes the server, runs one load, compares every response, and fails the run
//! if one was wrong or the rate was not kept.

mod report;
mod target;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{Args, value_parser};
use http::Uri;
use sha2::{Digest, Sha256};
use testkit::Response;

use crate::bench::exchange;
use crate::client::{
    self, CheckedRequest, ExpectedResponse, GeneratedRequests, Load, LoadCounts, LoadOptions, LoadOutcome,
    Pacing,
};
use crate::connections::ProgressLine;
use crate::file_set::FileContent;
use crate::print;
use report::LoadSummary;
use target::{addresses, authority, parse_header, parse_lengths, parse_url, path};

pub(crate) use target::{parse_duration, parse_stage};

const HELP: &str = "\
Examples:
  cargo lab load http://127.0.0.1:8080/ -c 64 -d 10s                        as fast as it gets
  cargo lab load http://127.0.0.1:8080/ --rate 20000 --arrivals poisson       at a rate; exits with 1 if it was not kept
  cargo lab load http://127.0.0.1:8080/ --requests-per-connection 10        connections that end
  cargo lab load http://127.0.0.1:8080/ --stages 100,100:10s,1000:30s,0:5s  100 for 10 s, then to 1,000 and back
  cargo lab load http://127.0.0.1:8080/ --header-bytes 10000-60000          a fresh X-Large-Header in each request
  cargo lab load http://127.0.0.1:8080/ --body-bytes 1000-9000              POST with bodies of random lengths
  cargo lab load http://127.0.0.1:8080/1m.bin --read-bytes-per-s 64000      slow readers

At a rate a latency counts from when its request was due, so that a stalled server can't hide by stalling the client too.
Exit status: 0 passed; 1 a wrong response, a socket error, or a rate that was not kept; 2 wrong usage.";

/// Descriptors that are no connections.
const OTHER_DESCRIPTORS: u64 = 32;
/// Receive buffers of slow readers: a larger one would read ahead of them.
const SLOW_BUFFER_BYTES: RangeInclusive<u64> = 4_096..=1 << 20;

/// A load on one URL.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct LoadArgs {
    /// http://HOST[:PORT][/PATH][?QUERY]
    #[arg(value_parser = parse_url)]
    url: Uri,
    /// Connections
    #[arg(short, long, default_value_t = 64, value_parser = value_parser!(u32).range(1..=4_000_000))]
    connections: u32,
    /// Time for which requests are sent, such as 10s, 500ms or 2m
    #[arg(short, long, default_value = "10s", value_parser = parse_duration)]
    duration: Duration,
    /// Requests a second over all connections [default: each connection sends as soon as it has its responses]
    #[arg(short, long, value_parser = value_parser!(u32).range(1..=10_000_000))]
    rate: Option<u32>,
    /// Requests sent on a connection before their responses are awaited
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=1_000))]
    pipeline: u32,
    /// Requests after which a connection is closed and replaced; 0 is never
    #[arg(long, default_value_t = 0)]
    requests_per_connection: u32,
    #[command(flatten)]
    options: LoadOptions,
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', long)]
    method: Option<String>,
    /// Header of each request, `Name: value`; repeatable
    #[arg(short = 'H', long = "header", value_parser = parse_header)]
    headers: Vec<String>,
    /// Sends a header X-Large-Header with a fresh random value of MIN-MAX bytes
    #[arg(long, value_name = "MIN-MAX", value_parser = parse_lengths)]
    header_bytes: Option<RangeInclusive<u64>>,
    /// Percentage of requests with that header
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(0..=100), requires = "header_bytes")]
    header_percent: u32,
    /// Sends a random body of MIN-MAX bytes
    #[arg(long, value_name = "MIN-MAX", value_parser = parse_lengths)]
    body_bytes: Option<RangeInclusive<u64>>,
    /// Seed of all lengths, contents and intervals
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// Status that every response must have
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u16).range(200..=599))]
    expect_status: u16,
    /// Length that every response's body must have [default: that of the first response]
    #[arg(long, value_name = "BYTES")]
    expect_bytes: Option<u64>,
    /// Accepts bodies of different lengths
    #[arg(long, conflicts_with_all = ["expect_bytes", "expect_sha256"])]
    any_length: bool,
    /// SHA-256 that every response's body must have; each is compared byte by byte with one that has it
    #[arg(long, value_name = "SHA-256", value_parser = parse_sha)]
    expect_sha256: Option<String>,
    /// Print the results as JSON, with the histogram of latencies
    #[arg(long)]
    json: bool,
}

fn parse_sha(text: &str) -> Result<String, String> {
    let is_valid = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_valid { Ok(text.to_lowercase()) } else { Err("expected 64 hexadecimal digits".to_owned()) }
}

/// Runs a load and prints its summary; returns false if it failed.
pub(crate) fn run(args: &LoadArgs) -> Result<bool, String> {
    args.check(testkit::process::raise_descriptor_limit())?;
    let (load, outcome, cpu_ns) =
        match args.probe().and_then(|(address, expected)| args.measure(address, expected)) {
            Ok(measured) => measured,
            Err(error) => {
                eprintln!("error: {error}");
                return Ok(false);
            }
        };
    let summary = LoadSummary::of(args, &load, &outcome, cpu_ns);
    print(&if args.json { format!("{:#}\n", summary.json()) } else { summary.text() })?;
    let failures = summary.failures();
    failures.iter().for_each(|failure| eprintln!("error: {failure}"));
    Ok(failures.is_empty())
}

impl LoadArgs {
    /// Refuses options that contradict each other, or need more than the machine has.
    fn check(&self, descriptors: u64) -> Result<(), String> {
        let (connections, pipeline, method) = (self.connections_max(), self.pipeline, self.method());
        let needed = u64::from(connections) + OTHER_DESCRIPTORS;
        let error = if !self.requests_per_connection.is_multiple_of(pipeline) {
            format!("--requests-per-connection must be a multiple of --pipeline\nhelp: {}", pipeline * 10)
        } else if pipeline > 1 && self.body_bytes.is_some() {
            "requests with bodies can't be pipelined\nhelp: leave out --pipeline or --body-bytes".to_owned()
        } else if self.total().is_zero() {
            "the load has no duration\nhelp: --duration 10s, or --stages 100:10s".to_owned()
        } else if http::Method::from_bytes(method.as_bytes()).is_err() || method == "CONNECT" {
            format!("`{method}` is no method\nhelp: GET, HEAD, POST, PUT, DELETE, …")
        } else if needed > descriptors {
            format!(
                "{connections} connections take {needed} descriptors, but this process may have {descriptors}\n\
                 help: ulimit -n {needed}"
            )
        } else {
            return Ok(());
        };
        Err(error)
    }

    fn method(&self) -> &str {
        self.method.as_deref().unwrap_or(if self.body_bytes.is_some() { "POST" } else { "GET" })
    }

    fn connections_max(&self) -> u32 {
        self.options.stages.iter().map(|stage| stage.connections).max().unwrap_or(self.connections)
    }

    fn total(&self) -> Duration {
        let stages = &self.options.stages;
        if stages.is_empty() { self.duration } else { stages.iter().map(|it| it.duration).sum() }
    }

    /// Returns the request line and the headers, without the blank line.
    fn head(&self) -> String {
        let has_host = self.headers.iter().any(|it| it.to_ascii_lowercase().starts_with("host:"));
        let host = if has_host { String::new() } else { format!("Host: {}\r\n", authority(&self.url)) };
        format!("{} {} HTTP/1.1\r\n{host}{}", self.method(), path(&self.url), self.headers.concat())
    }

    fn generated(&self) -> GeneratedRequests {
        let (header_bytes, body_bytes) = (self.header_bytes.clone(), self.body_bytes.clone());
        GeneratedRequests::new(self.head(), header_bytes, self.header_percent, body_bytes)
    }

    /// Requests once from each address of the host until one responds, and returns what to expect of all responses.
    fn probe(&self) -> Result<(SocketAddr, ExpectedResponse), String> {
        let request = self.generated().first(self.seed.into());
        let mut failure = String::new();
        for address in addresses(&self.url)? {
            match exchange(address, None, false, &request, self.method()) {
                Ok(response) => return Ok((address, self.expected(&response)?)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Compares the first response with the options.
    fn expected(&self, first: &Response) -> Result<ExpectedResponse, String> {
        let (status, length) = (first.status(), first.body.len() as u64);
        if status != self.expect_status {
            let wanted = self.expect_status;
            return Err(format!(
                "expected status {wanted}, found {status}\nhelp: --expect-status {status}, if that is right"
            ));
        }
        let mut expected = ExpectedResponse::like(first, self.method());
        if let Some(wanted) = self.expect_bytes.filter(|bytes| *bytes != length) {
            return Err(format!("expected a body of {wanted} bytes, found one of {length}"));
        }
        if self.any_length {
            expected.body_bytes = None;
        }
        if let Some(wanted) = &self.expect_sha256 {
            let found: String =
                Sha256::digest(&first.body).iter().map(|byte| format!("{byte:02x}")).collect();
            if found != *wanted {
                return Err(format!("expected a body with SHA-256 {wanted}, found {found}"));
            }
            expected.body = Some(FileContent::of(&first.body));
        }
        Ok(expected)
    }

    fn load(&self, address: SocketAddr, expected: ExpectedResponse) -> Load {
        let is_generated = self.header_bytes.is_some() || self.body_bytes.is_some();
        let slow_buffer = |rate: u64| rate.clamp(*SLOW_BUFFER_BYTES.start(), *SLOW_BUFFER_BYTES.end()) as u32;
        let request = CheckedRequest { request: self.head() + "\r\n", expected };
        Load {
            address,
            tls: None,
            http2: false,
            beside: None,
            millis: self.total().as_millis() as u64,
            responses_max: None,
            connections: if self.options.stages.is_empty() { self.connections } else { 0 },
            depth: self.pipeline,
            requests_per_connection: self.requests_per_connection,
            pacing: self.rate.map_or(Pacing::Closed, Pacing::Rate),
            receive_buffer_bytes: self.options.read_bytes_per_s.map(slow_buffer),
            latencies: true,
            downloads: Vec::new(),
            own_headers: false,
            requests: vec![request],
            files: None,
            hot_percent: 0,
            seed: self.seed.into(),
            options: LoadOptions {
                generated: is_generated.then(|| self.generated()),
                ..self.options.clone()
            },
        }
    }

    /// Runs the load with a line of progress on a terminal, and returns the client's CPU time with its outcome.
    fn measure(
        &self,
        address: SocketAddr,
        expected: ExpectedResponse,
    ) -> Result<(Load, LoadOutcome, u64), String> {
        let load = self.load(address, expected);
        let (mut progress, mut before) = (ProgressLine::new(), (Duration::ZERO, 0));
        let (is_live, total_s) = (progress.is_terminal, self.total().as_secs_f64());
        let mut show = |elapsed: Duration, connections: usize, counts: &LoadCounts| {
            progress.show(|| {
                let interval = elapsed.saturating_sub(before.0);
                let rate = (counts.responses - before.1) as f64 / interval.as_secs_f64();
                before = (elapsed, counts.responses);
                format!(
                    "{:.1} of {total_s:.1} s, {connections} connections, {rate:.0} responses/s, {} errors",
                    elapsed.as_secs_f64(),
                    counts.socket_errors() + counts.wrong_responses()
                )
            });
        };
        let cpu_before_ns = testkit::process::own_cpu_ns();
        let outcome = client::run_observed(&load, is_live.then_some(&mut show))?;
        progress.end();
        Ok((load, outcome, testkit::process::own_cpu_ns() - cpu_before_ns))
    }
}
