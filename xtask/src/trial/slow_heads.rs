//! Trial `slow-heads`: thousands of clients that send one header byte a second must not slow a normal client down, must cost
//! next to nothing, and must each get a 408 that they can read.

use std::time::{Duration, Instant};

use super::pace::{Latencies, Pace, Samples};
use super::slow_clients::{Fate, SlowClients};
use super::slow_sink::Sink;
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::place::Apart;
use crate::harness::process;
use crate::harness::process::core_percent;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// The slow clients' CPU, at most this share of a core, per cent.
const CPU_SHARE_MAX: f64 = 5.0;
/// What seeing one slow client off may cost, microseconds of CPU: some ten times what the system calls take.
const LEAVING_US_MAX: f64 = 200.0;
/// Other programs may use this much in a stretch that is compared, per cent of a core; beyond, no p99 is valid.
const OTHERS_MAX: f64 = 20.0;
/// The normal client's p99 may grow by this factor.
const P99_GROWTH_MAX: f64 = 1.5;
/// How long after the header timeout a slow client has to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// So long before the first may be timed out the measurement beside all of them ends.
const HELD_MARGIN: Duration = Duration::from_millis(500);
/// How much longer the trial watches those that are not gone.
const WATCH_LONGER: Duration = Duration::from_secs(3);
/// The normal client's first seconds are not counted: connections open, caches fill.
const WARM_UP: Duration = Duration::from_secs(2);

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Slow clients at once
    #[arg(long, default_value_t = 5_000)]
    clients: u64,
    /// Requests per second of the normal client
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Seconds of each of the two measurements before
    #[arg(long, default_value_t = 10)]
    before_seconds: u64,
    /// Seconds of the control, in which all slow clients send to a listener that never reads
    #[arg(long, default_value_t = 10)]
    control_seconds: u64,
    /// Seconds with all slow clients connected
    #[arg(long, default_value_t = 20)]
    during_seconds: u64,
    /// Seconds over which the slow clients connect
    #[arg(long, default_value_t = 5)]
    spread_seconds: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clients: 5_000,
            rate: 500,
            before_seconds: 10,
            control_seconds: 10,
            during_seconds: 20,
            spread_seconds: 5,
        }
    }
}

/// A stretch of the trial and the CPU that was spent in it, per cent of a core.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: Instant,
    end: Instant,
    /// By the server.
    cpu_percent: Option<f64>,
    /// By neither the server nor the trial: with much of it the latencies say little.
    others_percent: Option<f64>,
}

/// The stretches in their order.
#[derive(Debug)]
struct Stretches {
    before: Stretch,
    again: Stretch,
    control: Stretch,
    arriving: Stretch,
    held: Stretch,
    leaving: Stretch,
}

impl Options {
    /// The first to come may not be timed out before the last has been there for the whole measurement.
    fn header_timeout(&self) -> Duration {
        Duration::from_secs(self.spread_seconds + self.during_seconds + 1)
    }
}

/// Runs the trial, on a thread of its own: what it says of cores ends with it.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    std::thread::scope(|scope| {
        let trial = scope.spawn(|| run_apart(common, options));
        trial.join().unwrap_or_else(|_| Err("the trial panicked".to_owned().into()))
    })
}

fn run_apart(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let timeout = options.header_timeout();
    let settings = [("SHEARWATER_HEADER_TIMEOUT_MS", timeout.as_millis().to_string())];
    let apart = Apart::begin();
    let server = Server::example(&Common { workers: 1, ..common.clone() }, &settings, &folder)?;
    let place = apart.leave();
    let limit = process::raise_descriptor_limit();
    if limit < 2 * options.clients + 100 {
        return Err(format!(
            "{} clients and a control need more than the {limit} descriptors allowed",
            options.clients
        )
        .into());
    }
    let pace = Pace::start(server.address(), "/", options.rate);
    std::thread::sleep(WARM_UP);
    let (stretches, fates) = measure(&server, options)?;
    let samples = pace.finish()?;
    let mut report = Report::new();
    report.note("where", place);
    report_speed(&mut report, &stretches, &samples, options.clients);
    report_fates(&mut report, &fates, timeout);
    server.stop(&mut report)?;
    Ok(report)
}

fn measure(server: &Server, options: &Options) -> Outcome<(Stretches, Vec<Fate>)> {
    let before_time = Duration::from_secs(options.before_seconds);
    let spread = Duration::from_secs(options.spread_seconds);
    let mut slow = SlowClients::new(server.address());
    let before = stretch(server, || std::thread::sleep(before_time));
    let again = stretch(server, || std::thread::sleep(before_time));
    let control = control(server, options)?;
    let first_opened = Instant::now();
    let arriving = stretch(server, || slow.open(options.clients, spread));
    let held_end = first_opened + options.header_timeout() - HELD_MARGIN;
    let held = stretch(server, || slow.step_until(held_end));
    let last_opened = first_opened + spread;
    let leaving_end = last_opened + options.header_timeout() + GONE_WITHIN;
    let leaving = stretch(server, || slow.step_until(leaving_end));
    if slow.held() > 0 {
        slow.step_until(leaving_end + WATCH_LONGER);
    }
    Ok((Stretches { before, again, control, arriving, held, leaving }, slow.finish()))
}

/// The same slow clients, sending to a listener that never reads.
fn control(server: &Server, options: &Options) -> Outcome<Stretch> {
    let sink = Sink::start()?;
    let mut slow = SlowClients::new(sink.address());
    slow.open(options.clients, Duration::from_secs(options.spread_seconds));
    let end = Instant::now() + Duration::from_secs(options.control_seconds);
    let control = stretch(server, || slow.step_until(end));
    drop(slow);
    sink.finish()?;
    Ok(control)
}

fn stretch(server: &Server, work: impl FnOnce()) -> Stretch {
    let start = Instant::now();
    let cpu_before = process::cpu_ns(server.pid());
    let others_before = others_cpu_ns(server);
    work();
    let cpu_after = process::cpu_ns(server.pid());
    let others_after = others_cpu_ns(server);
    let end = Instant::now();
    Stretch {
        start,
        end,
        cpu_percent: core_percent(cpu_before, cpu_after, end - start),
        others_percent: core_percent(others_before, others_after, end - start),
    }
}

fn others_cpu_ns(server: &Server) -> Option<u64> {
    let ours = process::cpu_ns(server.pid())? + process::cpu_ns(std::process::id())?;
    Some(process::machine_cpu_ns()?.saturating_sub(ours))
}

fn report_speed(report: &mut Report, stretches: &Stretches, samples: &Samples, clients: u64) {
    let show = |name: &str, stretch: &Stretch, report: &mut Report| {
        let latencies = samples.between(stretch.start, stretch.end);
        let percent = |share: Option<f64>| share.map_or("?".to_owned(), |share| format!("{share:.2} %"));
        let (server, others) = (percent(stretch.cpu_percent), percent(stretch.others_percent));
        report.note(&format!("normal client, {name}"), latencies.summary());
        report.note(&format!("CPU of server, of others, {name}"), format!("{server}, {others}"));
        latencies
    };
    let before = show("alone", &stretches.before, report);
    let again = show("alone again", &stretches.again, report);
    let control = show("slow ones sending elsewhere", &stretches.control, report);
    show("slow ones arriving", &stretches.arriving, report);
    let held = show("slow ones held", &stretches.held, report);
    let leaving = show("slow ones leaving", &stretches.leaving, report);
    let base = samples.between(stretches.before.start, stretches.again.end);
    report.note("noise: p99 alone again / alone", format!("{:.2} x", ratio(&again, &before)));
    let compared = [stretches.before, stretches.again, stretches.held, stretches.leaving];
    let others = compared.iter().filter_map(|stretch| stretch.others_percent).reduce(f64::max);
    report.at_most_if_measured("others' CPU, else no p99 is valid", others, OTHERS_MAX, 0, "% of a core");
    report.note("control: p99 sending elsewhere / alone", format!("{:.2} x", ratio(&control, &base)));
    report.at_most("p99 held / alone", ratio(&held, &base), P99_GROWTH_MAX, 2, "x");
    report.at_most("p99 leaving / alone", ratio(&leaving, &base), P99_GROWTH_MAX, 2, "x");
    report.at_most_if_measured("CPU of the slow ones", extra_cpu(stretches), CPU_SHARE_MAX, 2, "% of a core");
    let each = leaving_cpu_us(stretches, clients);
    report.at_most_if_measured("CPU to see one slow client off", each, LEAVING_US_MAX, 0, "us");
    report.equal("normal client's failures", samples.failures.len() as u64, 0);
    report.examples("failure", &samples.failures);
}

/// Without end where one of them is of no answers.
fn ratio(after: &Latencies, before: &Latencies) -> f64 {
    let is_known = before.p99_us > 0.0 && before.p99_us.is_finite();
    if is_known { after.p99_us / before.p99_us } else { f64::INFINITY }
}

/// What the held slow clients cost beyond the normal client alone, per cent of a core.
fn extra_cpu(stretches: &Stretches) -> Option<f64> {
    let alone = f64::midpoint(stretches.before.cpu_percent?, stretches.again.cpu_percent?);
    Some((stretches.held.cpu_percent? - alone).max(0.0))
}

/// What a slow client costs while all leave: its last bytes, the 408 and the close. A worker that spins meanwhile shows here.
fn leaving_cpu_us(stretches: &Stretches, clients: u64) -> Option<f64> {
    let alone = f64::midpoint(stretches.before.cpu_percent?, stretches.again.cpu_percent?);
    let extra = (stretches.leaving.cpu_percent? - alone).max(0.0) / 100.0;
    let time = stretches.leaving.end - stretches.leaving.start;
    Some(extra * time.as_secs_f64() * 1e6 / clients.max(1) as f64)
}

fn report_fates(report: &mut Report, fates: &[Fate], timeout: Duration) {
    let mut times: Vec<Duration> = Vec::new();
    let mut wrong = Vec::new();
    for fate in fates {
        match fate {
            Fate::Answered { status: 408, after } => times.push(*after),
            Fate::Answered { status, .. } => wrong.push(format!("status {status}")),
            Fate::Wrong(why) => wrong.push(why.clone()),
            Fate::Held => wrong.push("still connected".to_owned()),
        }
    }
    report.equal("408 read, then the end, no reset", times.len() as u64, fates.len() as u64);
    report.examples("wrong", &wrong);
    report.note("header timeout", format!("{:.1} s", timeout.as_secs_f64()));
    if let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) {
        let bound = (timeout + GONE_WITHIN).as_secs_f64();
        // Had it gone before, the normal client would not have been beside all of them.
        let (shown, least) = (format!("{:.1} s", first.as_secs_f64()), timeout - HELD_MARGIN);
        report.check("first gone after", shown, format!(">= {:.1} s", least.as_secs_f64()), *first >= least);
        report.at_most("last gone after", last.as_secs_f64(), bound, 1, "s");
    }
}
