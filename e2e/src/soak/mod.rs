//! Group `soak`: connections of every kind, every response compared byte for byte; then nothing of them is left.

mod exchanges;
mod script;
mod visit;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use testkit::{process, random};

use self::exchanges::Site;
use self::script::{KINDS, Writer};
use self::visit::Tally;
use crate::context::{Context, Usage, core_percent, in_threads};
use crate::counters::Counters;
use crate::report::{Report, shown};

/// Clients with connections one after the other.
const CLIENTS: u64 = 32;
/// Clients that send and read slowly.
const SLOW_CLIENTS: u64 = 64;
/// A client gives up after so many errors.
const ERRORS_MAX: usize = 100;
/// Requests and connections of the warm-up: enough that every worker has had every kind some times.
const WARM_UP: u64 = 10_000;
/// Time for the server to notice the last clients' ends. Unfinished ones are closed by timeouts of up to 10 s.
const SETTLE: Duration = Duration::from_secs(15);
/// Time after which an idle server has returned memory.
const TRIM: Duration = Duration::from_secs(3);
/// Growth of resident memory between warm-up and end, KiB for each worker: spare output buffers and blocks of 1 MiB each
/// (docs/limits.md), whose fill at the end is chance.
const GROWTH_PER_WORKER_KIB: u32 = 2048;
/// Time in which wake-ups are counted, and their bound: the operator's thread wakes every 5 s.
const IDLE: Duration = Duration::from_secs(5);
const WAKE_UPS_MAX: u64 = 4;

/// The end of a soak: counts of responses and connections, or a time.
#[derive(Debug, Clone, Copy)]
struct Amount {
    responses: u64,
    connections: u64,
    time: Duration,
}

#[derive(Debug, Default)]
struct Done {
    responses: AtomicU64,
    connections: AtomicU64,
    /// A client gave up.
    failed: AtomicBool,
}

/// Both servers at one moment.
struct Moment([(Usage, Option<u64>); 2]);

impl Moment {
    fn of(site: &Site) -> Self {
        Self(site.servers().map(|(_, server)| (Usage::of(server), process::cpu_ns(server.pid()))))
    }

    /// Measures once the descriptors are back, and idle memory is returned.
    fn settled(site: &Site, start: &Self) -> Self {
        for ((_, server), (before, _)) in site.servers().iter().zip(&start.0) {
            Usage::settled(server, *before, SETTLE);
        }
        thread::sleep(TRIM);
        Self::of(site)
    }
}

/// Soaks a server of files and one of handlers.
pub(crate) fn soak(context: &Context<'_>, report: &mut Report) -> Result<()> {
    let site = Site::start(context)?;
    // The connections by which the responses were learnt have ended then.
    thread::sleep(TRIM);
    let start = Moment::of(&site);
    let long = Duration::from_secs(if context.amount.full { 3600 } else { 120 });
    let warm_up = Amount { responses: WARM_UP, connections: WARM_UP, time: long };
    let warmed = visit_all(&site, warm_up, context.seed + 1);
    let before = Moment::settled(&site, &start);
    let amount = match context.amount.seconds {
        Some(seconds) => {
            Amount { responses: u64::MAX, connections: u64::MAX, time: Duration::from_secs(seconds) }
        }
        None => Amount {
            responses: context.amount.count(200_000, 10_000_000),
            connections: context.amount.count(20_000, 1_000_000),
            time: long,
        },
    };
    let begun = Instant::now();
    let tally = visit_all(&site, amount, context.seed);
    let took = begun.elapsed();
    let busy = Moment::of(&site);
    let after = Moment::settled(&site, &start);
    let wake_ups = wake_ups(&site);

    report.none("warm-up: connections with an error", &warmed.errors);
    report_tally(report, &tally, took);
    for (at, (name, server)) in site.servers().into_iter().enumerate() {
        let cpu = core_percent(before.0[at].1, busy.0[at].1, took);
        report.note(format!("{name}: CPU, % of a core"), shown(cpu.map(f64::round)));
        report_left(report, name, [&start, &before, &after].map(|moment| moment.0[at].0), context.workers);
        let open = Counters::now(server).map(|counters| counters.open);
        report.check(
            format!("{name}: open connections by its own count"),
            shown(open),
            "= 0",
            open == Some(0),
        );
        report.check(
            format!("{name}: wake-ups in {IDLE:?}"),
            shown(wake_ups[at]),
            format!("<= {WAKE_UPS_MAX}"),
            wake_ups[at].is_none_or(|count| count <= WAKE_UPS_MAX),
        );
    }
    report_counters(report, site, &warmed.add(tally));
    Ok(())
}

/// Visits both servers until the amount is done.
fn visit_all(site: &Site, amount: Amount, seed: u64) -> Tally {
    let (done, begun) = (Done::default(), Instant::now());
    let is_over = || {
        let responses = done.responses.load(Ordering::Relaxed);
        let connections = done.connections.load(Ordering::Relaxed);
        let complete = responses >= amount.responses && connections >= amount.connections;
        complete || begun.elapsed() >= amount.time || done.failed.load(Ordering::Relaxed)
    };
    let tallies = in_threads(CLIENTS + SLOW_CLIENTS, |part| {
        let mut tally = Tally::default();
        let mut writer = Writer { site, random: random::part(seed, part) };
        let mut buffer = vec![0; visit::READ_BYTES];
        while !is_over() {
            let before = (tally.right, tally.connections);
            if part < CLIENTS {
                tally.visit(site, writer.write(), &mut buffer);
            } else {
                tally.visit_slowly(site, writer.any_exchange(), &mut buffer);
            }
            done.responses.fetch_add(tally.right - before.0, Ordering::Relaxed);
            done.connections.fetch_add(tally.connections - before.1, Ordering::Relaxed);
            done.failed.fetch_or(tally.errors.len() >= ERRORS_MAX, Ordering::Relaxed);
        }
        tally
    });
    tallies.into_iter().fold(Tally::default(), Tally::add)
}

/// Counts wake-ups of every thread of each server while no client is there.
fn wake_ups(site: &Site) -> [Option<u64>; 2] {
    let count = || site.servers().map(|(_, server)| process::context_switches(server.pid()));
    let before = count();
    thread::sleep(IDLE);
    let after = count();
    [0, 1].map(|at| Some(after[at]?.saturating_sub(before[at]?)))
}

fn report_tally(report: &mut Report, tally: &Tally, took: Duration) {
    let seconds = took.as_secs_f64();
    report.equal("right responses, byte for byte", tally.right, tally.sent - tally.abandoned);
    report.none("connections with an error", &tally.errors);
    report.note("responses per second", format!("{:.0}", tally.right as f64 / seconds));
    report.note("connections per second", format!("{:.0}", tally.connections as f64 / seconds));
    report.note("bytes compared", tally.bytes);
    for ((_, name, _), count) in KINDS.iter().zip(tally.kinds) {
        report.check(format!("connections: {name}"), count, "> 0", count > 0);
    }
    let slow = tally.connections - tally.kinds.iter().sum::<u64>();
    report.check("connections: slow", slow, "> 0", slow > 0);
}

fn report_left(report: &mut Report, name: &str, [start, before, after]: [Usage; 3], workers: u32) {
    report.growth(format!("{name}: descriptors, growth"), start.descriptors, after.descriptors, 0.0, "");
    report.note(format!("{name}: resident after the warm-up, KiB"), shown(before.rss_kib));
    report.note(format!("{name}: resident at the end, KiB"), shown(after.rss_kib));
    let most = f64::from(workers * GROWTH_PER_WORKER_KIB);
    report.growth(format!("{name}: resident, growth"), before.rss_kib, after.rss_kib, most, "KiB");
}

/// Stops both servers, and compares their counters with those of the clients.
fn report_counters(report: &mut Report, mut site: Site, all: &Tally) {
    let (mut requests, mut connections) = (0, 0);
    for server in [&mut site.files, &mut site.handlers] {
        report.stop(server);
        let counters = Counters::at_exit(server).unwrap_or_default();
        report.check("faults by its own count", &counters.faults, "none", counters.faults.is_empty());
        report.note("limits reached", &counters.limits);
        requests += counters.requests;
        connections += counters.connections;
    }
    // An abandoned request may have got a response or not; a part of a request may have got a 400.
    let least = all.right + site.learnt;
    let most = least + all.abandoned + all.parts();
    report.check(
        "requests by their own count",
        requests,
        format!("{least} to {most}"),
        (least..=most).contains(&requests),
    );
    // Each start is noticed by a connection; a connection that is reset at once may never be accepted.
    let most = all.connections + site.learnt + 2;
    let least = most - all.reset_at_once();
    let right = (least..=most).contains(&connections);
    report.check("connections by their own count", connections, format!("{least} to {most}"), right);
}
