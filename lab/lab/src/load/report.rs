//! The summary of a load, as text and as JSON.

use std::fmt::Write;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::{Arrivals, LoadArgs};
use crate::client::{Load, LoadOutcome};
use crate::connections::grouped;
use crate::report::align;

/// Least share of a rate that must be achieved, in per cent.
const ACHIEVED_PERCENT_MIN: f64 = 99.0;
/// Share of a core, in per cent, from which the client limits a closed loop.
const CLIENT_BUSY_PERCENT_MAX: f64 = 90.0;
/// Points of the histogram for each halving of the distance to 100 %.
const POINTS_PER_HALVING: u32 = 4;

/// A finished run with its figures.
pub(super) struct LoadSummary<'a> {
    args: &'a LoadArgs,
    load: &'a Load,
    outcome: &'a LoadOutcome,
    latencies: Histogram<u64>,
    seconds: f64,
    client_cpu_us: f64,
    client_busy_percent: f64,
}

impl<'a> LoadSummary<'a> {
    pub(super) fn of(args: &'a LoadArgs, load: &'a Load, outcome: &'a LoadOutcome, cpu_ns: u64) -> Self {
        let seconds = outcome.counts.duration_us as f64 / 1e6;
        let latencies = outcome.latencies.iter().cloned().reduce(|all, stage| all + &stage);
        let latencies = latencies.expect("a run has at least one histogram");
        let client_cpu_us = cpu_ns as f64 / 1e3 / outcome.counts.responses.max(1) as f64;
        let client_busy_percent = cpu_ns as f64 / 1e7 / seconds;
        Self { args, load, outcome, latencies, seconds, client_cpu_us, client_busy_percent }
    }

    fn per_s(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// Returns how much of a rate was achieved, in per cent. Requests in flight at the end count as achieved as far as a steady
    /// load has them: by Little's law, and four standard deviations more.
    fn achieved_percent(&self) -> Option<f64> {
        self.args.rate?;
        let due = self.outcome.due as f64;
        let missing = due - self.outcome.responses_in_time as f64;
        let in_flight = self.latencies.mean() * self.latencies.len() as f64 / (self.seconds * 1e9);
        let late = missing - in_flight - 4.0 * (in_flight + 1.0).sqrt();
        Some((due - late.max(0.0)) / due.max(1.0) * 100.0)
    }

    /// Returns all reasons for which the run failed.
    pub(super) fn failures(&self) -> Vec<String> {
        let counts = &self.outcome.counts;
        let mut failures = Vec::new();
        if counts.responses == 0 {
            failures.push("no response".to_owned());
        }
        let wrong = self.kinds(&[
            ("another status or unexpected bytes", counts.status_errors),
            ("another length", counts.length_errors),
            ("another content", counts.content_errors),
            ("malformed", counts.malformed_errors),
        ]);
        let (count, responses) = (grouped(counts.wrong_responses()), grouped(counts.responses));
        failures.extend(wrong.map(|kinds| format!("{count} of {responses} responses were wrong: {kinds}")));
        let sockets = self.kinds(&[
            ("connect", counts.connect_errors),
            ("closed or reset before the response", counts.read_errors),
            ("write", counts.write_errors),
            ("timeout", counts.timeouts),
        ]);
        let reason = self.outcome.connect_error.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
        failures.extend(sockets.map(|kinds| format!("socket errors: {kinds}{reason}")));
        if let Some(percent) = self.achieved_percent().filter(|percent| *percent < ACHIEVED_PERCENT_MIN) {
            failures.push(format!(
                "the rate was not kept: {percent:.1} % of {} requests were responded to in time, {ACHIEVED_PERCENT_MIN} % are required\n\
                 help: the client was {:.0} % busy; offer less, or open more connections than {}",
                grouped(self.outcome.due),
                self.client_busy_percent,
                grouped(self.args.connections_max().into()),
            ));
        }
        failures
    }

    /// Lists the kinds that occurred.
    fn kinds(&self, kinds: &[(&str, u64)]) -> Option<String> {
        let occurred = kinds.iter().filter(|(_, count)| *count > 0);
        let texts: Vec<String> =
            occurred.map(|(kind, count)| format!("{} {kind}", grouped(*count))).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    pub(super) fn text(&self) -> String {
        let (args, counts) = (self.args, &self.outcome.counts);
        let connections = grouped(args.connections_max().into());
        let pacing = match args.rate {
            None => "closed loop".to_owned(),
            Some(rate) if args.arrivals == Arrivals::Poisson => format!("{}/s, Poisson", grouped(rate)),
            Some(rate) => format!("{}/s", grouped(rate)),
        };
        let mut out = format!("{} {}: {connections} connections, {pacing}\n", args.method(), args.url.url);
        let _ = writeln!(
            out,
            "  {} responses in {:.2} s, {} read, {} connections opened\n",
            grouped(counts.responses),
            self.seconds,
            bytes(counts.bytes as f64),
            grouped(counts.connections_opened),
        );
        let mut rows = vec![["", "avg", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned)];
        let title = if args.rate.is_some() { "latency from due time" } else { "latency" };
        rows.push(latency_row(title.to_owned(), &self.latencies));
        let _ = writeln!(out, "{}", align(&rows));
        let _ = writeln!(out, "requests/s  {:.1}", self.per_s(counts.responses));
        let _ = writeln!(out, "transfer/s  {}", bytes(self.per_s(counts.bytes)));
        if let Some(percent) = self.achieved_percent() {
            let _ = writeln!(
                out,
                "rate        {percent:.2} % of {} requests in time; longest delay by the client {}",
                grouped(self.outcome.due),
                time(counts.client_longest_turn_us as f64 * 1e3)
            );
        }
        let is_bound = args.rate.is_none() && self.client_busy_percent >= CLIENT_BUSY_PERCENT_MAX;
        let note = if is_bound { ": it is the limit, not the server" } else { "" };
        let _ = writeln!(
            out,
            "client      {:.2} µs CPU a response, {:.0} % of a core{note}",
            self.client_cpu_us, self.client_busy_percent
        );
        out + &self.stages_text()
    }

    fn stages_text(&self) -> String {
        if self.args.stages.is_empty() {
            return String::new();
        }
        let mut rows = vec![["stage", "avg", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned)];
        let mut before = 0;
        for (stage, latencies) in self.args.stages.iter().zip(&self.outcome.latencies) {
            let (from, to) = (grouped(before), grouped(stage.connections.into()));
            before = stage.connections.into();
            if stage.duration.is_zero() {
                continue;
            }
            let rate = latencies.len() as f64 / stage.duration.as_secs_f64();
            rows.push(latency_row(format!("{from} to {to}: {rate:.0}/s"), latencies));
        }
        format!("\n{}", align(&rows))
    }

    pub(super) fn json(&self) -> Value {
        let (args, counts) = (self.args, &self.outcome.counts);
        let stages = args.stages.iter().zip(&self.outcome.latencies);
        let stages: Vec<Value> = stages
            .map(|(stage, latencies)| {
                json!({
                    "connections": stage.connections,
                    "seconds": stage.duration.as_secs_f64(),
                    "responses": latencies.len(),
                    "latency_ns": latency_json(latencies),
                })
            })
            .collect();
        let points = self.latencies.iter_quantiles(POINTS_PER_HALVING);
        let histogram: Vec<Value> = points
            .map(|it| {
                json!([it.quantile_iterated_to(), it.value_iterated_to(), it.count_since_last_iteration()])
            })
            .collect();
        json!({
            "url": args.url.url,
            "address": self.load.address,
            "request": self.load.requests[0].request,
            "connections": args.connections_max(),
            "pipeline": args.pipeline,
            "requests_per_connection": args.requests_per_connection,
            "rate": args.rate,
            "seed": args.seed,
            "seconds": self.seconds,
            "counts": counts,
            "requests_per_s": self.per_s(counts.responses),
            "bytes_per_s": self.per_s(counts.bytes),
            "due": args.rate.map(|_| self.outcome.due),
            "achieved_percent": self.achieved_percent(),
            "client_cpu_us_per_response": self.client_cpu_us,
            "client_busy_percent": self.client_busy_percent,
            "latency_ns": latency_json(&self.latencies),
            "stages": stages,
            // Quantile, nanoseconds, responses since the last point.
            "histogram": histogram,
            "failures": self.failures(),
        })
    }
}

fn latency_row(title: String, latencies: &Histogram<u64>) -> [String; 7] {
    let at = |quantile| time(latencies.value_at_quantile(quantile) as f64);
    [title, time(latencies.mean()), at(0.5), at(0.9), at(0.99), at(0.999), time(latencies.max() as f64)]
}

fn latency_json(latencies: &Histogram<u64>) -> Value {
    let at = |quantile| latencies.value_at_quantile(quantile);
    json!({
        "mean": latencies.mean(),
        "p50": at(0.5),
        "p90": at(0.9),
        "p95": at(0.95),
        "p99": at(0.99),
        "p999": at(0.999),
        "p9999": at(0.9999),
        "max": latencies.max(),
    })
}

/// Formats a time of some nanoseconds.
fn time(ns: f64) -> String {
    match ns {
        ..1e6 => format!("{:.1} µs", ns / 1e3),
        ..1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

/// Formats a number of bytes.
fn bytes(bytes: f64) -> String {
    match bytes {
        ..1e3 => format!("{bytes:.0} B"),
        ..1e6 => format!("{:.2} kB", bytes / 1e3),
        ..1e9 => format!("{:.2} MB", bytes / 1e6),
        _ => format!("{:.2} GB", bytes / 1e9),
    }
}
