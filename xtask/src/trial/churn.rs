//! Trial `churn`: a million requests over connections that end in every way leave no descriptor and no memory behind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::churn_visit::{ENDINGS, Page, Tally, Visitor};
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::process::{growth_kib, settle_descriptors};
use crate::harness::random::Random;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// The served files: name and size in bytes.
const FILES: [(&str, usize); 6] = [
    ("empty.bin", 0),
    ("one.txt", 1),
    ("hundred.txt", 100),
    ("page.html", 1_024),
    ("style.css", 5_000),
    ("picture.png", 16_384),
];
/// A file that no socket buffer swallows whole.
const LARGE: (&str, usize) = ("large.bin", 4 * 1024 * 1024);
/// Resident memory may grow by this after the warm-up, KiB.
const GROWTH_MAX_KIB: f64 = 1024.0;
/// How long the server has to notice the last clients' ends.
const SETTLE: Duration = Duration::from_secs(5);

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Requests that are measured
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Requests before the first measurement
    #[arg(long, default_value_t = 50_000)]
    warm_up: u64,
    /// Client threads
    #[arg(long, default_value_t = 4)]
    threads: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { requests: 1_000_000, warm_up: 50_000, threads: 4 }
    }
}

/// What the visitors need to know of the server.
struct Site {
    server: Server,
    pages: Vec<Page>,
    large: Page,
}

/// Runs the trial.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let site = start(common, &folder)?;
    let pid = site.server.pid();
    let at_start = site.server.snapshot();
    let warm_up = churn(&site, options.warm_up, options.threads, common.seed);
    settle_descriptors(pid, at_start.descriptors, SETTLE);
    let before = site.server.snapshot();
    let started = Instant::now();
    let tally = churn(&site, options.requests, options.threads, common.seed + 1);
    let elapsed = started.elapsed();
    let descriptors = settle_descriptors(pid, before.descriptors, SETTLE);
    let after = site.server.snapshot();

    let mut report = Report::new();
    report_tally(&mut report, "warm-up", &warm_up);
    report_tally(&mut report, "churn", &tally);
    for ((_, name, _), visits) in ENDINGS.iter().zip(tally.endings) {
        report.note(&format!("connections: {name}"), visits);
    }
    report.note("requests per second", format!("{:.0}", tally.sent as f64 / elapsed.as_secs_f64()));
    report.note("descriptors at start", at_start.descriptors);
    report.back_at("descriptors after", descriptors, before.descriptors);
    report.note("resident at start, KiB", at_start.rss_kib);
    report.note("resident after warm-up, KiB", before.rss_kib);
    let growth = growth_kib(before.rss_kib, after.rss_kib);
    report.at_most_if_measured("resident growth", growth, GROWTH_MAX_KIB, 0, "KiB");
    report.note("logged bytes", site.server.logged_bytes());
    report.note("last line of the log", site.server.last_log_line());
    site.server.stop(&mut report)?;
    Ok(report)
}

fn start(common: &Common, folder: &Folder) -> Outcome<Site> {
    let mut random = Random::stream(common.seed, 0);
    let mut contents = Vec::new();
    for (name, size) in FILES.into_iter().chain([LARGE]) {
        let body = random.bytes(size);
        folder.write(&format!("public/{name}"), &body)?;
        contents.push((format!("/{name}"), body));
    }
    let server = Server::serve_folder(common, &folder.path().join("public"), folder)?;
    let mut pages = Vec::new();
    for (target, body) in contents {
        pages.push(Page::learn(server.address(), &target, body)?);
    }
    let large = pages.pop().ok_or("no page was learnt")?;
    Ok(Site { server, pages, large })
}

/// Visits until `requests` are sent, on `threads` threads.
fn churn(site: &Site, requests: u64, threads: u64, seed: u64) -> Tally {
    let sent = AtomicU64::new(0);
    let work = |part: u64| {
        let random = Random::stream(seed, part);
        let address = site.server.address();
        let mut visitor = Visitor { address, pages: &site.pages, large: &site.large, random };
        let mut tally = Tally::default();
        while sent.load(Ordering::Relaxed) < requests && tally.wrong.len() < WRONG_MAX {
            let before = tally.sent;
            visitor.visit(&mut tally);
            sent.fetch_add(tally.sent - before, Ordering::Relaxed);
        }
        tally
    };
    std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (1..=threads).map(|part| scope.spawn(move || work(part))).collect();
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

/// A thread gives up after this many wrong visits: the trial has failed and shows examples.
const WRONG_MAX: usize = 100;

fn report_tally(report: &mut Report, name: &str, tally: &Tally) {
    let wanted = tally.sent - tally.given_up;
    report.equal(&format!("{name}: right answers, byte for byte"), tally.right, wanted);
    report.note(&format!("{name}: requests sent"), tally.sent);
    report.note(&format!("{name}: given up in a reset"), tally.given_up);
    report.equal(&format!("{name}: wrong connections"), tally.wrong.len() as u64, 0);
    report.examples("wrong", &tally.wrong);
}
