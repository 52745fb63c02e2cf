//! Phases: a write-up's loads one after another on a server that keeps running, with their errors counted and their limits
//! judged. Errors are results here, not reasons to repeat.

use std::process::Command;

use serde_json::{Value, json};

use super::plan::{Limits, Phase, PhaseSize, SizeArgs, Step};
use super::verify;
use crate::bench::{Bench, MeasuredRound, ServerSetup, StartedServer, exchange, length, run_client};
use crate::block::WRK_SCRIPT;
use crate::client::{CheckedRequest, Load, LoadCounts, Pacing};
use crate::process::{Threads, free_address};
use crate::report::align;
use crate::server::ServerSpec;

/// Seconds after which wrk counts a response as a timeout, by its own default.
const WRK_TIMEOUT_S: u32 = 2;

/// Runs all phases on each server, and returns them as the report reads them.
pub(super) fn run(
    step: &Step,
    servers: &[&'static ServerSpec],
    bench: &Bench<'_>,
    size: SizeArgs,
) -> Result<Vec<Value>, String> {
    let scenario = step.variant(None, false)?;
    bench.folder.settle(scenario);
    let mut rows = Vec::new();
    for spec in servers {
        let setup =
            ServerSetup { bench, spec, scenario, address: free_address()?, workers: 1, null_bytes: 0 };
        // Started by the first phase that is not in the journal.
        let mut server = None;
        let mut measure = |name: &str, run: &dyn Fn(&StartedServer) -> Result<MeasuredRound, String>| {
            bench.round(&format!("{} {name}", spec.name), || {
                let server = match &mut server {
                    Some(server) => Ok(server),
                    none => setup.start().map(|started| none.insert(started)),
                };
                server.and_then(|server| run(server)).unwrap_or_else(|reason| Err(reason).into())
            })
        };
        if step.verify {
            let checked = measure("rules", &|_| Ok(verify::round(setup.address)));
            rows.extend(verify::rows(&spec.name, &checked));
        }
        for phase in &step.phases {
            if let Some(load) = &phase.load {
                rows.push(unmeasured(&spec.name, &phase.name, &format!("needs `cargo lab load {load}`")));
                continue;
            }
            let size = phase.size_here(size);
            let round = measure(&phase.name, &|server| phase.measure(&setup, server, size));
            let row = phase.judge(&spec.name, &round);
            crate::progress(&format!(
                "{} {}: {}",
                spec.name,
                phase.name,
                row["verdict"].as_str().unwrap_or_default()
            ));
            rows.push(row);
        }
    }
    Ok(rows)
}

pub(super) fn unmeasured(server: &str, name: &str, why: &str) -> Value {
    let verdict = format!("not measured: {why}");
    json!({ "server": server, "name": name, "requests": 0, "errors": 0, "non_2xx": 0, "timeouts": 0, "verdict": verdict })
}

/// Renders phases with their counts and verdicts.
pub(super) fn text(rows: &[Value]) -> String {
    let title =
        ["phase", "server", "responses", "a second", "µs CPU", "errors", "non-2xx", "timeouts", "verdict"];
    let mut table = vec![title.map(str::to_owned)];
    for row in rows {
        let text = |name: &str| match &row[name] {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => format!("{:.1}", number.as_f64().unwrap_or_default()),
            Value::Number(number) => number.to_string(),
            _ => "-".to_owned(),
        };
        let columns = [
            "name",
            "server",
            "requests",
            "responses_per_s",
            "cpu_us",
            "errors",
            "non_2xx",
            "timeouts",
            "verdict",
        ];
        table.push(columns.map(text));
    }
    align(&table)
}

impl Phase {
    /// Runs the phase. The counts are in the round's details, and its figures are those that limits may bound.
    fn measure(
        &self,
        setup: &ServerSetup<'_>,
        server: &StartedServer,
        size: PhaseSize,
    ) -> Result<MeasuredRound, String> {
        let client = if self.rate.is_some() || !self.requests.is_empty() {
            setup.own_client(&self.load(setup, server, size)?)?
        } else {
            self.wrk(setup, size)?
        };
        let before = Threads::of(server.process.ids())?;
        let counts = run_client(&client)?;
        let cpu_ns =
            Threads::of(server.process.ids()).and_then(|now| now.since(&before)).map(|spent| spent.cpu_ns);
        let all = (counts.responses + counts.socket_errors()).max(1) as f64;
        let mut figures = [
            ("errors_percent", (counts.socket_errors() + counts.status_errors) as f64 / all * 100.0),
            ("responses_per_s", counts.responses as f64 / (counts.duration_us as f64 / 1e6)),
        ]
        .to_vec();
        figures.extend(cpu_ns.ok().map(|ns| ("cpu_us", ns as f64 / counts.responses as f64 / 1e3)));
        if let Some(latency) = counts.latency {
            let of =
                [latency.p50_ns, latency.p95_ns, latency.p99_ns, latency.max_ns].map(|ns| ns as f64 / 1e6);
            figures.extend(["p50_ms", "p95_ms", "p99_ms", "max_ms"].into_iter().zip(of));
        }
        let PhaseSize { threads, connections, seconds } = size;
        let size = json!({ "threads": threads, "connections": connections, "seconds": seconds });
        let details = json!({ "counts": counts, "size": size, "client_command": format!("{client:?}") });
        Ok(MeasuredRound { figures: figures.into_iter().collect(), details, ..MeasuredRound::default() })
    }

    fn wrk(&self, setup: &ServerSetup<'_>, size: PhaseSize) -> Result<Command, String> {
        let script = format!("depth = {}\nlatencies = true\n{WRK_SCRIPT}", setup.scenario.depth);
        let script = setup.bench.folder.write("wrk.lua", &script)?;
        let PhaseSize { threads, connections, seconds } = size;
        let timeout_s = self.timeout_s.unwrap_or(WRK_TIMEOUT_S);
        let options = format!("-t{threads} -c{connections} -d{seconds}s --timeout {timeout_s}s -s");
        let mut wrk = Command::new("wrk");
        let path = self.path.as_ref().unwrap_or(&setup.scenario.path);
        wrk.args(options.split(' ')).arg(script).arg(format!("http://{}{path}", setup.address));
        Ok(wrk)
    }

    /// Returns the load for our own client: the scenario's requests at the rate, or the mix in a closed loop.
    fn load(&self, setup: &ServerSetup<'_>, server: &StartedServer, size: PhaseSize) -> Result<Load, String> {
        let PhaseSize { connections, seconds, .. } = size;
        let mut load = setup.scenario.load(setup.address, server.bytes, u64::from(seconds) * 1000);
        if !self.requests.is_empty() {
            let check = |mixed: &super::plan::MixedRequest| {
                let response = exchange(setup.address, &mixed.send)?;
                match (response.status(), response.text()) {
                    (200, body) if body == mixed.body => Ok(CheckedRequest {
                        request: mixed.send.clone(),
                        status: 200,
                        bytes: length(&response),
                        content: None,
                    }),
                    (status, body) => Err(format!(
                        "{:?}: status {status}, {body:?} instead of {:?}",
                        mixed.send, mixed.body
                    )),
                }
            };
            load.requests = self.requests.iter().map(check).collect::<Result<_, String>>()?;
        }
        let pacing = self.rate.map_or(Pacing::Closed, Pacing::Rate);
        Ok(Load { connections, pacing, latencies: true, ..load })
    }

    /// Returns the phase as the report reads it. It has passed without an error and below its limits.
    fn judge(&self, server: &str, round: &MeasuredRound) -> Value {
        let counts: LoadCounts = serde_json::from_value(round.details["counts"].clone()).unwrap_or_default();
        let mut failures = round.faults.clone();
        let thresholds: Vec<Value> = self
            .limits
            .named()
            .map(|(name, limit)| {
                let measured = round.figures.get(name).copied();
                let passed = measured.is_some_and(|measured| measured < limit);
                if !passed {
                    failures.push(format!("{name} {:.3}, limit {limit}", measured.unwrap_or(f64::NAN)));
                }
                json!({ "name": name, "limit": limit, "measured": measured, "passed": passed })
            })
            .collect();
        let errors = counts.connect_errors + counts.read_errors + counts.write_errors;
        if self.limits.errors_percent.is_none() && errors + counts.status_errors + counts.timeouts > 0 {
            failures.push("errors".to_owned());
        }
        let due = u64::from(self.rate.unwrap_or(0)) * round.details["size"]["seconds"].as_u64().unwrap_or(0);
        if counts.requests < due {
            failures.push(format!("{} of {due} due requests were sent", counts.requests));
        }
        let verdict = if failures.is_empty() {
            "passed".to_owned()
        } else {
            format!("FAILED: {}", failures.join("; "))
        };
        let mut row = json!({
            "server": server, "name": self.name, "requests": counts.responses, "errors": errors,
            "non_2xx": counts.status_errors, "timeouts": counts.timeouts, "verdict": verdict,
            "thresholds": thresholds, "details": round.details,
        });
        round.figures.iter().for_each(|(name, value)| row[*name] = json!(value));
        row
    }
}

impl Limits {
    fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let Self { p50_ms, p95_ms, p99_ms, max_ms, errors_percent } = *self;
        let all = [
            ("p50_ms", p50_ms),
            ("p95_ms", p95_ms),
            ("p99_ms", p99_ms),
            ("max_ms", max_ms),
            ("errors_percent", errors_percent),
        ];
        all.into_iter().filter_map(|(name, limit)| Some((name, limit?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(counts: LoadCounts, figures: &[(&'static str, f64)]) -> MeasuredRound {
        let details = json!({ "counts": counts, "size": { "seconds": 2 } });
        MeasuredRound { figures: figures.iter().copied().collect(), details, ..MeasuredRound::default() }
    }

    #[test]
    fn a_phase_fails_by_any_error_limit_or_missing_request() {
        let phase = Phase { name: "p".to_owned(), ..Phase::default() };
        let verdict = |phase: &Phase, round: &MeasuredRound| phase.judge("s", round)["verdict"].to_string();
        let clean = LoadCounts { responses: 100, requests: 100, ..LoadCounts::default() };
        assert_eq!(verdict(&phase, &round(clean.clone(), &[])), "\"passed\"");
        for counts in [
            LoadCounts { status_errors: 1, ..clean.clone() },
            LoadCounts { timeouts: 1, ..clean.clone() },
            LoadCounts { read_errors: 1, ..clean.clone() },
        ] {
            assert_eq!(verdict(&phase, &round(counts, &[])), "\"FAILED: errors\"");
        }
        assert_eq!(verdict(&phase, &Err("it has ended".to_owned()).into()), "\"FAILED: it has ended\"");

        let limits = Limits { p99_ms: Some(10.0), errors_percent: Some(0.1), ..Limits::default() };
        let limited = Phase { limits, rate: Some(50), ..phase };
        let figures = |p99| [("p99_ms", p99), ("errors_percent", 0.05)];
        // One error in two thousand is below the limit.
        let one = LoadCounts { timeouts: 1, ..clean.clone() };
        assert_eq!(verdict(&limited, &round(one, &figures(9.9))), "\"passed\"");
        assert!(verdict(&limited, &round(clean.clone(), &figures(10.0))).contains("p99_ms 10.000, limit 10"));
        assert!(verdict(&limited, &round(clean.clone(), &[])).contains("p99_ms NaN"), "no figure is no pass");
        let late = LoadCounts { requests: 99, ..clean };
        assert!(verdict(&limited, &round(late, &figures(1.0))).contains("99 of 100 due requests"));
    }
}
