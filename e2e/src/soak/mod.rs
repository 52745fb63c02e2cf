//! Group `soak`: connections of every kind, every response compared byte for byte; then nothing of them is left.

mod exchanges;
mod kinds;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use testkit::{process, random};

use self::exchanges::SoakServers;
use self::kinds::{ConnectionKind, KINDS, Writer};
use crate::context::{CaseContext, in_threads};
use crate::crowd::{Crowd, CrowdMember, PER_ADDRESS};
use crate::report::{CaseReport, shown};
use crate::usage::{LoggedCounters, Usage, core_percent};

/// Threads of clients, and open connections of each. The last thread's clients send and read slowly.
const CROWDS: u64 = 3;
const OPEN: u64 = 16;
const SLOW_OPEN: u64 = 64;
/// The clients give up after so many errors.
const ERRORS_MAX: usize = 100;
/// Time for the last connections to end by themselves.
const LAST_CONNECTIONS: Duration = Duration::from_secs(30);
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
const WAKE_UPS_MAX: f64 = 4.0;

/// The end of a soak: counts of responses and connections, or a time.
#[derive(Debug, Clone, Copy)]
struct SoakAmount {
    responses: u64,
    connections: u64,
    time: Duration,
}

/// Counts of connections that have ended.
#[derive(Debug, Default)]
struct SoakTally {
    /// Responses that had to arrive.
    expected: u64,
    /// Responses that arrived whole and right.
    right: u64,
    /// Responses that the client didn't wait for.
    abandoned: u64,
    connections: u64,
    received: u64,
    /// Connections by the name of their kind.
    kinds: BTreeMap<&'static str, u64>,
    errors: Vec<String>,
}

impl SoakTally {
    fn record(&mut self, member: &CrowdMember, how: &str) {
        let (script, right, expected) = (&member.script, member.responses.whole, member.script.expected());
        *self.kinds.entry(script.name).or_default() += 1;
        self.connections += 1;
        self.expected += expected;
        self.right += right;
        self.received += member.received;
        // A client that leaves in the last response may have got all of it.
        let may_lack = u64::from(script.leaves_after_bytes.is_some());
        self.abandoned += may_lack.min(expected - right);
        if right + may_lack < expected || how != script.planned_end() {
            let wrong = &member.responses.wrong;
            self.errors.push(format!("{}: {how}, {right} of {expected} responses {wrong:?}", script.name));
        }
    }

    fn add(mut self, other: Self) -> Self {
        self.expected += other.expected;
        self.right += other.right;
        self.abandoned += other.abandoned;
        self.connections += other.connections;
        self.received += other.received;
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
        self.errors.extend(other.errors);
        self
    }

    /// Connections of such kinds.
    fn of(&self, is_chosen: fn(&ConnectionKind) -> bool) -> u64 {
        let chosen = KINDS.iter().filter(|kind| is_chosen(kind));
        chosen.filter_map(|kind| self.kinds.get(kind.name)).sum()
    }
}

/// Both servers at one moment.
struct Moment([(Usage, Option<u64>); 2]);

impl Moment {
    fn of(servers: &SoakServers) -> Self {
        Self(servers.both().map(|(_, server)| (Usage::of(server), process::cpu_ns(server.pid()))))
    }

    /// Measures once the descriptors are back, and idle memory is returned.
    fn settled(servers: &SoakServers, start: &Self) -> Self {
        for ((_, server), (before, _)) in servers.both().iter().zip(&start.0) {
            Usage::settled(server, *before, SETTLE);
        }
        thread::sleep(TRIM);
        Self::of(servers)
    }
}

/// Soaks a server of files and one of handlers.
pub(crate) fn soak(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let servers = SoakServers::start(context)?;
    // The connections by which the responses were learnt have ended then.
    thread::sleep(TRIM);
    let start = Moment::of(&servers);
    let long = Duration::from_secs(if context.args.full { 3600 } else { 120 });
    let warm_up = SoakAmount { responses: WARM_UP, connections: WARM_UP, time: long };
    let warmed = visit_all(&servers, warm_up, context.args.seed + 1, 60)?;
    let before = Moment::settled(&servers, &start);
    let amount = match context.args.seconds {
        Some(seconds) => {
            SoakAmount { responses: u64::MAX, connections: u64::MAX, time: Duration::from_secs(seconds) }
        }
        None => SoakAmount {
            responses: context.count(200_000, 10_000_000),
            connections: context.count(20_000, 1_000_000),
            time: long,
        },
    };
    let begun = Instant::now();
    let tally = visit_all(&servers, amount, context.args.seed, 61)?;
    let took = begun.elapsed();
    let busy = Moment::of(&servers);
    let after = Moment::settled(&servers, &start);
    let wake_ups = wake_ups(&servers);

    report.none("warm-up: connections with an error", &warmed.errors);
    report_tally(report, &tally, took);
    for (at, (name, server)) in servers.both().into_iter().enumerate() {
        let cpu = core_percent(before.0[at].1, busy.0[at].1, took);
        report.note(format!("{name}: CPU, % of a core"), shown(cpu.map(f64::round)));
        let before = Usage { descriptors: start.0[at].0.descriptors, ..before.0[at].0 };
        report.note(format!("{name}: resident after the warm-up, KiB"), shown(before.rss_kib));
        let most = f64::from(context.workers * GROWTH_PER_WORKER_KIB);
        report.left(name, before, after.0[at].0, most);
        let open = LoggedCounters::now(server).map(|counters| counters.open);
        report.equal(format!("{name}: open connections by its own count"), open.unwrap_or(u64::MAX), 0);
        report.at_most(
            format!("{name}: wake-ups in {IDLE:?}"),
            wake_ups[at].map(|count| count as f64),
            WAKE_UPS_MAX,
            "",
        );
    }
    report_counters(report, servers, &warmed.add(tally));
    Ok(())
}

/// Visits both servers until the amount is done. The crowds of each visit have networks of their own.
fn visit_all(servers: &SoakServers, amount: SoakAmount, seed: u64, network: u8) -> Result<SoakTally> {
    let (responses, connections, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    let is_over = || {
        responses.load(Ordering::Relaxed) >= amount.responses
            && connections.load(Ordering::Relaxed) >= amount.connections
            || begun.elapsed() >= amount.time
            || failed.load(Ordering::Relaxed)
    };
    let tallies = in_threads(CROWDS, |part| {
        let is_slow = part + 1 == CROWDS;
        let crowd = Crowd {
            open_max: if is_slow { SLOW_OPEN } else { OPEN },
            every: Duration::ZERO,
            until: begun + amount.time + LAST_CONNECTIONS,
            network: [127, network, part as u8],
            per_address: PER_ADDRESS,
        };
        let mut writer = Writer { servers, random: random::part(seed, part) };
        let mut next = |_| (!is_over()).then(|| if is_slow { writer.write_slow() } else { writer.write() });
        let mut tally = SoakTally::default();
        crowd.run(&mut next, &mut |member, how| {
            tally.record(member, how);
            responses.fetch_add(member.responses.whole, Ordering::Relaxed);
            connections.fetch_add(1, Ordering::Relaxed);
            failed.fetch_or(tally.errors.len() >= ERRORS_MAX, Ordering::Relaxed);
        })?;
        anyhow::Ok(tally)
    });
    tallies.into_iter().try_fold(SoakTally::default(), |all, tally| Ok(all.add(tally?)))
}

/// Counts wake-ups of every thread of each server while no client is there.
fn wake_ups(servers: &SoakServers) -> [Option<u64>; 2] {
    let count = || servers.both().map(|(_, server)| process::context_switches(server.pid()));
    let before = count();
    thread::sleep(IDLE);
    let after = count();
    [0, 1].map(|at| Some(after[at]?.saturating_sub(before[at]?)))
}

fn report_tally(report: &mut CaseReport, tally: &SoakTally, took: Duration) {
    let seconds = took.as_secs_f64();
    report.equal("right responses, byte for byte", tally.right, tally.expected - tally.abandoned);
    report.none("connections with an error", &tally.errors);
    report.note("responses per second", format!("{:.0}", tally.right as f64 / seconds));
    report.note("connections per second", format!("{:.0}", tally.connections as f64 / seconds));
    report.note("bytes received", tally.received);
    for kind in KINDS {
        let count = tally.kinds.get(kind.name).copied().unwrap_or(0);
        report.within(format!("connections: {}", kind.name), count, 1..=u64::MAX);
    }
}

/// Stops both servers, and compares their counters with those of the clients.
fn report_counters(report: &mut CaseReport, mut servers: SoakServers, all: &SoakTally) {
    let (mut requests, mut connections) = (0, 0);
    for server in [&mut servers.files, &mut servers.handlers] {
        report.stop(server);
        let counters = LoggedCounters::at_exit(server).unwrap_or_default();
        report.equal("faults by its own count", counters.faults.as_str(), "");
        report.note("limits reached", &counters.limits);
        requests += counters.requests;
        connections += counters.connections;
    }
    // An abandoned request may have got a response or not; a part of a request may have got a 400.
    let least = all.right + servers.learnt;
    let most = least + all.abandoned + all.of(ConnectionKind::is_partial);
    report.within("requests by their own count", requests, least..=most);
    // Each start is noticed by a connection; a connection that is reset at once may never be accepted.
    let most = all.connections + servers.learnt + 2;
    let least = most - all.of(ConnectionKind::is_short);
    report.within("connections by their own count", connections, least..=most);
}
