//! Group `compression`: pages are compressed on the fly beside clients of a small page.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;
use testkit::{Client, Program, random};

use crate::context::CaseContext;
use crate::expected::ExactResponse;
use crate::normal::NormalClients;
use crate::report::CaseReport;

/// Rounds, of which the medians count.
const ROUNDS: u64 = 5;
/// Longest wait for all pages of a round to be sent compressed.
const COMPRESSED_MAX: Duration = Duration::from_secs(30);
/// Growth of the normal clients' p99 beside compression. On a quiet machine with a core to spare it is within noise.
const P99_GROWTH_MAX: f64 = 2.0;
/// Words of the pages.
const WORDS: [&str; 16] = [
    "the",
    "server",
    "sends",
    "pages",
    "that",
    "were",
    "compressed",
    "by",
    "threads",
    "of",
    "its",
    "own",
    "and",
    "keeps",
    "them",
    "briefly",
];

/// Serves pages that nobody has requested before, while other clients request a small one.
pub(crate) fn beside_others(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let pages = context.count(200, 1000);
    let root = context.folder.join("site");
    fs::create_dir(&root)?;
    fs::write(root.join("small.txt"), "small\n")?;
    let mut server = Command::new(&context.programs.server);
    server.arg(&root).arg("--compress");
    let mut server = context.start_server(server)?;
    let address = server.address();
    let expected =
        ExactResponse::new(&Client::connect(address)?.get("/small.txt")?).map_err(anyhow::Error::msg)?;
    let normal = NormalClients {
        count: 2,
        interval: Duration::from_millis(2),
        address,
        target: "/small.txt",
        expected: &expected,
        also: None,
    };
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        write_pages(&root, round, pages, context.args.seed)?;
        let ((), seen) = normal.beside(|| thread::sleep(Duration::from_secs(2)));
        report.none(format!("round {round}: errors alone"), &seen.errors);
        alone.push(p99_us(seen.samples.iter().map(|(_, latency)| *latency)));
        let (done, seen) = normal.beside(|| compress_all(&root, round, pages, address));
        times.push(done?.as_secs_f64());
        report.none(format!("round {round}: errors beside compression"), &seen.errors);
        beside.push(p99_us(seen.samples.iter().map(|(_, latency)| *latency)));
    }
    let (alone, beside) = (median(&mut alone), median(&mut beside));
    report.note("p99 alone, us", alone.round());
    report.note("p99 beside compression, us", beside.round());
    report
        .note("seconds until all pages of a round are sent compressed", format!("{:.2}", median(&mut times)));
    report.at_most("p99 beside compression / alone", beside / alone, P99_GROWTH_MAX, "x");
    report_threads(&server, report)?;
    report.stop(&mut server);
    Ok(())
}

/// Returns the content of a page.
fn page(round: u64, number: u64, seed: u64) -> String {
    let mut random = random::part(seed, round << 32 | number);
    let mut text = format!("page {number} of round {round}\n");
    while text.len() < 40_000 {
        text.push_str(WORDS[random.usize(..WORDS.len())]);
        text.push(if random.u8(..) < 20 { '\n' } else { ' ' });
    }
    text
}

fn write_pages(root: &Path, round: u64, pages: u64, seed: u64) -> Result<()> {
    fs::create_dir(root.join(round.to_string()))?;
    for number in 0..pages {
        fs::write(root.join(format!("{round}/{number}.txt")), page(round, number, seed))?;
    }
    Ok(())
}

/// Requests all pages until each was sent compressed, with the right content. Returns the time.
fn compress_all(root: &Path, round: u64, pages: u64, address: SocketAddr) -> Result<Duration> {
    let start = Instant::now();
    let mut client = Client::connect(address)?;
    let mut left: Vec<u64> = (0..pages).collect();
    while !left.is_empty() {
        ensure!(
            start.elapsed() < COMPRESSED_MAX,
            "{} pages of {pages} are still sent as they are",
            left.len()
        );
        let mut still = Vec::new();
        for number in left {
            let response =
                client.request("GET", &format!("/{round}/{number}.txt"), &["Accept-Encoding: gzip"])?;
            let content = fs::read(root.join(format!("{round}/{number}.txt")))?;
            let mut sent = Vec::new();
            if response.header("Content-Encoding") == Some("gzip") {
                GzDecoder::new(&response.body[..]).read_to_end(&mut sent).context("a gzip body")?;
            } else {
                sent.clone_from(&response.body);
                still.push(number);
            }
            ensure!(sent == content, "page {number} of round {round} has other content");
        }
        left = still;
    }
    Ok(start.elapsed())
}

/// Reports the CPU time of the server's threads by their names: compression runs on threads of its own.
fn report_threads(server: &Program, report: &mut CaseReport) -> Result<()> {
    let mut ticks: BTreeMap<String, u64> = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{}/task", server.pid()))? {
        let stat = fs::read_to_string(task?.path().join("stat"))?;
        let (name, figures) =
            stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(") ")).context("stat")?;
        let figures: Vec<&str> = figures.split(' ').collect();
        let (user, system): (u64, u64) = (figures[11].parse()?, figures[12].parse()?);
        let kind = name.trim_end_matches(|last: char| last.is_ascii_digit()).trim_end_matches('-');
        *ticks.entry(kind.to_owned()).or_default() += user + system;
    }
    let all = ticks.iter().map(|(name, ticks)| format!("{name} {ticks}")).collect::<Vec<_>>().join(", ");
    report.note("CPU time by threads, ticks", all);
    let of = |kind: &str| {
        ticks.iter().filter(|(name, _)| name.starts_with(kind)).map(|(_, ticks)| *ticks).sum::<u64>()
    };
    report.within("CPU time of threads that compress, ticks", of("compress"), 1..=u64::MAX);
    Ok(())
}

/// Returns the latency that 99 in 100 requests did not exceed, in microseconds.
fn p99_us(latencies: impl Iterator<Item = Duration>) -> f64 {
    let mut sorted: Vec<Duration> = latencies.collect();
    sorted.sort_unstable();
    let rank = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
    sorted.get(rank).map_or(f64::INFINITY, |latency| latency.as_secs_f64() * 1e6)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
