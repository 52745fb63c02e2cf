//! Phases: a write-up's loads one after another on a server that keeps running, with their errors counted and their limits
//! judged. Errors are results here, not reasons to repeat.

use std::process::Command;

use serde_json::{Value, json};

use super::SuiteArgs;
use super::plan::{Phase, Step};
use crate::bench::{Bench, MeasuredRound, ServerSetup, StartedServer, run_client};
use crate::client::{CheckedRequest, ExpectedResponse, Latency, Load, LoadCounts, Pacing};
use crate::file_set::FileContent;
use crate::process::{CLIENT_CORE, CpuReading, free_address, on_core};
use crate::server::ServerSpec;

const ERRORS_PERCENT: &str = "errors_percent";
const PASSED: &str = "passed";
/// Counts of a phase: its responses, and what went wrong.
const COUNTS: [&str; 4] = ["requests", "errors", "non_2xx", "timeouts"];
/// Rounds of a phase with limits.
const LIMIT_ROUNDS: u32 = 3;
/// Maximum run-queue wait of the server, in per cent of the time, at which a latency beyond its limit is the server's.
const PHASE_WAIT_PERCENT_MAX: f64 = 3.0;

/// Runs all phases on each server, and returns them as the report reads them.
pub(super) fn run(step: &Step, bench: &Bench<'_>, args: &SuiteArgs) -> Result<Vec<Value>, String> {
    bench.folder.settle(step.variant(None, false)?);
    let mut rows = Vec::new();
    for spec in &step.found {
        rows.extend(run_on(spec, step, bench, args)?);
    }
    rows.extend(step.missing.iter().map(|(server, why)| {
        let verdict = format!("not measured: {why}");
        json!({
            "server": server, "name": step.name, "requests": 0, "errors": 0, "non_2xx": 0, "timeouts": 0, "verdict": verdict,
        })
    }));
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
    for phase in step.phases.iter().map(|phase| phase.here(args)) {
        let mut measure = |round: u32| {
            bench.round(&format!("{} {} {round}", spec.name, phase.name), || {
                // Started by the first round that is not in the journal.
                let started = server.take().map_or_else(|| setup.start(), Ok);
                let measured = started.and_then(|started| phase.measure(&setup, server.insert(started)));
                measured.unwrap_or_else(|reason| Err(reason).into())
            })
        };
        let rounds = (1..=phase.rounds()).map(|round| phase.judge(&spec.name, &measure(round)));
        let row = combine(rounds.collect());
        crate::progress(&format!("{} {}: {}", spec.name, phase.name, row["verdict"]));
        rows.push(row);
    }
    Ok(rows)
}

/// Returns the row of a phase's rounds: the counts of all, the figures of the one with the median p99. Latencies that are beyond
/// a limit in some rounds only are within noise; errors never are.
fn combine(mut rounds: Vec<Value>) -> Value {
    let p99 = |row: &Value| row["p99_ms"].as_f64().unwrap_or(f64::INFINITY);
    rounds.sort_by(|one, other| p99(one).total_cmp(&p99(other)));
    let mut row = rounds[rounds.len() / 2].clone();
    for count in COUNTS {
        row[count] = rounds.iter().filter_map(|round| round[count].as_u64()).sum::<u64>().into();
    }
    let worst = rounds.iter().rfind(|round| round["verdict"] != PASSED).unwrap_or(&row);
    let mut verdict = worst["verdict"].as_str().unwrap_or_default().to_owned();
    let passed = rounds.iter().filter(|round| round["verdict"] == PASSED).count();
    let is_clean = COUNTS[1..].iter().all(|count| row[count] == 0);
    if is_clean && (1..rounds.len()).contains(&passed) {
        verdict = format!("within noise, {passed} of {} rounds passed: {verdict}", rounds.len());
    }
    row["verdict"] = verdict.into();
    row
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
    /// Returns how often it is measured: one latency beyond its limit may be the machine's.
    pub(super) fn rounds(&self) -> u32 {
        if self.limits.is_empty() { 1 } else { LIMIT_ROUNDS }
    }

    /// Runs the phase. The counts are in the round's details, and its figures are those that limits may bound.
    fn measure(&self, setup: &ServerSetup<'_>, server: &StartedServer) -> Result<MeasuredRound, String> {
        let is_mix = !self.requests.is_empty();
        let client = if is_mix { setup.own_client(&self.mix(setup))? } else { self.load_tool(setup)? };
        let before = CpuReading::of(server.process.ids())?;
        let counts = if is_mix { run_client(&client) } else { tool_counts(&client) }?;
        let spent = CpuReading::of(server.process.ids())?.since(before, setup.spec.pool);
        let wrong = (counts.socket_errors() + counts.wrong_responses()) as f64;
        // A late response is a response and a timeout.
        let all = counts.requests.max(counts.responses + counts.socket_errors() - counts.timeouts).max(1);
        let mut round: MeasuredRound = Ok([
            (ERRORS_PERCENT, (wrong / all as f64 * 100.0).min(100.0)),
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
        round.figures.extend(counts.latency.iter().flat_map(Latency::figures));
        round.details = json!({ "counts": counts, "client_command": format!("{client:?}") });
        Ok(round)
    }

    fn load_tool(&self, setup: &ServerSetup<'_>) -> Result<Command, String> {
        let path = self.path.as_ref().unwrap_or(&setup.scenario.path);
        let program = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let mut tool = Command::new(program);
        tool.arg("load")
            .arg(format!("http://{}{path}", setup.address))
            .args(self.options().split_whitespace());
        tool.arg("--json");
        Ok(tool)
    }

    /// Returns the load of a mix of requests in a closed loop, each with the content of its response.
    fn mix(&self, setup: &ServerSetup<'_>) -> Load {
        let millis = u64::from(self.seconds) * 1000;
        let load = setup.scenario.load(setup.address, &ExpectedResponse::default(), millis);
        let checked = |[send, body]: &[String; 2]| {
            let expected = ExpectedResponse::with_body(FileContent::of(body.as_bytes()));
            CheckedRequest { request: send.clone(), expected }
        };
        let requests = self.requests.iter().map(checked).collect();
        let connections = self.connections;
        Load { connections, pacing: Pacing::Closed, latencies: true, requests, ..load }
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
        let is_silent = failures.is_empty() && is_clean && counts.responses == 0;
        failures.extend(is_silent.then(|| "no response in time".to_owned()));
        failures
            .extend((!is_clean && !self.limits.contains_key(ERRORS_PERCENT)).then(|| "errors".to_owned()));
        let due = u64::from(self.rate.unwrap_or(0)) * u64::from(self.seconds);
        failures.extend(
            (counts.requests < due).then(|| format!("{} of {due} due requests were sent", counts.requests)),
        );
        let wait = round.figures.get("wait_percent");
        let wait = wait.filter(|wait| is_clean && **wait > PHASE_WAIT_PERCENT_MAX);
        let verdict = match (failures.join("; "), wait) {
            (failures, _) if failures.is_empty() => PASSED.to_owned(),
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
        let silent = LoadCounts { responses: 0, ..clean };
        assert_eq!(verdict(&phase, &silent, &[]), "\"FAILED: no response in time\"");
        let one_late = LoadCounts { timeouts: 1, ..clean };
        for counts in
            [LoadCounts { status_errors: 1, ..clean }, LoadCounts { read_errors: 1, ..clean }, one_late]
        {
            assert_eq!(verdict(&phase, &counts, &[]), "\"FAILED: errors\"");
        }
        let ended = phase.judge("s", &Err("it has ended".to_owned()).into());
        assert_eq!(ended["verdict"], "FAILED: it has ended");

        let limits = [("p99_ms", 10.0), (ERRORS_PERCENT, 0.1)].map(|(name, limit)| (name.to_owned(), limit));
        let limited = Phase { limits: limits.into(), rate: Some(50), ..phase };
        let figures = |p99| [("p99_ms", p99), (ERRORS_PERCENT, 0.05)];
        // One error in two thousand is below the limit.
        assert_eq!(verdict(&limited, &one_late, &figures(9.9)), "\"passed\"");
        assert!(verdict(&limited, &clean, &figures(10.0)).contains("p99_ms 10.000, limit 10"));
        assert!(verdict(&limited, &clean, &[]).contains("p99_ms missing"), "no figure is no pass");
        let disturbed = [("wait_percent", 40.0), ("p99_ms", 11.0), (ERRORS_PERCENT, 0.0)];
        assert!(verdict(&limited, &clean, &disturbed).contains("INVALID: waited for its CPU 40.0 %"));
        assert!(
            verdict(&limited, &one_late, &disturbed).contains("FAILED: p99_ms"),
            "errors are the server's"
        );
        let fewer = LoadCounts { requests: 99, ..clean };
        assert!(verdict(&limited, &fewer, &figures(1.0)).contains("99 of 100 due requests"));
    }

    #[test]
    fn a_latency_beyond_its_limit_in_some_rounds_is_noise_and_an_error_is_not() {
        let round = |p99: f64, errors: u64, verdict: &str| {
            json!({
                "p99_ms": p99, "requests": 10, "errors": errors, "non_2xx": 0, "timeouts": 0, "verdict": verdict,
            })
        };
        let good = || round(1.0, 0, PASSED);
        let slow = || round(20.0, 0, "FAILED: p99_ms");
        let verdict = |rounds| combine(rounds)["verdict"].as_str().unwrap_or_default().to_owned();
        assert_eq!(verdict(vec![good(); 3]), PASSED);
        assert_eq!(
            verdict(vec![good(), slow(), good()]),
            "within noise, 2 of 3 rounds passed: FAILED: p99_ms"
        );
        assert_eq!(verdict(vec![slow(); 3]), "FAILED: p99_ms");
        let wrong = combine(vec![good(), round(2.0, 7, "FAILED: errors"), good()]);
        assert_eq!((&wrong["verdict"], &wrong["errors"]), (&json!("FAILED: errors"), &json!(7)));
        assert_eq!((&wrong["requests"], &wrong["p99_ms"]), (&json!(30), &json!(1.0)));
    }
}
