//! Trial `connections`: thousands of keep-alive connections at once, each answered, left idle, and answered again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::process::{self, core_percent, growth_kib, settle_descriptors};
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

use super::held::{Holder, Wanted};

/// Connections of one client process: below a common descriptor limit, and below what one source address gets quickly.
const PER_HOLDER: usize = 10_000;
/// Connections held, unless said otherwise.
const COUNT: usize = 15_000;
/// What an idle connection may cost in resident memory, in bytes.
const IDLE_BYTES_MAX: f64 = 96.0;
/// Connections before the first measurement.
const WARM_UP: usize = 100;
/// The served file.
const FILE: (&str, &[u8]) = ("page.txt", b"the same page for every connection\n");
/// It, as it is asked for.
const PAGE: Wanted<'_> = Wanted { target: "/page.txt", length: FILE.1.len() };
/// How long the connections are left idle between the rounds.
const IDLE: Duration = Duration::from_secs(2);
/// What idle connections may cost, per cent of a core.
const IDLE_CPU_MAX: f64 = 1.0;
/// How long the server has to notice that all clients have gone.
const SETTLE: Duration = Duration::from_secs(10);

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Connections held at once
    #[arg(long, default_value_t = COUNT)]
    count: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { count: COUNT }
    }
}

/// Runs the trial.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    folder.write(&format!("public/{}", FILE.0), FILE.1)?;
    let server = Server::serve_folder(common, &folder.path().join("public"), &folder)?;
    let pid = server.pid();
    let cold = server.snapshot();
    let mut warm_up = Holder::start(server.address(), WARM_UP, None, PAGE)?;
    warm_up.order("open")?;
    warm_up.order("round")?;
    warm_up.end();
    let mut report = Report::new();
    let at_start = settle_descriptors(pid, cold.descriptors, Duration::from_secs(1));
    let before = server.snapshot();
    let mut holders = start_holders(server.address(), options.count)?;

    timed_order(&mut holders, "open", "connected", options.count, &mut report)?;
    timed_order(&mut holders, "round", "answered", options.count, &mut report)?;
    let cpu_before = process::cpu_ns(pid);
    std::thread::sleep(IDLE);
    let cpu = core_percent(cpu_before, process::cpu_ns(pid), IDLE);
    let idle = server.snapshot();
    timed_order(&mut holders, "round", "answered again", options.count, &mut report)?;
    holders.into_iter().for_each(Holder::end);
    let descriptors = settle_descriptors(pid, at_start, SETTLE);

    report.at_most_if_measured("CPU while all are idle", cpu, IDLE_CPU_MAX, 2, "% of a core");
    report_memory(&mut report, before.rss_kib, idle.rss_kib, options.count);
    report.note("descriptors while held", idle.descriptors);
    report.back_at("descriptors after the clients' end", descriptors, at_start);
    server.stop(&mut report)?;
    Ok(report)
}

fn report_memory(report: &mut Report, before: Option<u64>, idle: Option<u64>, count: usize) {
    report.note("resident before, KiB", before);
    report.note("resident while idle, KiB", idle);
    let each = growth_kib(before, idle).map(|kib| kib * 1024.0 / count.max(1) as f64);
    report.at_most_if_measured("resident per idle connection", each, IDLE_BYTES_MAX, 0, "bytes");
}

fn timed_order(
    holders: &mut [Holder],
    order: &str,
    what: &str,
    count: usize,
    report: &mut Report,
) -> Outcome<()> {
    let started = Instant::now();
    let mut good = 0;
    for holder in holders {
        good += holder.order(order)?;
    }
    report.equal(&format!("connections {what}"), good, count as u64);
    report.note(&format!("{what}: took"), format!("{:.2} s", started.elapsed().as_secs_f64()));
    Ok(())
}

/// A source address for each client process, so that none runs out of local ports; another one in the next run (the server's
/// port is), because ports of the last one stay taken for a minute.
fn start_holders(address: SocketAddr, count: usize) -> Outcome<Vec<Holder>> {
    let mut holders = Vec::new();
    let mut left = count;
    while left > 0 {
        let share = left.min(PER_HOLDER);
        let run = 1 + address.port() % 250;
        let source = (count > PER_HOLDER).then(|| format!("127.0.{run}.{}", holders.len() + 1));
        holders.push(Holder::start(address, share, source, PAGE)?);
        left -= share;
    }
    Ok(holders)
}
