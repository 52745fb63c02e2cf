//! Trial `drain`: `SIGTERM` costs no request. What was written before the signal is answered whole, also what still waits in
//! the accept queue; the deadline is kept; a second signal ends it at once.
//!
//! The accept queue is filled for certain: the server is stopped (`SIGSTOP`) while the burst connects and writes, then gets its
//! `SIGTERM`, then goes on (`SIGCONT`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::drain_load::{Moment, Tally, load, one_answer, one_answer_of};
use crate::harness::answer::Fault;
use crate::harness::client::{Client, request};
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::report::Report;
use crate::harness::server::{Server, Signal, yes_or_no};
use crate::harness::trouble::{During, Outcome};

/// Threads that share the keep-alive connections.
const LOAD_THREADS: usize = 8;
/// How long the load runs before the signal.
const LOAD_TIME: Duration = Duration::from_secs(1);
/// What the slow route answers.
const SLOW_BODY: &[u8] = b"slow\n";
/// Time for a step of the trial to reach the server.
const PAUSE: Duration = Duration::from_millis(100);
/// Lateness allowed to a process end.
const TOLERANCE: Duration = Duration::from_secs(1);
/// A request that outlasts every deadline here, milliseconds.
const ENDLESS_MS: u64 = 20_000;

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Keep-alive connections under load
    #[arg(long, default_value_t = 200)]
    connections: usize,
    /// Connections that wait in the accept queue with two requests written
    #[arg(long, default_value_t = 500)]
    burst: usize,
    /// Slow requests in flight
    #[arg(long, default_value_t = 20)]
    slow: usize,
    /// How long a slow request takes, milliseconds; a blocking handler holds its worker for that time
    #[arg(long, default_value_t = 150)]
    slow_ms: u64,
    /// The drain's deadline under load, milliseconds
    #[arg(long, default_value_t = 10_000)]
    deadline_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections: 200, burst: 500, slow: 20, slow_ms: 150, deadline_ms: 10_000 }
    }
}

/// Runs the trial.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let mut report = Report::new();
    under_load(common, options, &mut report)?;
    idle_connections(common, options, &mut report)?;
    past_the_deadline(common, &mut report)?;
    second_signal(common, &mut report)?;
    Ok(report)
}

fn start(common: &Common, folder: &Folder, deadline_ms: u64) -> Outcome<Server> {
    Server::example(common, &[("SHEARWATER_DRAIN_MS", deadline_ms.to_string())], folder)
}

fn under_load(common: &Common, options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = Folder::new(common.keep)?;
    let mut server = start(common, &folder, options.deadline_ms)?;
    let address = server.address();
    let moment = Arc::new(Moment::default());
    let threads = start_load(address, options.connections, &moment);
    std::thread::sleep(LOAD_TIME);
    let slow = open_with(address, options.slow, &request("GET", &format!("/slow?ms={}", options.slow_ms)))?;
    std::thread::sleep(PAUSE);
    server.signal(Signal::STOP)?;
    std::thread::sleep(PAUSE);
    let burst = open_with(address, options.burst, &request("GET", "/").repeat(2))?;
    moment.strike();
    let signalled = Instant::now();
    server.signal(Signal::TERM)?;
    server.signal(Signal::CONT)?;

    let burst = collect(burst, two_answers);
    let slow = collect(slow, |client| one_answer_of(client, SLOW_BODY));
    let mut kept = Tally::default();
    for thread in threads {
        kept.add(thread.join().map_err(|_| "a client thread panicked")?);
    }
    let deadline = Duration::from_millis(options.deadline_ms);
    let status = server.wait_for_end(deadline + TOLERANCE);
    let took = signalled.elapsed();
    report_kept(report, &kept, options.connections);
    report_answered(report, "accept queue, two requests each", &burst);
    let most = burst.announced * 2 >= burst.due;
    report.check("accept queue: most answers announce the end", yes_or_no(most), "yes", most);
    report_answered(report, "slow requests in flight", &slow);
    let shown = status.map_or("still running".to_owned(), |status| status.to_string());
    report.check("end under load", shown, "exit status: 0", status.is_some_and(|status| status.success()));
    report.at_most("end under load after", took.as_secs_f64(), deadline.as_secs_f64(), 2, "s");
    Ok(())
}

fn start_load(address: SocketAddr, connections: usize, moment: &Arc<Moment>) -> Vec<JoinHandle<Tally>> {
    let share = |thread: usize| (connections + thread) / LOAD_THREADS;
    let spawn = |thread| {
        let moment = Arc::clone(moment);
        let count = share(thread);
        std::thread::spawn(move || load(address, count, &moment))
    };
    (0..LOAD_THREADS).map(spawn).collect()
}

fn open_with(address: SocketAddr, count: usize, bytes: &[u8]) -> Outcome<Vec<Client>> {
    let open = || {
        let mut client = Client::open(address)?;
        client.send(bytes)?;
        Ok(client)
    };
    let clients: Result<Vec<Client>, Fault> = (0..count).map(|_| open()).collect();
    clients.during("connecting before the signal")
}

/// Reads the one answer of each connection, and sees it end.
fn collect(clients: Vec<Client>, read: impl Fn(&mut Client) -> Result<bool, Fault>) -> Tally {
    let mut tally = Tally { due: clients.len() as u64, ..Tally::default() };
    for mut client in clients {
        match read(&mut client) {
            Ok(closes) => {
                tally.right += 1;
                see_the_end(&mut client, closes, &mut tally);
            }
            Err(fault) => tally.wrong.push(fault.to_string()),
        }
    }
    tally
}

fn report_kept(report: &mut Report, kept: &Tally, connections: usize) {
    report.equal("keep-alive: requests before the signal answered", kept.right, kept.due);
    report.equal("keep-alive: connections that ended in order", kept.ended_well(), connections as u64);
    report.note("keep-alive: ended by Connection: close", kept.announced);
    report.note("keep-alive: ended while idle", kept.idle);
    report.note("keep-alive: ended under a later request", kept.too_late);
    report.examples("wrong", &kept.wrong);
}

/// Both of two pipelined requests have a right to their answer: the first may not announce the end.
fn two_answers(client: &mut Client) -> Result<bool, Fault> {
    if one_answer(client)? {
        return Err(Fault::Malformed("the first of two answers announced the end".to_owned()));
    }
    one_answer(client)
}

/// An answer that was under way when the signal came need not announce the end, but then the idle connection has to end.
fn see_the_end(client: &mut Client, announced: bool, tally: &mut Tally) {
    if announced {
        tally.announced += 1;
        return;
    }
    match client.end() {
        Ok(()) => tally.idle += 1,
        Err(fault) => tally.wrong.push(format!("after an answer that did not announce the end: {fault}")),
    }
}

fn report_answered(report: &mut Report, name: &str, tally: &Tally) {
    report.equal(&format!("{name}: answered"), tally.right, tally.due);
    report.equal(&format!("{name}: connections that ended in order"), tally.ended_well(), tally.due);
    report.note(&format!("{name}: answers with Connection: close"), tally.announced);
    report.examples("wrong", &tally.wrong);
}

/// Idle connections end in order, and do not hold the end up.
fn idle_connections(common: &Common, options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = Folder::new(common.keep)?;
    let mut server = start(common, &folder, options.deadline_ms)?;
    let mut clients = open_with(server.address(), options.connections, &request("GET", "/"))?;
    for client in &mut clients {
        one_answer(client).during("asking on a connection that will be idle")?;
    }
    let signalled = Instant::now();
    server.signal(Signal::TERM)?;
    let status = server.wait_for_end(TOLERANCE * 3);
    let took = signalled.elapsed();
    let ends = clients.iter_mut().filter_map(|client| client.end().err());
    let wrong: Vec<String> = ends.map(|fault| fault.to_string()).collect();
    report.equal("idle connections: not ended in order", wrong.len() as u64, 0);
    report.examples("wrong", &wrong);
    let clean = status.is_some_and(|status| status.success());
    report.check("idle connections: exit status 0", yes_or_no(clean), "yes", clean);
    report.at_most("idle connections: end after", took.as_secs_f64(), TOLERANCE.as_secs_f64(), 2, "s");
    Ok(())
}

/// A request that outlasts the deadline does not outlast the server.
fn past_the_deadline(common: &Common, report: &mut Report) -> Outcome<()> {
    const DEADLINE_MS: u64 = 2_000;
    let folder = Folder::new(common.keep)?;
    let mut server = start(common, &folder, DEADLINE_MS)?;
    let slow = open_with(server.address(), 1, &request("GET", &format!("/slow?ms={ENDLESS_MS}")))?;
    std::thread::sleep(PAUSE);
    let signalled = Instant::now();
    server.signal(Signal::TERM)?;
    let deadline = Duration::from_millis(DEADLINE_MS);
    let status = server.wait_for_end(deadline + TOLERANCE * 3);
    let took = signalled.elapsed();
    drop(slow);
    let held = took >= deadline.saturating_sub(TOLERANCE) && took <= deadline + TOLERANCE;
    let measured = format!("{:.2} s", took.as_secs_f64());
    report.check(
        "slow request past the deadline: end after",
        measured,
        "2 s +- 1 s",
        held && status.is_some(),
    );
    let shown = status.map_or("still running".to_owned(), |status| status.to_string());
    report.note("slow request past the deadline", shown);
    Ok(())
}

/// The second signal ends the drain at once.
fn second_signal(common: &Common, report: &mut Report) -> Outcome<()> {
    let folder = Folder::new(common.keep)?;
    let mut server = start(common, &folder, ENDLESS_MS)?;
    let slow = open_with(server.address(), 1, &request("GET", &format!("/slow?ms={ENDLESS_MS}")))?;
    std::thread::sleep(PAUSE);
    server.signal(Signal::TERM)?;
    std::thread::sleep(PAUSE * 3);
    let draining = server.alive();
    report.check("first signal: still draining", yes_or_no(draining), "yes", draining);
    let signalled = Instant::now();
    server.signal(Signal::TERM)?;
    let status = server.wait_for_end(TOLERANCE * 3);
    let took = signalled.elapsed();
    drop(slow);
    report.at_most("second signal: end after", took.as_secs_f64(), TOLERANCE.as_secs_f64(), 2, "s");
    report.note("second signal", status.map_or("still running".to_owned(), |status| status.to_string()));
    Ok(())
}
