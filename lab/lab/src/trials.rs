//! One server by itself: memory, idleness, start, allocations, instructions.

use std::collections::HashSet;
use std::fs;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::{RoundFigures, ServerSetup};
use crate::client::{self, COUNT, HeldConnections, HeldThread, Load, Pacing};
use crate::process::{Threads, output, under};
use crate::programs::{cargo, root};

/// Ports of connections held idle.
const IDLE_PORTS: Range<u16> = 10_000..25_000;
/// Interval at which they are counted while they are opened.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time from the last response until an idle server is watched, and how long.
pub(crate) const SETTLE: Duration = Duration::from_secs(2);
pub(crate) const WATCH: Duration = Duration::from_secs(10);
/// The test that counts allocations: only the process itself can. It prints a figure for each driver.
const ALLOCATIONS_TEST: &str = "test -p shearwater-files --test allocations -- --nocapture";
const ALLOCATIONS_MARK: &str = "lab-figure allocations=";
/// Requests of the two runs whose instructions are counted, in whole rounds. The difference is the figure: the start and all that
/// is done once cancel out.
const COUNTED_REQUESTS: [u64; 2] = [2_048, 10_240];
const COUNTED_CONNECTIONS: u32 = 32;
/// Functions of the system's allocator that allocate. A program with another allocator doesn't call them.
const ALLOCATORS: [&str; 6] = ["malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"];
/// Attempts at a run: valgrind 3.19 sometimes fails an assertion of its own when a signal ends the server.
const COUNT_ATTEMPTS: u32 = 3;
/// Time for a server to respond and to end while its instructions are counted.
const COUNTED_WAIT_MAX: Duration = Duration::from_secs(300);

/// Measures the memory of a server after one response.
pub(crate) fn fresh_memory(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let server = setup.start()?;
    Ok([("rss_mib", server.process.mib(testkit::process::rss_kib)?)].into())
}

/// Measures the time from a server's start to its first response, and its memory then.
pub(crate) fn start(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let command = setup.command()?;
    let started = Instant::now();
    let server = setup.start_as(&command)?;
    let start_s = started.elapsed().as_secs_f64();
    Ok([("start_s", start_s), ("rss_mib", server.process.mib(testkit::process::rss_kib)?)].into())
}

/// Measures the growth of RSS per idle connection, each after one response; all must stay open.
pub(crate) fn hold_connections(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    testkit::process::raise_descriptor_limit();
    let server = setup.start()?;
    let before_mib = server.process.mib(testkit::process::rss_kib)?;
    let scenario = setup.scenario.load(setup.address, &server.expected, 0);
    let load = Load { connections: 0, pacing: Pacing::Rate(1), latencies: true, ..scenario };
    let held = HeldConnections {
        source: Ipv4Addr::new(127, 0, 1, 1),
        ports: IDLE_PORTS,
        opened_per_s: 20_000,
        pending_max: 256,
        keep_alive_ms: 3_600_000,
    };
    let failed = |error: std::io::Error| format!("client: {error}");
    let mut client = HeldThread::start(load, held).map_err(failed)?;
    let counts = loop {
        match client.order(COUNT).map_err(failed)? {
            counts if counts.is_settled() => break counts,
            _ => thread::sleep(POLL_INTERVAL),
        }
    };
    let grown_mib = (server.process.mib(testkit::process::rss_kib)? - before_mib).max(0.0);
    // A connection that the server has closed costs it nothing.
    if counts.held != IDLE_PORTS.len() as u64 {
        return Err(format!(
            "{} of {} connections are held: {:?}",
            counts.held,
            IDLE_PORTS.len(),
            counts.failures
        ));
    }
    let bytes_per_connection = grown_mib * f64::from(1 << 20) / counts.held as f64;
    Ok([("bytes_per_connection", bytes_per_connection), ("grown_mib", grown_mib)].into())
}

/// Measures CPU time and wake-ups of an idle server.
pub(crate) fn watch_idle(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let server = setup.start()?;
    let ids = server.process.ids();
    thread::sleep(SETTLE);
    let (before, started) = (Threads::of(ids)?, Instant::now());
    thread::sleep(WATCH);
    let after = Threads::of(ids)?;
    let seconds = started.elapsed().as_secs_f64();
    if !after.are_those_of(&before) {
        return Err("threads started or ended meanwhile".to_owned());
    }
    let spent = after.since(&before)?;
    let cpu_percent = spent.cpu_ns as f64 / 1e9 / seconds * 100.0;
    Ok([("cpu_percent", cpu_percent), ("wake_ups_per_s", spent.switches as f64 / seconds)].into())
}

/// Runs the test that counts allocations, of the server's revision; the worst driver's figure counts.
pub(crate) fn allocations(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let mut command = Command::new(cargo());
    command.current_dir(root()).args(ALLOCATIONS_TEST.split(' '));
    let build = setup.spec.build.as_deref().unwrap_or_default();
    if let Some((sources, target)) = setup.bench.programs.sources.get(build) {
        command.current_dir(sources).env("CARGO_TARGET_DIR", target);
    }
    Ok([("allocations", parse_allocations(&output(command)?)?)].into())
}

fn parse_allocations(printed: &str) -> Result<f64, String> {
    let passed = printed.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    let passed: u32 = passed.filter_map(|rest| rest.split_once(' ')?.0.parse::<u32>().ok()).sum();
    if passed == 0 {
        return Err(format!("`cargo {ALLOCATIONS_TEST}` runs no test"));
    }
    // The runner may have begun the line with the test's name.
    let figures =
        printed.lines().filter_map(|line| line.split_once(ALLOCATIONS_MARK)?.1.trim().parse::<f64>().ok());
    let worst = figures.filter(|figure| figure.is_finite()).reduce(f64::max);
    worst.ok_or_else(|| {
        format!("`cargo {ALLOCATIONS_TEST}` passes, but prints no line with `{ALLOCATIONS_MARK}`")
    })
}

/// Counts the user instructions of one more request, and its calls of the system's allocator, by valgrind's callgrind: the same on
/// every machine, but for the program's own random numbers. callgrind doesn't know io_uring.
pub(crate) fn count_instructions(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let [few, many] = COUNTED_REQUESTS;
    let count = |requests| {
        let found = (1..COUNT_ATTEMPTS).find_map(|_| counts_of_run(setup, requests).ok());
        found.map_or_else(|| counts_of_run(setup, requests), Ok)
    };
    let (least, most) = (count(few)?, count(many)?);
    let each = |at: usize| (most[at] as f64 - least[at] as f64) / (many - few) as f64;
    Ok([("instructions", each(0)), ("malloc_calls", each(1))].into())
}

/// Counts the instructions and allocations of a server from its start to its end. The client sends in rounds, so that every turn
/// of the server has the same number of requests.
fn counts_of_run(setup: &ServerSetup<'_>, requests: u64) -> Result<[u64; 2], String> {
    // Emptied, so that an earlier total can't pass for a missing one.
    let counted = setup.bench.folder.write("callgrind.out", "")?;
    let out = format!("--callgrind-out-file={}", counted.display());
    let command = under("valgrind", &["--tool=callgrind", &out], &setup.command()?);
    let mut server = setup.start_as(&command)?;
    let load = Load {
        connections: COUNTED_CONNECTIONS.min(setup.scenario.connections),
        pacing: Pacing::Rounds,
        responses_max: Some(requests),
        latencies: false,
        ..setup.load(&server.expected, COUNTED_WAIT_MAX.as_secs() as u32)
    };
    let counts = client::run(&load)?;
    server.process.end_within(COUNTED_WAIT_MAX);
    if counts.responses != requests || counts.socket_errors() + counts.wrong_responses() > 0 {
        return Err(format!("{} of {requests} responses; {counts:?}", counts.responses));
    }
    let text = fs::read_to_string(&counted).map_err(|error| format!("{}: {error}", counted.display()))?;
    let instructions = parse_instructions(&text);
    let instructions = instructions.ok_or_else(|| format!("{} has no total", counted.display()))?;
    Ok([instructions, parse_allocator_calls(&text)])
}

/// Parses the number of instructions in callgrind's file.
fn parse_instructions(text: &str) -> Option<u64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

/// Adds up the calls of the allocator in callgrind's file, which numbers a name where it first has it.
fn parse_allocator_calls(text: &str) -> u64 {
    let (mut allocators, mut is_called, mut calls) = (HashSet::new(), false, 0);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            let (number, name) = name.split_once(' ').unwrap_or((name, ""));
            if ALLOCATORS.contains(&name.trim_start_matches("__libc_")) {
                allocators.insert(number);
            }
            is_called = line.starts_with('c') && allocators.contains(number);
        } else if let Some(called) = line.strip_prefix("calls=").filter(|_| is_called) {
            calls += called.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocator_calls_are_those_of_numbered_names() {
        let text = "fn=(1) main\ncfn=(2) malloc\ncalls=3 0\n5 9\ncfn=(4) free\ncalls=7 0\n\nfn=(2)\n1 1\nfn=(5) x\n\
                    cfn=(2)\ncalls=2 0\ncfn=(6) __libc_calloc\ncalls=1 0\n";
        assert_eq!(parse_allocator_calls(text), 6);
    }

    #[test]
    fn allocations_are_the_worst_figure_printed() {
        let passed = "test result: ok. 2 passed; 0 failed; 0 ignored";
        let printed = format!(
            "running 2 tests\ntest a ... lab-figure allocations=0\nok\nlab-figure allocations=3\n{passed}\n"
        );
        assert_eq!(parse_allocations(&printed), Ok(3.0));
        assert!(parse_allocations(passed).is_err_and(|why| why.contains("prints no line")));
        let none = "running 0 tests\nlab-figure allocations=0\ntest result: ok. 0 passed; 0 failed\n";
        assert!(parse_allocations(none).is_err_and(|why| why.contains("runs no test")));
        assert!(parse_allocations(&format!("lab-figure allocations=inf\n{passed}\n")).is_err());
    }

    #[test]
    fn parses_the_instructions_of_callgrind() {
        assert_eq!(parse_instructions("events: Ir\nfn=main\n1 7\n\ntotals: 48120\n"), Some(48_120));
        assert_eq!(parse_instructions("events: Ir\n"), None);
        assert_eq!(parse_instructions("totals: many\n"), None);
    }
}
