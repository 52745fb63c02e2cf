//! Trial `many-files`: ten thousand files come back byte for byte, conditional requests hold, changes show; then a file of more
//! than 2 GiB is downloaded whole beside slow readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::file_checks::{SiteFile, Visit};
use super::large_file::{download, read_slowly};
use super::pace::Pace;
use crate::harness::body_source::SparseFile;
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::process::growth_kib;
use crate::harness::random::Random;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// Client threads.
const THREADS: usize = 4;
/// A thread gives up after this many wrong files.
const WRONG_MAX: usize = 50;
/// Every so many-th file is changed, and every so many-th is removed, while the server runs.
const CHANGED_EACH: u64 = 100;
/// A change on disk has to show after this.
const STALE_MAX: Duration = Duration::from_secs(2);
/// Resident memory may grow by this while the large file goes out, KiB.
const LARGE_GROWTH_MAX_KIB: f64 = 16.0 * 1024.0;
/// The normal client beside the large file: requests per second, and its p99 at most, milliseconds.
const BESIDE_RATE: u32 = 200;
const BESIDE_P99_MAX_MS: f64 = 100.0;

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Files of random sizes
    #[arg(long, default_value_t = 10_000)]
    files: u64,
    /// Size of the sparse file, bytes
    #[arg(long, default_value_t = LARGE_BYTES)]
    large_bytes: u64,
    /// Slow readers on the sparse file
    #[arg(long, default_value_t = 20)]
    slow_readers: usize,
    /// How long they read, seconds
    #[arg(long, default_value_t = 10)]
    slow_seconds: u64,
}

/// 2 GiB and a little, so that a signed 32-bit length cannot hold it.
const LARGE_BYTES: u64 = (2 << 30) + 4_097;

impl Default for Options {
    fn default() -> Self {
        Self { files: 10_000, large_bytes: LARGE_BYTES, slow_readers: 20, slow_seconds: 10 }
    }
}

/// Runs the trial.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let root = folder.make("public")?;
    for number in 0..options.files {
        let file = SiteFile::new(common.seed, number);
        folder.write(&format!("public/{}", file.path), &file.bytes(0))?;
    }
    let beside = root.join("beside.txt");
    std::fs::write(&beside, "beside\n").during("writing a file to serve")?;
    let large = SparseFile::new(options.large_bytes, 64, &mut Random::stream(common.seed, u64::MAX));
    large.write(&root.join("large.bin"))?;
    let server = Server::serve_folder(common, &root, &folder)?;
    let mut report = Report::new();
    compare_all(&server, common, options, &mut report);
    change_some(&server, common, options, &folder, &mut report)?;
    send_large(&server, options, &Arc::new(large), &mut report)?;
    server.stop(&mut report)?;
    Ok(report)
}

fn compare_all(server: &Server, common: &Common, options: &Options, report: &mut Report) {
    let next = AtomicU64::new(0);
    let started = Instant::now();
    let work = || {
        let mut visit = Visit::new(server.address());
        let mut wrong = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.files || wrong.len() >= WRONG_MAX {
                return (visit.requests(), wrong);
            }
            let file = SiteFile::new(common.seed, number);
            if let Err(why) = visit.check_file(&file) {
                wrong.push(format!("{}: {why}", file.target));
            }
        }
    };
    let (mut requests, mut wrong) = (0, Vec::new());
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for handle in handles {
            let part = handle.join().unwrap_or_else(|_| (0, vec!["a client thread panicked".to_owned()]));
            requests += part.0;
            wrong.extend(part.1);
        }
    });
    let right = options.files.saturating_sub(wrong.len() as u64);
    report.equal("files: GET, HEAD and conditions right", right, options.files);
    report.examples("wrong", &wrong);
    report.note("requests for them", requests);
    report.note("took", format!("{:.1} s", started.elapsed().as_secs_f64()));
}

/// Rewrites some files at the same length and removes others: the server has to notice.
fn change_some(
    server: &Server,
    common: &Common,
    options: &Options,
    folder: &Folder,
    report: &mut Report,
) -> Outcome<()> {
    let mut visit = Visit::new(server.address());
    let (mut changed, mut removed, mut wrong) = (0, 0, Vec::new());
    let mut slowest = Duration::ZERO;
    for number in (0..options.files).step_by(CHANGED_EACH as usize) {
        let file = SiteFile::new(common.seed, number);
        let old_tag = visit.entity_tag(&file).during(&file.target)?;
        folder.write(&format!("public/{}", file.path), &file.bytes(1))?;
        match visit.wait_for_change(&file, &old_tag, STALE_MAX) {
            Ok(time) => slowest = slowest.max(time),
            Err(why) => wrong.push(format!("{}: {why}", file.target)),
        }
        changed += 1;
    }
    for number in (1..options.files).step_by(CHANGED_EACH as usize) {
        let file = SiteFile::new(common.seed, number);
        std::fs::remove_file(folder.path().join("public").join(&file.path)).during("removing a file")?;
        match visit.wait_for_removal(&file, STALE_MAX) {
            Ok(time) => slowest = slowest.max(time),
            Err(why) => wrong.push(format!("{}: {why}", file.target)),
        }
        removed += 1;
    }
    report.note("files changed, removed", format!("{changed}, {removed}"));
    report.equal("changes that did not show in 2 s", wrong.len() as u64, 0);
    report.examples("wrong", &wrong);
    report.note("slowest change to show", format!("{} ms", slowest.as_millis()));
    Ok(())
}

fn send_large(
    server: &Server,
    options: &Options,
    large: &Arc<SparseFile>,
    report: &mut Report,
) -> Outcome<()> {
    let address = server.address();
    let before = server.snapshot();
    let time = Duration::from_secs(options.slow_seconds);
    let spawn_slow = |_| {
        let large = Arc::clone(large);
        std::thread::spawn(move || read_slowly(address, "/large.bin", &large, time))
    };
    let readers: Vec<_> = (0..options.slow_readers).map(spawn_slow).collect();
    let pace = Pace::start(address, "/beside.txt", BESIDE_RATE);
    let started = Instant::now();
    let whole = download(address, "/large.bin", large);
    let elapsed = started.elapsed();
    let during = server.snapshot();
    let samples = pace.finish()?;
    let (mut slow_bytes, mut wrong) = (0, Vec::new());
    for reader in readers {
        match reader.join().map_err(|_| "a slow reader panicked")? {
            Ok(bytes) => slow_bytes += bytes,
            Err(fault) => wrong.push(format!("slow reader: {fault}")),
        }
    }
    match whole {
        Ok(bytes) => report.equal("large file: bytes compared", bytes, large.length()),
        Err(fault) => {
            report.check(
                "large file: bytes compared",
                fault.to_string(),
                format!("= {}", large.length()),
                false,
            );
        }
    }
    let speed = large.length() as f64 / elapsed.as_secs_f64() / 1e6;
    report.note("large file: known blocks in it", large.blocks() as u64);
    report.note("large file: download", format!("{:.1} s, {speed:.0} MB/s", elapsed.as_secs_f64()));
    report.equal("slow readers: wrong", wrong.len() as u64, 0);
    report.examples("wrong", &wrong);
    report.note("slow readers: bytes compared", slow_bytes);
    let growth = growth_kib(before.rss_kib, during.rss_kib);
    report.at_most_if_measured("resident growth meanwhile", growth, LARGE_GROWTH_MAX_KIB, 0, "KiB");
    let latencies = samples.between(started, started + elapsed);
    report.equal("normal client beside it: failures", samples.failures.len() as u64, 0);
    report.examples("failure", &samples.failures);
    report.at_most("normal client beside it: p99", latencies.p99_us / 1e3, BESIDE_P99_MAX_MS, 1, "ms");
    Ok(())
}
