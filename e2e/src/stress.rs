//! Group `stress`: four phases of load by `cargo lab load` against the smallest program. No response and no connection is lost.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use testkit::{Client, Program, free_address, process};

use crate::context::CaseContext;
use crate::expected::ExactResponse;
use crate::normal::NormalClients;
use crate::report::{CaseReport, shown};
use crate::runner::{build_release, cargo, workspace};
use crate::usage::{LoggedCounters, Usage};

/// Pause between two phases.
const PAUSE: Duration = Duration::from_secs(2);
/// Interval of a client beside the load.
const BESIDE_INTERVAL: Duration = Duration::from_secs(1);
const BESIDE_LATENCY_MAX_S: f64 = 5.0;
/// Growth of memory after the phases, KiB: with two workers spare outputs and blocks of 1 MiB each, receive buffers of io_uring of 1 MiB,
/// slots of 5,000 connections, and as much again for pages that the allocator keeps in part.
const GROWTH_MAX_KIB: f64 = 16.0 * 1024.0;
const BODY: &str = "Hello, World!";

/// One load.
struct LoadPhase {
    name: &'static str,
    connections: u64,
    /// Further options of `cargo lab load`.
    options: &'static str,
}

/// The counts are never lowered.
#[rustfmt::skip]
const PHASES: [LoadPhase; 4] = [
    LoadPhase { name: "warm-up", connections: 1_000, options: "--duration 5s --timeout 5s" },
    LoadPhase { name: "baseline", connections: 10_000, options: "--duration 10s --timeout 5s" },
    LoadPhase { name: "headers", connections: 5_000, options: "--duration 10s --timeout 5s --header-bytes 10000-60000" },
    LoadPhase { name: "payloads", connections: 100, options: "--duration 15s --timeout 15s --body-bytes 1000000-9400000 --header-bytes 40000 --header-percent 20" },
];

/// Figures of a load.
#[derive(Debug, Default, Deserialize)]
struct LoadFigures {
    counts: LoadCounts,
    latency: LoadLatency,
}

#[derive(Debug, Default, Deserialize)]
struct LoadCounts {
    responses: u64,
    connections_opened: u64,
}

#[derive(Debug, Default, Deserialize)]
struct LoadLatency {
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

/// Runs all phases.
pub(crate) fn stress(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    // One closure for every request.
    let mut command =
        Command::new(build_release("examples/smallest", &["shearwater", "--example", "smallest"])?);
    let address = free_address()?;
    command.args([&address.to_string(), context.driver.name()]);
    let mut server = Program::start(command, address, &context.folder.join("smallest.log"))?;
    let driver = if process::uses_io_uring(server.pid()) { "uring" } else { "epoll" };
    report.check("driver in use", driver, context.driver.name(), driver == context.driver.name());
    let expected = probe(&server, report)?;
    // The connections of the start and of the probe have ended then.
    thread::sleep(PAUSE);
    let before = Usage::of(&server);
    // Responses and connections of the two probes, and the connection of the start.
    let mut sum = LoadCounts { responses: 2, connections_opened: 3 };
    for phase in &PHASES {
        let counts = run_phase(context, report, phase, &server, &expected)?;
        sum.responses += counts.responses;
        sum.connections_opened += counts.connections_opened;
        thread::sleep(PAUSE);
    }
    Usage::settled(&server, before, Duration::from_secs(5));
    thread::sleep(Duration::from_secs(context.count(10, 60)));
    let after = Usage::of(&server);
    report.note("resident at most, KiB", shown(process::rss_peak_kib(server.pid())));
    report.left("afterwards", before, after, GROWTH_MAX_KIB);
    probe(&server, report)?;
    report.stop(&mut server);
    report_counters(report, &LoggedCounters::at_exit(&server).unwrap_or_default(), &sum);
    Ok(())
}

/// Sends one request.
fn probe(server: &Program, report: &mut CaseReport) -> Result<ExactResponse> {
    let response = Client::connect(server.address())?.get("/")?;
    let right = response.status() == 200 && response.text() == BODY;
    report.check("probe", response.status(), "200 and the body", right);
    ExactResponse::new(&response).map_err(anyhow::Error::msg)
}

/// Runs a load beside a slow client. Returns the responses and connections of both.
fn run_phase(
    context: &CaseContext<'_>,
    report: &mut CaseReport,
    phase: &LoadPhase,
    server: &Program,
    expected: &ExactResponse,
) -> Result<LoadCounts> {
    let mut command = Command::new(cargo());
    command.current_dir(workspace()).args(["lab", "load", "--json"]).args(phase.options.split(' '));
    command.args(["--connections", &phase.connections.to_string()]);
    command.args(["--seed", &context.args.seed.to_string(), &format!("http://{}/", server.address())]);
    let (count, interval, address) = (1, BESIDE_INTERVAL, server.address());
    let beside = NormalClients { count, interval, address, target: "/", expected, also: None };
    let (output, beside) = beside.beside(|| command.stdin(Stdio::null()).output());
    let output = output.context("cargo lab load")?;
    let figures: LoadFigures = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cargo lab load: {}", String::from_utf8_lossy(&output.stderr)))?;

    let what = |text: &str| format!("{}: {text}", phase.name);
    // It compares every response.
    let errors: Vec<String> = String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned).collect();
    report.check(what("exit of cargo lab load"), output.status, "exit status: 0", output.status.success());
    report.none(what("errors"), &errors);
    report.within(what("responses"), figures.counts.responses, phase.connections..=u64::MAX);
    let LoadLatency { p50_ns, p99_ns, max_ns } = figures.latency;
    let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(|ns| ns / 1_000_000);
    report.note(what("latency p50, p99, max, ms"), format!("{p50}, {p99}, {max}"));
    report.none(what("a client beside it: errors"), &beside.errors);
    let slowest = beside.samples.iter().map(|(_, latency)| *latency).max().unwrap_or(Duration::MAX);
    report.at_most(what("a client beside it, slowest"), slowest.as_secs_f64(), BESIDE_LATENCY_MAX_S, "s");
    // One more of each is the request by which the load learns the response, and one connection is that of the client beside it.
    Ok(LoadCounts {
        responses: figures.counts.responses + 1 + beside.samples.len() as u64,
        connections_opened: figures.counts.connections_opened + 2,
    })
}

/// Compares the server's counters with the responses that its clients have read.
fn report_counters(report: &mut CaseReport, counters: &LoggedCounters, sum: &LoadCounts) {
    // The load closes in the middle of a request; the part gets a 400 that nobody reads.
    let connections: u64 = PHASES.iter().map(|phase| phase.connections).sum();
    let most = sum.responses + connections;
    report.within("requests by the server's count", counters.requests, sum.responses..=most);
    report.within("2xx by the server's count", counters.status_2xx, sum.responses..=u64::MAX);
    report.equal("5xx by the server's count", counters.status_5xx, 0);
    report.equal("connections by the server's count", counters.connections, sum.connections_opened);
    report.equal("open connections by the server's count", counters.open, 0);
    report.note("limits reached", &counters.limits);
    report.equal("faults by the server's count", counters.faults.as_str(), "");
}
