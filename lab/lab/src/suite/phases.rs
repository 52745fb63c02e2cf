//! Phases: a write-up's loads one after another on a server that keeps running, with their errors counted and their limits
//! judged. Errors are results here, not reasons to repeat.

use std::process::Command;

use serde_json::{Value, json};

use super::plan::{Phase, Step};
use super::{SuiteArgs, verify};
use crate::bench::{Bench, MeasuredRound, ServerSetup, StartedServer, exchange, length, run_client};
use crate::block::WRK_SCRIPT;
use crate::client::{CheckedRequest, Load, LoadCounts, Pacing};
use crate::process::{CLIENT_CORE, Threads, free_address, on_core};
use crate::server::ServerSpec;

/// Seconds after which wrk counts a response as a timeout, by its own default.
const WRK_TIMEOUT_S: u32 = 2;
const ERRORS_PERCENT: &str = "errors_percent";
/// Maximum run-queue wait of the server, in per cent of the time, at which a latency beyond its limit is the server's.
const WAIT_PERCENT_MAX: f64 = 3.0;

/// Columns of phases as text: title and field.
pub(super) const COLUMNS: [(&str, &str); 12] = [
    ("phase", "name"),
    ("server", "server"),
    ("responses", "requests"),
    ("a second", "responses_per_s"),
    ("µs CPU", "cpu_us"),
    ("p50 ms", "p50_ms"),
    ("p99 ms", "p99_ms"),
    ("max ms", "max_ms"),
    ("errors", "errors"),
    ("non-2xx", "non_2xx"),
    ("timeouts", "timeouts"),
    ("verdict", "verdict"),
];

/// Runs all phases on each server, and returns them as the report reads them.
pub(super) fn run(step: &Step, bench: &Bench<'_>, args: &SuiteArgs) -> Result<Vec<Value>, String> {
    bench.folder.settle(step.variant(None, false)?);
    let mut rows = Vec::new();
    for spec in &step.found {
        rows.extend(run_on(spec, step, bench, args)?);
    }
    let missing = step.missing.iter().map(|(name, why)| unmeasured(name, &step.name, why));
    rows.extend(missing);
    Ok(rows)
}

fn run_on(
    spec: &'static ServerSpec,
    step: &Step,
    bench: &Bench<'_>,
    args: &SuiteArgs,
) -> Result<Vec<Value>, String> {
    let scenario = step.variant(None, false)?;
    let setup = ServerSetup { bench, spec, scenario, address: free_address()?, workers: 1, null_bytes: 0 };
    let (mut rows, mut server) = (Vec::new(), None);
    let mut measure = |name: &str, run: &dyn Fn(&StartedServer) -> Result<MeasuredRound, String>| {
        // Started by the first phase that is not in the journal.
        bench.round(&format!("{} {name}", spec.name), || {
            let started = match server.take() {
                Some(started) => Ok(started),
                None => setup.start(),
            };
            let round = started.and_then(|started| run(server.insert(started)));
            round.unwrap_or_else(|reason| Err(reason).into())
        })
    };
    if step.verify {
        let checked = measure("rules", &|_| Ok(verify::round(setup.address)));
        rows.extend(verify::rows(&spec.name, &checked));
    }
    for phase in &step.phases {
        let here = phase.here(args);
        rows.push(here.judge(&spec.name, &measure(&phase.name, &|server| here.measure(&setup, server))));
        let verdict = rows.last().map(|row| row["verdict"].to_string()).unwrap_or_default();
        crate::progress(&format!("{} {}: {verdict}", spec.name, phase.name));
    }
    Ok(rows)
}

pub(super) fn unmeasured(server: &str, name: &str, why: &str) -> Value {
    let verdict = format!("not measured: {why}");
    json!({
        "server": server, "name": name, "requests": 0, "errors": 0, "non_2xx": 0, "timeouts": 0, "verdict": verdict,
    })
}

fn own_program() -> Result<Command, String> {
    std::env::current_exe().map(Command::new).map_err(|error| format!("own path: {error}"))
}

/// Runs `cargo lab load` on the client's core. Its output has the errors, so its exit status isn't needed.
fn tool_counts(tool: &Command) -> Result<LoadCounts, String> {
    let output = on_core(CLIENT_CORE, tool).output().map_err(|error| format!("load: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let failed = |_| format!("load: {}", errors.lines().next().unwrap_or("no output"));
    let mut printed: Value = serde_json::from_slice(&output.stdout).map_err(failed)?;
    let mut latency = printed["latency"].take();
    latency["mean_ns"] = json!(latency["mean_ns"].as_f64().unwrap_or_default() as u64);
    printed["counts"]["latency"] = latency;
    serde_json::from_value(printed["counts"].take()).map_err(failed)
}

impl Phase {
    /// Runs the phase. The counts are in the round's details, and its figures are those that limits may bound.
    fn measure(&self, setup: &ServerSetup<'_>, server: &StartedServer) -> Result<MeasuredRound, String> {
        let client = match &self.load {
            Some(options) => self.load_tool(setup, options)?,
            None if self.rate.is_some() || !self.requests.is_empty() => {
                setup.own_client(&self.own_load(setup, server)?)?
            }
            None => self.wrk(setup)?,
        };
        let before = Threads::of(server.process.ids())?;
        let counts = if self.load.is_some() { tool_counts(&client) } else { run_client(&client) }?;
        let spent = Threads::of(server.process.ids())?.since(&before);
        // wrk doesn't count requests; a late response is a response and a timeout.
        let all =
            counts.requests.max(counts.responses + counts.socket_errors() - counts.timeouts).max(1) as f64;
        let wrong = (counts.socket_errors() + counts.wrong_responses()) as f64;
        let mut round: MeasuredRound = Ok([
            (ERRORS_PERCENT, wrong / all * 100.0),
            ("responses_per_s", counts.responses as f64 / (counts.duration_us as f64 / 1e6)),
        ]
        .into())
        .into();
        // Without a figure where a thread has ended, as those for blocking work do.
        if let Ok(spent) = spent {
            round.figures.insert("cpu_us", spent.cpu_ns as f64 / counts.responses as f64 / 1e3);
            // Threads of a pool wait for one another.
            if !setup.spec.pool {
                let percent = spent.wait_ns as f64 / 10.0 / counts.duration_us as f64;
                round.figures.insert("wait_percent", percent);
            }
        }
        if let Some(it) = counts.latency {
            let of =
                [("p50_ms", it.p50_ns), ("p95_ms", it.p95_ns), ("p99_ms", it.p99_ns), ("max_ms", it.max_ns)];
            round.figures.extend(of.map(|(name, ns)| (name, ns as f64 / 1e6)));
        }
        round.details = json!({ "counts": counts, "client_command": format!("{client:?}") });
        Ok(round)
    }

    fn load_tool(&self, setup: &ServerSetup<'_>, options: &str) -> Result<Command, String> {
        let path = self.path.as_ref().unwrap_or(&setup.scenario.path);
        let mut tool = own_program()?;
        tool.arg("load")
            .arg(format!("http://{}{path}", setup.address))
            .args(options.split(' '))
            .arg("--json");
        Ok(tool)
    }

    fn wrk(&self, setup: &ServerSetup<'_>) -> Result<Command, String> {
        let script = format!("depth = {}\nlatencies = true\n{WRK_SCRIPT}", setup.scenario.depth);
        let script = setup.bench.folder.write("wrk.lua", &script)?;
        let Self { threads, connections, seconds, .. } = self;
        let timeout_s = self.timeout_s.unwrap_or(WRK_TIMEOUT_S);
        let options = format!("-t{threads} -c{connections} -d{seconds}s --timeout {timeout_s}s -s");
        let path = self.path.as_ref().unwrap_or(&setup.scenario.path);
        let mut wrk = Command::new("wrk");
        wrk.args(options.split(' ')).arg(script).arg(format!("http://{}{path}", setup.address));
        Ok(wrk)
    }

    /// Returns the load for our own client: the scenario's request at the rate, or the mix in a closed loop.
    fn own_load(&self, setup: &ServerSetup<'_>, server: &StartedServer) -> Result<Load, String> {
        let load = setup.scenario.load(setup.address, server.bytes, u64::from(self.seconds) * 1000);
        let check = |[send, body]: &[String; 2]| {
            let response = exchange(setup.address, send)?;
            let bytes = length(&response);
            match (response.status(), response.text()) {
                (200, text) if text == *body => {
                    Ok(CheckedRequest { request: send.clone(), status: 200, bytes, content: None })
                }
                (status, text) => Err(format!("{send:?}: status {status}, {text:?}, expected {body:?}")),
            }
        };
        let requests = match self.requests.as_slice() {
            [] => load.requests,
            mix => mix.iter().map(check).collect::<Result<_, String>>()?,
        };
        let pacing = self.rate.map_or(Pacing::Closed, Pacing::Rate);
        Ok(Load { connections: self.connections, pacing, latencies: true, requests, ..load })
    }

    /// Returns the phase as the report reads it. It has passed without an error and below its limits.
    fn judge(&self, server: &str, round: &MeasuredRound) -> Value {
        let counts: LoadCounts = serde_json::from_value(round.details["counts"].clone()).unwrap_or_default();
        let errors = counts.connect_errors + counts.read_errors + counts.write_errors;
        let mut failures = round.faults.clone();
        let mut thresholds = Vec::new();
        for (name, limit) in &self.limits {
            let measured = round.figures.get(&**name);
            let passed = measured.is_some_and(|measured| measured < limit);
            thresholds.push(json!({ "name": name, "limit": limit, "measured": measured, "passed": passed }));
            let shown = measured.map_or_else(|| "missing".to_owned(), |measured| format!("{measured:.3}"));
            failures.extend((!passed).then(|| format!("{name} {shown}, limit {limit}")));
        }
        let is_clean = errors + counts.wrong_responses() + counts.timeouts == 0;
        failures
            .extend((!is_clean && !self.limits.contains_key(ERRORS_PERCENT)).then(|| "errors".to_owned()));
        let due = u64::from(self.rate.unwrap_or(0)) * u64::from(self.seconds);
        failures.extend(
            (counts.requests < due).then(|| format!("{} of {due} due requests were sent", counts.requests)),
        );
        let wait = round.figures.get("wait_percent").filter(|wait| is_clean && **wait > WAIT_PERCENT_MAX);
        let verdict = match (failures.join("; "), wait) {
            (failures, _) if failures.is_empty() => "passed".to_owned(),
            (failures, None) => format!("FAILED: {failures}"),
            (failures, Some(wait)) => {
                format!("INVALID: waited for its CPU {wait:.1} % of the time: {failures}")
            }
        };
        let mut row = json!({
            "server": server, "name": self.name, "requests": counts.responses, "errors": errors,
            "non_2xx": counts.wrong_responses(), "timeouts": counts.timeouts, "verdict": verdict,
            "thresholds": thresholds, "details": round.details,
        });
        round.figures.iter().for_each(|(name, value)| row[*name] = json!(value));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_fails_by_any_error_limit_or_missing_request() {
        let verdict = |phase: &Phase, counts: &LoadCounts, figures: &[(&'static str, f64)]| {
            let figures = figures.iter().copied().collect();
            let round = MeasuredRound { figures, details: json!({ "counts": counts }), ..Default::default() };
            phase.judge("s", &round)["verdict"].to_string()
        };
        let phase = Phase { seconds: 2, ..Phase::default() };
        let clean = LoadCounts { responses: 100, requests: 100, ..LoadCounts::default() };
        assert_eq!(verdict(&phase, &clean, &[]), "\"passed\"");
        for counts in [
            LoadCounts { status_errors: 1, ..clean },
            LoadCounts { timeouts: 1, ..clean },
            LoadCounts { read_errors: 1, ..clean },
        ] {
            assert_eq!(verdict(&phase, &counts, &[]), "\"FAILED: errors\"");
        }
        let ended = phase.judge("s", &Err("it has ended".to_owned()).into());
        assert_eq!(ended["verdict"], "FAILED: it has ended");

        let limits = [("p99_ms", 10.0), (ERRORS_PERCENT, 0.1)].map(|(name, limit)| (name.to_owned(), limit));
        let limited = Phase { limits: limits.into(), rate: Some(50), ..phase };
        let figures = |p99| [("p99_ms", p99), (ERRORS_PERCENT, 0.05)];
        // One error in two thousand is below the limit.
        let one = LoadCounts { timeouts: 1, ..clean };
        assert_eq!(verdict(&limited, &one, &figures(9.9)), "\"passed\"");
        assert!(verdict(&limited, &clean, &figures(10.0)).contains("p99_ms 10.000, limit 10"));
        assert!(verdict(&limited, &clean, &[]).contains("p99_ms missing"), "no figure is no pass");
        let disturbed = [("wait_percent", 40.0), ("p99_ms", 11.0), (ERRORS_PERCENT, 0.0)];
        assert!(verdict(&limited, &clean, &disturbed).contains("INVALID: waited for its CPU 40.0 %"));
        assert!(verdict(&limited, &one, &disturbed).contains("FAILED: p99_ms"), "errors are the server's");
        let late = LoadCounts { requests: 99, ..clean };
        assert!(verdict(&limited, &late, &figures(1.0)).contains("99 of 100 due requests"));
    }
}
