//! One server by itself: memory, idleness, start, allocations, instructions.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::{RoundFigures, ServerSetup};
use crate::client::{self, Load, Pacing};
use crate::process::{Threads, output, under};
use crate::programs::{cargo, root};

/// Connections held idle, each after one response.
const IDLE_CONNECTIONS: u32 = 15_000;
/// Time for one response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time from the last response until a quiet server is watched.
const SETTLE: Duration = Duration::from_secs(2);
const WATCH: Duration = Duration::from_secs(10);
/// The test that counts allocations: only the process itself can. It prints a figure for each driver.
const ALLOCATIONS_TEST: &str = "test -p shearwater-files --test allocations -- --nocapture";
const ALLOCATIONS_MARK: &str = "lab-figure allocations=";
/// Requests of the two runs whose instructions are counted, in whole rounds. The difference is the figure: the start and all that
/// is done once cancel out.
const COUNTED_REQUESTS: [u64; 2] = [2_048, 10_240];
const COUNTED_CONNECTIONS: u32 = 32;
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

/// Measures the growth of RSS per idle connection; all must stay open.
pub(crate) fn hold_connections(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let _ = testkit::process::raise_descriptor_limit();
    let server = setup.start()?;
    let before_mib = server.process.mib(testkit::process::rss_kib)?;
    let held: Result<Vec<TcpStream>, String> = (1..=IDLE_CONNECTIONS)
        .map(|serial| {
            served(setup, serial, server.bytes).map_err(|error| format!("connection {serial}: {error}"))
        })
        .collect();
    let held = held?;
    let grown_mib = (server.process.mib(testkit::process::rss_kib)? - before_mib).max(0.0);
    // A connection that the server has closed costs it nothing.
    let closed = held.iter().filter(|stream| !is_open(stream)).count();
    if closed > 0 {
        return Err(format!("{closed} of {IDLE_CONNECTIONS} connections were closed meanwhile"));
    }
    let bytes_per_connection = grown_mib * f64::from(1 << 20) / held.len() as f64;
    Ok([("bytes_per_connection", bytes_per_connection), ("grown_mib", grown_mib)].into())
}

/// Returns a connection after one response.
fn served(setup: &ServerSetup<'_>, serial: u32, response_bytes: u64) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::from(client::connect(setup.address, serial.into(), None, true)?);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(setup.scenario.request().as_bytes())?;
    let mut response = vec![0; response_bytes as usize];
    stream.read_exact(&mut response)?;
    if response.starts_with(b"HTTP/1.1 200") { Ok(stream) } else { Err(ErrorKind::InvalidData.into()) }
}

/// Returns true if the server has neither closed the connection nor sent anything more.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).is_ok()
        && stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Measures CPU time and wake-ups of an idle server.
pub(crate) fn watch_idle(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let server = setup.start()?;
    thread::sleep(SETTLE);
    let ids = server.process.ids();
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

/// Counts the user instructions of one more request by valgrind's callgrind: the same on every machine, but for the program's own
/// random numbers. callgrind doesn't know io_uring.
pub(crate) fn count_instructions(setup: &ServerSetup<'_>) -> Result<RoundFigures, String> {
    let [few, many] = COUNTED_REQUESTS;
    let count = |requests| {
        let found = (1..COUNT_ATTEMPTS).find_map(|_| instructions_of_run(setup, requests).ok());
        found.map_or_else(|| instructions_of_run(setup, requests), Ok)
    };
    let (least, most) = (count(few)?, count(many)?);
    Ok([("instructions", (most as f64 - least as f64) / (many - few) as f64)].into())
}

/// Counts the instructions of a server from its start to its end. The client sends in rounds, so that every turn of the server
/// has the same number of requests.
fn instructions_of_run(setup: &ServerSetup<'_>, requests: u64) -> Result<u64, String> {
    // Emptied, so that an earlier total can't pass for a missing one.
    let counted = setup.bench.folder.write("callgrind.out", "")?;
    let out = format!("--callgrind-out-file={}", counted.display());
    let command = under("valgrind", &["--tool=callgrind", &out], &setup.command()?);
    let mut server = setup.start_as(&command)?;
    let load = Load {
        connections: COUNTED_CONNECTIONS,
        pacing: Pacing::Rounds,
        responses_max: Some(requests),
        latencies: false,
        ..setup.scenario.load(setup.address, server.bytes, COUNTED_WAIT_MAX.as_millis() as u64)
    };
    let counts = client::run(&load)?;
    server.process.end_within(COUNTED_WAIT_MAX);
    if counts.responses != requests || counts.socket_errors() + counts.status_errors > 0 {
        return Err(format!("{} of {requests} responses; {counts:?}", counts.responses));
    }
    let text = fs::read_to_string(&counted).map_err(|error| format!("{}: {error}", counted.display()))?;
    parse_instructions(&text).ok_or_else(|| format!("{} has no total", counted.display()))
}

/// Parses the number of instructions in callgrind's file.
fn parse_instructions(text: &str) -> Option<u64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener};

    use super::*;

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

    #[test]
    fn a_connection_closed_by_the_server_is_not_open() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let held = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (server, _) = listener.accept().expect("a client");
        assert!(is_open(&held));
        server.shutdown(Shutdown::Write).expect("it is connected");
        held.set_nonblocking(false).expect("a socket");
        assert_eq!((&held).read(&mut [0; 1]).expect("its end"), 0);
        assert!(!is_open(&held));
    }
}
