//! The summary of a load, as text and as JSON.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};

use super::LoadArgs;
use crate::client::{Latency, Load, LoadOutcome};
use crate::format::{align, grouped};
use crate::plausibility::is_client_bound;
use crate::report::unix_seconds;

/// Least share of a rate that must be achieved, in per cent.
const ACHIEVED_PERCENT_MIN: f64 = 99.0;
/// Time for which the client itself may delay requests of a rate: the larger of a share and a length.
const STALLED_PERCENT_MAX: f64 = 1.0;
const STALLED_MAX: Duration = Duration::from_millis(10);
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

/// The latencies of a run or of one of its stages, as JSON.
#[derive(Serialize)]
struct StageLatencies {
    connections: u32,
    seconds: f64,
    responses: u64,
    #[serde(flatten)]
    latency: Latency,
    quantiles_ns: Vec<(f64, u64)>,
}

impl StageLatencies {
    fn of(connections: u32, seconds: f64, latencies: &Histogram<u64>) -> Self {
        let points = latencies.iter_quantiles(POINTS_PER_HALVING);
        let quantiles_ns = points.map(|it| (it.quantile_iterated_to(), it.value_iterated_to())).collect();
        let (responses, latency) = (latencies.len(), Latency::of(latencies));
        Self { connections, seconds, responses, latency, quantiles_ns }
    }
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

    /// Returns how much of a rate was achieved until the client's last look before the end, in per cent. Requests in flight then
    /// count as achieved as far as a steady load has them: by Little's law, and four standard deviations more.
    fn achieved_percent(&self) -> Option<f64> {
        self.args.rate?;
        let (total_s, due) = (self.args.total().as_secs_f64(), self.outcome.due as f64);
        let due_in_time = due * self.outcome.in_time.as_secs_f64() / total_s;
        let missing = due_in_time - self.outcome.responses_in_time as f64;
        let in_flight = self.latencies.mean() / 1e9 * due / total_s;
        let in_flight_max = f64::from(self.args.connections_max()) * f64::from(self.args.pipeline);
        let steady = (in_flight + 4.0 * (in_flight + 1.0).sqrt()).min(in_flight_max);
        Some((due_in_time - (missing - steady).max(0.0)) / due_in_time.max(1.0) * 100.0)
    }

    /// Returns all reasons for which the run failed.
    pub(super) fn failures(&self) -> Vec<String> {
        let counts = &self.outcome.counts;
        let errors = counts.errors(self.outcome.connect_error.as_ref());
        let mut failures: Vec<String> =
            errors.map(|(kind, count)| format!("{} {kind}", grouped(count))).collect();
        if counts.responses == 0 {
            failures.insert(0, "no response".to_owned());
        }
        if let Some(percent) = self.achieved_percent().filter(|percent| *percent < ACHIEVED_PERCENT_MIN) {
            failures.push(format!(
                "the rate was not kept: {percent:.1} % of {} requests had a response in time, not {ACHIEVED_PERCENT_MIN} %\n\
                 help: offer less, or open more connections than {}; the client was {:.0} % busy",
                grouped(self.outcome.due),
                self.args.connections_max(),
                self.client_busy_percent,
            ));
        }
        let stalled = Duration::from_micros(counts.client_stalled_us);
        let percent = stalled.as_secs_f64() / self.args.total().as_secs_f64() * 100.0;
        if stalled > STALLED_MAX && percent > STALLED_PERCENT_MAX {
            failures.push(format!(
                "the client itself delayed requests for {percent:.1} % of the time, up to {}: latencies are not the server's\n\
                 help: keep other programs off its core, or offer less",
                time(counts.client_longest_turn_us as f64 * 1e3),
            ));
        }
        failures
    }

    pub(super) fn text(&self) -> String {
        let (args, counts) = (self.args, &self.outcome.counts);
        let is_bound = args.rate.is_none() && is_client_bound(self.client_busy_percent);
        let mut lines = vec![
            ["requests/s".to_owned(), format!("{:.1}", counts.responses as f64 / self.seconds)],
            ["transfer/s".to_owned(), bytes(counts.bytes as f64 / self.seconds)],
            [
                "client".to_owned(),
                format!(
                    "{:.2} µs CPU a response, {:.0} % of a core{}",
                    self.client_cpu_us,
                    self.client_busy_percent,
                    if is_bound { ": the limit was the client, not the server" } else { "" }
                ),
            ],
        ];
        if let Some(percent) = self.achieved_percent() {
            let (due, delay) = (grouped(self.outcome.due), time(counts.client_longest_turn_us as f64 * 1e3));
            let text =
                format!("{percent:.2} % of {due} requests in time; the client's longest delay was {delay}");
            lines.push(["rate".to_owned(), text]);
        }
        let title = if args.rate.is_some() { "latency from due time" } else { "latency" };
        let mut rows = vec![["", "avg", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned)];
        rows.push(latency_row(title.to_owned(), &self.latencies));
        let mut before = 0;
        for (stage, latencies) in args.options.stages.iter().zip(&self.outcome.latencies) {
            let title = format!("{before} to {} connections", stage.connections);
            before = stage.connections;
            if !stage.duration.is_zero() {
                rows.push(latency_row(title, latencies));
            }
        }
        format!(
            "{} {}: {} connections\n  {} responses in {:.2} s, {} received, {} connections opened\n\n{}\n{}",
            args.method(),
            args.url,
            grouped(args.connections_max().into()),
            grouped(counts.responses),
            self.seconds,
            bytes(counts.bytes as f64),
            grouped(counts.connections_opened),
            align(&rows),
            align(&lines),
        )
    }

    pub(super) fn json(&self) -> Value {
        let (args, counts) = (self.args, &self.outcome.counts);
        let stages = args.options.stages.iter().zip(&self.outcome.latencies);
        let stages = stages
            .map(|(it, latencies)| StageLatencies::of(it.connections, it.duration.as_secs_f64(), latencies));
        json!({
            "url": args.url.to_string(),
            "unix_seconds": unix_seconds(),
            "load": self.load,
            "counts": counts,
            "requests_per_s": counts.responses as f64 / self.seconds,
            "bytes_per_s": counts.bytes as f64 / self.seconds,
            "due": args.rate.map(|_| self.outcome.due),
            "achieved_percent": self.achieved_percent(),
            "client_cpu_us_per_response": self.client_cpu_us,
            "client_busy_percent": self.client_busy_percent,
            "errors_percent": counts.errors_percent(),
            "latency": StageLatencies::of(args.connections_max(), self.seconds, &self.latencies),
            "stages": stages.collect::<Vec<_>>(),
            "failures": self.failures(),
        })
    }
}

fn latency_row(title: String, latencies: &Histogram<u64>) -> [String; 7] {
    let at = |quantile| time(latencies.value_at_quantile(quantile) as f64);
    [title, time(latencies.mean()), at(0.5), at(0.9), at(0.99), at(0.999), time(latencies.max() as f64)]
}

/// Formats a time of some nanoseconds.
fn time(ns: f64) -> String {
    match ns {
        ..1e6 => format!("{:.1} µs", ns / 1e3),
        ..1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

fn bytes(bytes: f64) -> String {
    match bytes {
        ..1e6 => format!("{:.2} kB", bytes / 1e3),
        ..1e9 => format!("{:.2} MB", bytes / 1e6),
        _ => format!("{:.2} GB", bytes / 1e9),
    }
}
