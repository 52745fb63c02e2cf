//! What is left of a soak, seen from outside: descriptors, memory, and whether anybody still wakes up.

use std::time::{Duration, Instant};

use super::site::Site;
use crate::harness::process::{self, Snapshot, growth_kib, settle_descriptors};
use crate::harness::report::Report;

/// How long a server has to notice the last clients' ends. Some ended in the middle of something, and time has to put those out:
/// the longest such wait is 10 s (`linger_ms`, `first_head_ms`), and a timer's lateness.
const SETTLE: Duration = Duration::from_secs(15);
/// Then memory of a busier moment is given back within a second or two.
pub(super) const GIVE_BACK: Duration = Duration::from_secs(3);
/// Resident memory may differ so much before and after, KiB for each worker: what an idle one keeps of a busier moment is, by
/// docs/limits.md, spare outputs of 1 MiB (`SPARE_OUTPUTS_BYTES_MAX`) and as much in spare blocks (`SPARE_BLOCKS_MAX` of
/// `SPARE_BUFFER_BYTES_MAX`), and how full they are at the end is chance. In the large run a leak of five bytes a connection shows.
const GROWTH_PER_WORKER_KIB: u32 = 2048;
/// How long it is watched whether anybody wakes up.
const WATCH: Duration = Duration::from_secs(5);
/// Wake-ups of all threads in that time: the operator's thread looks around every 5 s.
const WAKES_MAX: u64 = 4;

/// Both servers at one moment, in the order of [`Site::servers`].
#[derive(Debug)]
pub(super) struct Moment {
    /// Memory and descriptors.
    pub(super) snapshots: [Snapshot; 2],
    /// CPU time since their start, nanoseconds.
    pub(super) cpu_ns: [Option<u64>; 2],
}

impl Moment {
    /// Now.
    pub(super) fn of(site: &Site) -> Self {
        let servers = site.servers();
        Self {
            snapshots: servers.map(|(_, server)| server.snapshot()),
            cpu_ns: servers.map(|(_, server)| process::cpu_ns(server.pid())),
        }
    }
}

/// Waits until the descriptors are those of the start or the time for it is over, and a moment more.
pub(super) fn settle(site: &Site, start: &Moment) -> Moment {
    let deadline = Instant::now() + SETTLE;
    for ((_, server), start) in site.servers().iter().zip(&start.snapshots) {
        let patience = deadline.saturating_duration_since(Instant::now());
        settle_descriptors(server.pid(), start.descriptors, patience);
    }
    std::thread::sleep(GIVE_BACK);
    Moment::of(site)
}

/// How often any thread of each server wakes up while nobody asks for anything.
pub(super) fn wakes(site: &Site) -> [Option<u64>; 2] {
    let count = || site.servers().map(|(_, server)| process::switches(server.pid()));
    let before = count();
    std::thread::sleep(WATCH);
    let after = count();
    [0, 1].map(|at| Some(after[at]?.saturating_sub(before[at]?)))
}

/// Holds one server's start, its state after the warm-up and its state after the soak against each other.
pub(super) fn report(
    report: &mut Report,
    which: &str,
    [start, before, after]: [Snapshot; 3],
    wakes: Option<u64>,
    workers: u32,
) {
    let named = |what: &str| format!("{which}: {what}");
    report.back_at(&named("descriptors"), after.descriptors, start.descriptors);
    report.note(&named("resident at start, KiB"), start.rss_kib);
    report.note(&named("resident after the warm-up, KiB"), before.rss_kib);
    report.note(&named("resident at the end, KiB"), after.rss_kib);
    let growth = growth_kib(before.rss_kib, after.rss_kib);
    let most = f64::from(workers * GROWTH_PER_WORKER_KIB);
    report.at_most_if_measured(&named("resident growth"), growth, most, 0, "KiB");
    let what = named(&format!("wake-ups in {} s", WATCH.as_secs()));
    match wakes {
        Some(wakes) => report.check(&what, wakes, format!("<= {WAKES_MAX}"), wakes <= WAKES_MAX),
        None => report.note(&what, wakes),
    }
}
