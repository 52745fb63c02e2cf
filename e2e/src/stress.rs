//! Group `stress`: four phases of load by `wrk` against the smallest program. No response and no connection is lost.

use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use testkit::{Client, Program, free_address, process};

use crate::context::{CaseContext, Usage, core_percent};
use crate::counters::LoggedCounters;
use crate::report::{CaseReport, shown};

/// Pause between two phases.
const PAUSE: Duration = Duration::from_secs(2);
/// Interval of a client beside `wrk`. `wrk` doesn't count responses that never arrive; this client waits for them.
const BESIDE_INTERVAL: Duration = Duration::from_millis(100);
const BESIDE_LATENCY_MAX_S: f64 = 5.0;
/// Growth of memory after the phases, KiB: with two workers spare outputs and blocks of 1 MiB each, receive buffers of io_uring of 1 MiB,
/// slots of 5,000 connections, and as much again for pages that the allocator keeps in part.
const GROWTH_MAX_KIB: f64 = 16.0 * 1024.0;
const BODY: &str = "Hello, World!";
/// Descriptors that client and server each need beside their connections.
const DESCRIPTORS_BESIDE: u64 = 500;
/// Memory that `wrk` needs for its requests, KiB.
const MEMORY_MIN_KIB: u64 = 3 * 1024 * 1024;

/// One run of `wrk`. The counts are never lowered.
struct Phase {
    name: &'static str,
    threads: u64,
    connections: u64,
    seconds: u64,
    timeout_seconds: u64,
    script: &'static str,
    /// Bytes that a request carries: the least and the most, as in the script.
    load: Option<(u64, u64)>,
}

const HEADERS: &str = include_str!("../data/stress/headers.lua");
const PAYLOADS: &str = include_str!("../data/stress/payloads.lua");
#[rustfmt::skip]
const PHASES: [Phase; 4] = [
    Phase { name: "warm-up", threads: 8, connections: 1_000, seconds: 5, timeout_seconds: 5, script: "", load: None },
    Phase { name: "baseline", threads: 8, connections: 10_000, seconds: 10, timeout_seconds: 5, script: "", load: None },
    Phase { name: "headers", threads: 4, connections: 5_000, seconds: 10, timeout_seconds: 5, script: HEADERS, load: Some((10_000, 60_000)) },
    Phase { name: "payloads", threads: 4, connections: 100, seconds: 15, timeout_seconds: 15, script: PAYLOADS, load: Some((1_000_000, 9_400_000)) },
];

const TALLY: &str = include_str!("../data/stress/tally.lua");

/// The figures that the script prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    threads: u64,
    duration_us: u64,
    requests: u64,
    bytes: u64,
    connect: u64,
    read: u64,
    write: u64,
    status: u64,
    timeout: u64,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    built: u64,
    marked: u64,
    built_bytes: u64,
}

impl Figures {
    /// Reads the only tally in the output of `wrk`, in which no figure is missing.
    fn parse(output: &str, phase: &Phase) -> Result<Self> {
        let tallies: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("tally: ")).collect();
        let [tally] = tallies[..] else { bail!("{} tallies in:\n{output}", tallies.len()) };
        let figures: Self = serde_json::from_str(tally).with_context(|| tally.to_owned())?;
        ensure!(figures.threads == phase.threads, "a tally of {} threads", figures.threads);
        Ok(figures)
    }
}

/// Runs all phases.
pub(crate) fn stress(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    check_machine()?;
    let mut command = Command::new(&context.programs.smallest);
    let address = free_address()?;
    command.args([&address.to_string(), context.driver.name()]);
    let mut server = Program::start(command, address, &context.folder.join("smallest.log"))?;
    let driver = if process::uses_io_uring(server.pid()) { "uring" } else { "epoll" };
    report.check("driver in use", driver, context.driver.name(), driver == context.driver.name());
    let response_bytes = probe(&server, report)?;
    // The connections of the start and of the probe have ended then.
    thread::sleep(PAUSE);
    let before = Usage::of(&server);
    let mut read = 2;
    for phase in &PHASES {
        read += run_phase(context, report, phase, &server, response_bytes)?;
        thread::sleep(PAUSE);
    }
    Usage::settled(&server, before, Duration::from_secs(5));
    thread::sleep(Duration::from_secs(context.amount.count(10, 60)));
    let after = Usage::of(&server);
    report.note("resident at most, KiB", shown(process::rss_peak_kib(server.pid())));
    report.left("afterwards", before, after, GROWTH_MAX_KIB);
    probe(&server, report)?;
    report.stop(&mut server);
    report_counters(report, &LoggedCounters::at_exit(&server).unwrap_or_default(), read);
    Ok(())
}

/// Fails if the machine can't hold the counts.
fn check_machine() -> Result<()> {
    let wrk = Command::new("wrk").arg("--version").stdin(Stdio::null()).output();
    ensure!(
        wrk.is_ok(),
        "wrk is not installed\nhelp: apt-get install wrk, dnf install wrk, or pacman -S wrk"
    );
    let most = PHASES.iter().map(|phase| phase.connections).max().unwrap_or(0);
    let (limit, needed) = (process::raise_descriptor_limit(), most + DESCRIPTORS_BESIDE);
    ensure!(limit >= needed, "the hard limit of open files is {limit}, needed are {needed} (ulimit -Hn)");
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    ensure!(
        available.is_none_or(|kib| kib >= MEMORY_MIN_KIB),
        "{available:?} KiB of memory are available, needed are {MEMORY_MIN_KIB} (most of it by wrk)"
    );
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let range: Vec<u64> = range.split_whitespace().filter_map(|port| port.parse().ok()).collect();
    if let [first, last] = range[..] {
        let needed: u64 = PHASES.iter().map(|phase| phase.connections).sum();
        ensure!(last - first >= needed, "{} local ports, needed are {needed}", last - first);
    }
    Ok(())
}

/// Sends one request. Returns the length of the response, head and body.
fn probe(server: &Program, report: &mut CaseReport) -> Result<u64> {
    let response = Client::connect(server.address())?.get("/")?;
    let right = response.status() == 200 && response.text() == BODY;
    report.check("probe", response.status(), "200 and the body", right);
    Ok((response.head.text().len() + response.body.len()) as u64)
}

/// Runs `wrk` beside a slow client. Returns the number of responses to both.
fn run_phase(
    context: &CaseContext<'_>,
    report: &mut CaseReport,
    phase: &Phase,
    server: &Program,
    response_bytes: u64,
) -> Result<u64> {
    let script = context
        .write_file(&format!("{}.lua", phase.name), format!("{TALLY}\n{}", phase.script).as_bytes())?;
    let mut command = Command::new("wrk");
    command.arg(format!("-t{}", phase.threads)).arg(format!("-c{}", phase.connections));
    command.arg(format!("-d{}s", phase.seconds)).args(["--timeout", &format!("{}s", phase.timeout_seconds)]);
    command.arg("-s").arg(script).arg(format!("http://{}/", server.address()));
    command.args(["--", &context.seed.to_string()]).stdin(Stdio::null());
    let cpu = process::cpu_ns(server.pid());
    let stop = AtomicBool::new(false);
    let (output, beside) = thread::scope(|scope| {
        let beside = scope.spawn(|| request_beside(server.address(), &stop));
        let output = command.output();
        stop.store(true, Ordering::Relaxed);
        (output, beside.join().unwrap_or_else(|_| Err("the client beside wrk panicked".to_owned())))
    });
    let output = output.context("wrk")?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success() && errors.trim().is_empty(), "wrk: {}: {}", output.status, errors.trim());
    let figures = Figures::parse(&text, phase)?;
    let took = Duration::from_micros(figures.duration_us);
    let cpu = core_percent(cpu, process::cpu_ns(server.pid()), took);

    let what = |text: &str| format!("{}: {text}", phase.name);
    report_figures(report, phase, &figures, response_bytes);
    report.note(what("server's CPU, % of a core"), shown(cpu.map(f64::round)));
    let (responses, slowest) = match beside {
        Ok(seen) => seen,
        Err(error) => {
            report.check(what("a client beside wrk"), error, "no error", false);
            (0, Duration::MAX)
        }
    };
    report.at_most(what("a client beside wrk, slowest"), slowest.as_secs_f64(), BESIDE_LATENCY_MAX_S, "s");
    Ok(figures.requests + responses)
}

/// Sends a request in each interval. Returns the number of responses and the slowest.
fn request_beside(address: SocketAddr, stop: &AtomicBool) -> Result<(u64, Duration), String> {
    let explain = |error: testkit::Error| error.to_string();
    let mut client = Client::connect(address).map_err(explain)?;
    let (mut responses, mut slowest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let response = client.get("/").map_err(explain)?;
        if response.status() != 200 || response.text() != BODY {
            return Err(format!("{:?}", response.head.text()));
        }
        responses += 1;
        slowest = slowest.max(begun.elapsed());
        thread::sleep(BESIDE_INTERVAL.saturating_sub(begun.elapsed()));
    }
    Ok((responses, slowest))
}

fn report_figures(report: &mut CaseReport, phase: &Phase, figures: &Figures, response_bytes: u64) {
    let what = |text: &str| format!("{}: {text}", phase.name);
    let Figures { requests, bytes, built, connect, read, write, status, timeout, .. } = *figures;
    report.within(what("responses"), requests, phase.connections..=u64::MAX);
    for (name, count) in [
        ("responses of 4xx and 5xx", status),
        ("connect errors", connect),
        ("read errors", read),
        ("write errors", write),
        ("timeouts", timeout),
    ] {
        report.equal(what(name), count, 0);
    }
    // All responses are equally long, so that another one would show. The last one of a connection may have arrived in part.
    let most = (requests + phase.connections) * response_bytes;
    report.within(what("bytes read"), bytes, requests * response_bytes..=most);
    if let Some((least, most)) = phase.load {
        // One more than responses for each connection, and one that wrk builds before it starts.
        report.within(what("requests built"), built, requests..=requests + phase.connections + 1);
        let (mean, middle, width) =
            (figures.built_bytes / built.max(1), least.midpoint(most), (most - least) / 8);
        report.within(what("bytes carried, mean"), mean, middle - width..=middle + width);
    }
    if phase.script.contains("CHAOS_BYTES") {
        report.within(what("requests with a 40,000-byte header"), figures.marked, 1..=u64::MAX);
    }
    let rate = requests as f64 * 1e6 / figures.duration_us.max(1) as f64;
    report.note(what("responses per second"), format!("{rate:.0}"));
    let [p50, p99, max] = [figures.p50_us, figures.p99_us, figures.max_us].map(|us| us / 1000);
    report.note(what("latency p50, p99, max, ms"), format!("{p50}, {p99}, {max}"));
}

/// Compares the server's counters with the responses that its clients have read.
fn report_counters(report: &mut CaseReport, counters: &LoggedCounters, read: u64) {
    let connections: u64 = PHASES.iter().map(|phase| phase.connections).sum();
    report.within("requests by the server's count", counters.requests, read..=read + connections);
    // wrk closes in the middle of a request; the part gets a 400 that nobody reads.
    report.within("2xx by the server's count", counters.status_2xx, read..=u64::MAX);
    report.equal("5xx by the server's count", counters.status_5xx, 0);
    // The start, two probes, and in each phase the client beside wrk and the connection by which wrk looks for the server.
    let expected = connections + 3 + 2 * PHASES.len() as u64;
    report.equal("connections by the server's count", counters.connections, expected);
    report.equal("open connections by the server's count", counters.open, 0);
    report.note("limits reached", &counters.limits);
    report.equal("faults by the server's count", counters.faults.as_str(), "");
}

#[cfg(test)]
mod tests {
    use super::{Figures, PHASES};

    const GOOD: &str = "  8 threads and 1000 connections\n\
        tally: {\"threads\":8,\"duration_us\":2099290,\"requests\":287129,\"bytes\":43069350,\"connect\":0,\"read\":0,\"write\":0,\
        \"status\":0,\"timeout\":0,\"p50_us\":6708,\"p99_us\":20308,\"max_us\":67082,\"built\":1,\"marked\":2,\"built_bytes\":3}\n";

    #[test]
    fn rejects_missing_doubled_and_unknown_figures() {
        assert!(Figures::parse(GOOD, &PHASES[0]).is_ok_and(|figures| figures.max_us == 67_082));
        for (part, other) in [
            ("tally: ", ""),
            ("\"p99_us\":20308,", ""),
            ("\"read\":0", "\"read\":0,\"more\":4"),
            ("43069350", "-1"),
            ("\"threads\":8", "\"threads\":7"),
            ("  8 threads", "tally: {}\n"),
        ] {
            assert!(Figures::parse(&GOOD.replace(part, other), &PHASES[0]).is_err(), "{part}");
        }
    }

    #[test]
    fn scripts_send_what_the_phases_say() {
        for phase in &PHASES {
            assert_eq!(phase.script.contains("function request("), phase.load.is_some(), "{}", phase.name);
            if let Some((least, most)) = phase.load {
                let bounds = format!("local LEAST, MOST = {least}, {most}\n");
                assert!(phase.script.contains(&bounds), "{}", phase.name);
            }
        }
    }
}
