//! Group `log`: an access log drops no line at 240,000 requests a second, and accounts for every line at any rate.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testkit::{Client, Program, Signal};

use crate::context::{CaseContext, in_threads};
use crate::report::CaseReport;
use crate::usage::{LoggedCounters, wait_until};

const CONNECTIONS: u64 = 8;
/// Requests sent at once on a connection.
const PIPELINED: usize = 250;
const REQUEST: &str = "GET /page.txt HTTP/1.1\r\nHost: a\r\nUser-Agent: cargo e2e log\r\n\r\n";
/// Requests a second over all connections, and lines a second that must arrive in the file without a drop.
const RATE: u64 = 240_000;
const RATE_MIN: u64 = 200_000;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends batches on one connection, at an interval or at once after the last responses. Each response has as many bytes as
/// the first one, since only its date differs.
fn send_batches(address: SocketAddr, batches: u64, interval: Duration, response_bytes: usize) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let batch = REQUEST.repeat(PIPELINED);
    let mut responses = vec![0; PIPELINED * response_bytes];
    let mut due = Instant::now();
    for _ in 0..batches {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        due += interval;
        stream.write_all(batch.as_bytes())?;
        stream.read_exact(&mut responses)?;
        let are_good = responses.chunks(response_bytes).all(|one| one.starts_with(b"HTTP/1.1 200 "));
        ensure!(are_good, "a response isn't 200, or has another length");
    }
    Ok(())
}

/// Returns the last counts of the log that the server has written on a signal: lines written, and dropped.
fn counts(server: &Program) -> Result<(u64, u64)> {
    let reports = |log: &str| log.matches("shearwater: access log: ").count();
    let before = reports(&server.log());
    server.signal(Signal::USR1)?;
    ensure!(wait_until(TIMEOUT, || reports(&server.log()) > before), "no counts of the log");
    let log = server.log();
    let line = log.rsplit("shearwater: access log: ").next().unwrap_or_default();
    let mut words = line.split(' ');
    let mut number = || words.by_ref().find_map(|word| word.parse().ok());
    number().zip(number()).context("two counts")
}

fn lines_of(file: File) -> Result<u64> {
    let (mut reader, mut bytes, mut lines) = (BufReader::new(file), vec![0; 1 << 20], 0);
    loop {
        let length = reader.read(&mut bytes)?;
        if length == 0 {
            return Ok(lines);
        }
        lines += bytes[..length].iter().filter(|byte| **byte == b'\n').count() as u64;
    }
}

/// Figures of one run.
struct Logged {
    sent: u64,
    lines_per_second: u64,
    written: u64,
    dropped: u64,
}

/// Sends pipelined requests, waits for their lines, and compares the log's counts with the requests and the file.
fn drive(context: &CaseContext<'_>, report: &mut CaseReport, interval: Duration) -> Result<Logged> {
    context.write_file("site/page.txt", b"a short page\n")?;
    let log = context.folder.join("access.log");
    let mut command = Command::new(&context.programs.server);
    command.arg(context.folder.join("site")).arg("--log").arg(&log);
    let mut server = context.start_server(command)?;
    let address = server.address();
    let first = Client::connect(address)?.request("GET", "/page.txt", &[])?;
    ensure!(first.status() == 200, "the first response: {first:?}");
    let response_bytes = first.head.text().len() + first.body.len();

    let batches = context.count(500, 2_000);
    let sent = CONNECTIONS * batches * PIPELINED as u64;
    let begun = Instant::now();
    let results = in_threads(CONNECTIONS, |_| send_batches(address, batches, interval, response_bytes));
    let responded = begun.elapsed();
    let errors: Vec<String> =
        results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    report.none("wrong responses, and broken connections", &errors);
    let (mut written, mut dropped) = (0, 0);
    while begun.elapsed() < TIMEOUT && written + dropped < sent + 1 {
        (written, dropped) = counts(&server)?;
    }
    let lines_per_second = (written as f64 / begun.elapsed().as_secs_f64()) as u64;
    report.note("requests", sent);
    report.note("responses a second", (sent as f64 / responded.as_secs_f64()) as u64);
    report.stop(&mut server);
    let counters = LoggedCounters::at_exit(&server).context("counters")?;
    report.equal("requests by the server's count", counters.requests, sent + 1);
    report.equal("lines written and dropped, by the log's count", written + dropped, sent + 1);
    report.equal("lines in the file, less those written", lines_of(File::open(&log)?)?.abs_diff(written), 0);
    let is_told = server.log().contains("is too slow: lines are being dropped")
        || server.log().contains("lines of the access log");
    report.check("drops are reported", is_told, "if there are any", is_told == (dropped > 0));
    Ok(Logged { sent, lines_per_second, written, dropped })
}

/// Sends requests at a fixed rate. No line is dropped.
pub(crate) fn rate(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let interval = Duration::from_secs(CONNECTIONS * PIPELINED as u64) / RATE as u32;
    let logged = drive(context, report, interval)?;
    report.within("lines a second, until all are in the file", logged.lines_per_second, RATE_MIN..=u64::MAX);
    report.equal("lines written", logged.written, logged.sent + 1);
    report.equal("lines dropped", logged.dropped, 0);
    Ok(())
}

/// Sends requests as quickly as responses arrive. The log may drop lines then, but counts and reports each.
pub(crate) fn unpaced(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let logged = drive(context, report, Duration::ZERO)?;
    report.note("lines a second, until all are in the file", logged.lines_per_second);
    report.note("lines dropped", logged.dropped);
    Ok(())
}
