//! Trial `early-errors`: a client that is refused in the middle of sending, goes on sending and reads only then must find the
//! whole answer and the end of the connection: never a reset.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::answer::Fault;
use crate::harness::client::Client;
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// The server's limit on bodies in this trial, bytes.
const BODY_LIMIT: usize = 1024 * 1024;
/// How much of a refused body the client has in mind.
const BODY_DECLARED: usize = 20_000_000;
/// How much of a refused head the client has in mind.
const HEAD_LENGTH: usize = 1024 * 1024;
/// How much goes into one write.
const PIECE: usize = 16 * 1024;
/// How long one write may wait for room before the client looks at its clock again.
const WRITE_PATIENCE: Duration = Duration::from_millis(100);
/// Clients at a time.
const THREADS: usize = 20;

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Connections for each kind of refusal
    #[arg(long, default_value_t = 200)]
    connections: usize,
    /// How long a client goes on sending at most before it reads, milliseconds
    #[arg(long, default_value_t = 1_000)]
    send_on_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections: 200, send_on_ms: 1_000 }
    }
}

/// A request that is refused before its end.
#[derive(Debug)]
struct Case {
    name: &'static str,
    status: u16,
    opening: String,
    /// Sent again and again after the opening.
    filler: Vec<u8>,
    /// How many bytes of filler the client has in mind.
    length: usize,
}

fn cases() -> Vec<Case> {
    let post = "POST /count HTTP/1.1\r\nHost: trial.test\r\n";
    let get = "GET / HTTP/1.1\r\nHost: trial.test\r\n";
    let letters = vec![b'a'; PIECE];
    let chunk = [format!("{PIECE:x}\r\n").into_bytes(), letters.clone(), b"\r\n".to_vec()].concat();
    let case = |name, status, opening: String, filler: &[u8], length| {
        let filler = filler.to_vec();
        Case { name, status, opening, filler, length }
    };
    let declared = format!("{post}Content-Length: {BODY_DECLARED}\r\n\r\n");
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n");
    let ambiguous = format!("{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n");
    vec![
        case("413, declared length", 413, declared, &letters, BODY_DECLARED),
        case("413, chunked", 413, chunked, &chunk, BODY_DECLARED),
        case("414, endless target", 414, "GET /".to_owned(), &letters, HEAD_LENGTH),
        case("431, endless field", 431, format!("{get}X-Endless: "), &letters, HEAD_LENGTH),
        case("431, endless fields", 431, get.to_owned(), &b"X-Field: value\r\n".repeat(1024), HEAD_LENGTH),
        case("400, two lengths", 400, ambiguous, &letters, HEAD_LENGTH),
    ]
}

/// Runs the trial.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let settings = [("SHEARWATER_BODY_MAX", BODY_LIMIT.to_string())];
    let server = Server::example(common, &settings, &folder)?;
    let mut report = Report::new();
    for case in cases() {
        let sent_before = Instant::now();
        let wrong = try_case(server.address(), &case, options);
        let good = options.connections - wrong.len().min(options.connections);
        let what = format!("{}: answer read, then the end", case.name);
        report.equal(&what, good as u64, options.connections as u64);
        report.examples("wrong", &wrong);
        report.note(&format!("{}: took", case.name), format!("{:.1} s", sent_before.elapsed().as_secs_f64()));
    }
    server.stop(&mut report)?;
    Ok(report)
}

/// All connections of one case; what went wrong on those where something did.
fn try_case(address: SocketAddr, case: &Case, options: &Options) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while next.fetch_add(1, Ordering::Relaxed) < options.connections {
            if let Err(why) = try_once(address, case, options) {
                wrong.push(why);
            }
        }
        wrong
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended
            .flat_map(|wrong| wrong.unwrap_or_else(|_| vec!["a client thread panicked".to_owned()]))
            .collect()
    })
}

fn try_once(address: SocketAddr, case: &Case, options: &Options) -> Result<(), String> {
    let mut client = Client::open(address).map_err(|fault| format!("connect: {fault}"))?;
    client.send(case.opening.as_bytes()).map_err(|fault| format!("sending the opening: {fault}"))?;
    let sent = send_on(&client, case, Duration::from_millis(options.send_on_ms))
        .map_err(|fault| format!("sending on: {fault}"))?;
    let after = |fault: Fault| format!("{fault} (after {sent} bytes sent on)");
    let answer = client.answer(false).map_err(after)?;
    if answer.head.status != case.status {
        return Err(format!("status {} instead of {}", answer.head.status, case.status));
    }
    client.end().map_err(|fault| format!("after the answer: {fault}"))
}

/// Sends filler until all is sent or the time is up, without a look at what may have arrived. A connection whose other end has
/// stopped reading is no error, one that was reset is.
fn send_on(client: &Client, case: &Case, time: Duration) -> Result<usize, Fault> {
    let mut stream = client.stream();
    stream.set_write_timeout(Some(WRITE_PATIENCE))?;
    let deadline = Instant::now() + time;
    let mut sent = 0;
    while sent < case.length && Instant::now() < deadline {
        let from = sent % case.filler.len();
        let until = case.filler.len().min(from + case.length - sent);
        match stream.write(&case.filler[from..until]) {
            Ok(length) => sent += length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}
