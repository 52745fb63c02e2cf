//! Trial `panic`: a panicking handler costs its own request and nothing else, a hundred thousand times.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::harness::answer::Fault;
use crate::harness::client::{Client, request};
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::process::{growth_kib, settle_descriptors};
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// What the good route answers.
const GOOD_BODY: &[u8] = b"Hello, world\n";
/// Resident memory may grow by this after the warm-up, KiB.
const GROWTH_MAX_KIB: f64 = 1024.0;
/// How long the server has to notice the last clients' ends.
const SETTLE: Duration = Duration::from_secs(5);
/// A thread gives up after this many wrong answers.
const WRONG_MAX: usize = 100;

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Requests to the panicking route; as many good ones go between them
    #[arg(long, default_value_t = 100_000)]
    panics: u64,
    /// Panicking requests before the first measurement
    #[arg(long, default_value_t = 5_000)]
    warm_up: u64,
    /// Client threads
    #[arg(long, default_value_t = 4)]
    threads: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { panics: 100_000, warm_up: 5_000, threads: 4 }
    }
}

#[derive(Debug, Default)]
struct Tally {
    answered_500: u64,
    closed: u64,
    good: u64,
    wrong: Vec<String>,
}

/// Runs the trial.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let server = Server::example(common, &[], &folder)?;
    let at_start = server.snapshot();
    let warm_up = provoke(server.address(), options.warm_up, options.threads);
    settle_descriptors(server.pid(), at_start.descriptors, SETTLE);
    let before = server.snapshot();
    let logged_before = server.logged_bytes();
    let started = Instant::now();
    let tally = provoke(server.address(), options.panics, options.threads);
    let elapsed = started.elapsed();
    let descriptors = settle_descriptors(server.pid(), before.descriptors, SETTLE);
    let after = server.snapshot();

    let mut report = Report::new();
    let struck = tally.answered_500 + tally.closed;
    report.equal("panicking requests: 500 or an orderly end", struck, options.panics);
    report.note("of these answered with 500", tally.answered_500);
    report.equal("good requests between them: right", tally.good, options.panics);
    let wrong = [warm_up.wrong, tally.wrong].concat();
    report.equal("wrong", wrong.len() as u64, 0);
    report.examples("wrong", &wrong);
    report.back_at("descriptors after", descriptors, before.descriptors);
    let growth = growth_kib(before.rss_kib, after.rss_kib);
    report.at_most_if_measured("resident growth", growth, GROWTH_MAX_KIB, 0, "KiB");
    report.note("resident after, KiB", after.rss_kib);
    report.note("panics per second", format!("{:.0}", options.panics as f64 / elapsed.as_secs_f64()));
    report.note("bytes logged meanwhile", server.logged_bytes() - logged_before);
    server.stop(&mut report)?;
    Ok(report)
}

fn provoke(address: SocketAddr, panics: u64, threads: u64) -> Tally {
    let next = AtomicU64::new(0);
    let work = || {
        let mut tally = Tally::default();
        let mut struck = Line::new(address, "/panic");
        let mut good = Line::new(address, "/");
        while next.fetch_add(1, Ordering::Relaxed) < panics && tally.wrong.len() < WRONG_MAX {
            panic_once(&mut struck, &mut tally);
            good_once(&mut good, &mut tally);
        }
        tally
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut total = Tally::default();
        for handle in handles {
            match handle.join() {
                Ok(tally) => total.add(tally),
                Err(_) => total.wrong.push("a client thread panicked".to_owned()),
            }
        }
        total
    })
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.answered_500 += other.answered_500;
        self.closed += other.closed;
        self.good += other.good;
        self.wrong.extend(other.wrong);
    }
}

fn panic_once(line: &mut Line, tally: &mut Tally) {
    match line.ask() {
        Ok((500, _)) => tally.answered_500 += 1,
        Ok((status, _)) => tally.wrong.push(format!("/panic answered with {status}")),
        Err(Fault::Closed) => tally.closed += 1,
        Err(fault) => tally.wrong.push(format!("/panic: {fault}")),
    }
}

fn good_once(line: &mut Line, tally: &mut Tally) {
    match line.ask() {
        Ok((200, body)) if body == GOOD_BODY => tally.good += 1,
        Ok((status, body)) => tally.wrong.push(format!("/ answered with {status}, {} bytes", body.len())),
        Err(fault) => tally.wrong.push(format!("/: {fault}")),
    }
}

/// A connection that is kept as long as the server keeps it.
struct Line {
    address: SocketAddr,
    request: Vec<u8>,
    client: Option<Client>,
}

impl Line {
    fn new(address: SocketAddr, target: &str) -> Self {
        Self { address, request: request("GET", target), client: None }
    }

    /// Asks once. After an answer that announces the end, the end has to come, and without a reset.
    fn ask(&mut self) -> Result<(u16, Vec<u8>), Fault> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::open(self.address)?,
        };
        let answer = client.exchange(&self.request, false)?;
        if answer.head.announces_close() {
            client.end()?;
        } else {
            self.client = Some(client);
        }
        Ok((answer.head.status, answer.body))
    }
}
