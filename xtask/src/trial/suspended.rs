//! Trial `suspended`: ten thousand requests whose handlers wait at once, async and as coroutines; what each costs in memory, and that all are
//! answered in the end.

use std::time::{Duration, Instant};

use crate::harness::client::{Client, request};
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::process::{growth_kib, settle_descriptors};
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

use super::handlers::drivers_here;
use super::held::{Holder, Wanted};

/// Requests that wait at once, unless said otherwise.
const COUNT: usize = 10_000;
/// Requests before the first measurement.
const WARM_UP: usize = 100;
/// The kinds of handlers, and what a waiting request of each may cost in resident memory, in bytes.
const KINDS: [(&str, f64); 2] = [("async", 3072.0), ("coroutine", 8192.0)];
/// How many body bytes they answer with.
const ANSWER_BYTES: usize = b"held\n".len();
/// How long connections may be left without a request while others are opened, in milliseconds.
const IDLE_MS: u64 = 120_000;
/// How long the server has for what it does.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is asked meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Settings of the trial.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Options {
    /// Requests that wait at once
    #[arg(long, default_value_t = COUNT)]
    count: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { count: COUNT }
    }
}

/// Runs the trial, with one worker.
pub(super) fn run(common: &Common, options: &Options) -> Outcome<Report> {
    let folder = Folder::new(common.keep)?;
    let mut report = Report::new();
    for driver in drivers_here(common, &folder, &mut report) {
        let common = Common { workers: 1, driver: driver.clone(), ..common.clone() };
        for (kind, bytes_max) in KINDS {
            let run = Run { common: &common, name: format!("{driver} {kind}"), kind, count: options.count };
            run.measure(bytes_max, &folder, &mut report)?;
        }
    }
    Ok(report)
}

/// One kind of handler with one driver.
struct Run<'a> {
    common: &'a Common,
    name: String,
    kind: &'a str,
    count: usize,
}

impl Run<'_> {
    fn measure(&self, bytes_max: f64, folder: &Folder, report: &mut Report) -> Outcome<()> {
        let settings = ["SHEARWATER_HEADER_TIMEOUT_MS", "SHEARWATER_IDLE_TIMEOUT_MS"];
        let server = Server::example(self.common, &settings.map(|name| (name, IDLE_MS.to_string())), folder)?;
        let cold = server.snapshot();
        let target = format!("/{}/held", self.kind);
        let wanted = Wanted { target: &target, length: ANSWER_BYTES };
        let mut warm_up = Holder::start(server.address(), WARM_UP, None, wanted)?;
        warm_up.order("open")?;
        warm_up.order("send")?;
        wait_for(&server, WARM_UP)?;
        ask(&server, "/release")?;
        warm_up.order("read")?;
        warm_up.end();

        let at_start = settle_descriptors(server.pid(), cold.descriptors, Duration::from_secs(1));
        let mut holder = Holder::start(server.address(), self.count, None, wanted)?;
        holder.order("open")?;
        // Connected is not accepted yet.
        ask(&server, "/held")?;
        let before = server.snapshot();
        holder.order("send")?;
        let waiting = wait_for(&server, self.count)?;
        let during = server.snapshot();
        ask(&server, "/release")?;
        let answered = holder.order("read")?;
        holder.end();
        let descriptors = settle_descriptors(server.pid(), at_start, PATIENCE);
        let after = server.snapshot();

        let line = |what: &str| format!("{}: {what}", self.name);
        report.equal(&line("requests that wait at once"), waiting, self.count as u64);
        report.equal(&line("answered"), answered, self.count as u64);
        report.note(&line("resident with idle connections, KiB"), before.rss_kib);
        report.note(&line("resident while all wait, KiB"), during.rss_kib);
        report.note(&line("resident after, KiB"), after.rss_kib);
        let each = growth_kib(before.rss_kib, during.rss_kib);
        let each = each.map(|kib| kib * 1024.0 / self.count.max(1) as f64);
        report.at_most_if_measured(&line("resident per waiting request"), each, bytes_max, 0, "bytes");
        let is_back = descriptors <= at_start;
        let bound = at_start.map_or(String::new(), |count| format!("<= {count}"));
        report.check(&line("descriptors after the clients' end"), descriptors, bound, is_back);
        server.stop(report)
    }
}

/// Waits until so many requests wait; gives how many do in the end.
fn wait_for(server: &Server, count: usize) -> Outcome<u64> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let held = ask(server, "/held")?;
        if held >= count as u64 || Instant::now() >= deadline {
            return Ok(held);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Asks for a number.
fn ask(server: &Server, target: &str) -> Outcome<u64> {
    let mut client = Client::open(server.address()).during("connecting")?;
    let answer = client.exchange(&request("GET", target), false).during(target)?;
    String::from_utf8_lossy(&answer.body).parse().during(target)
}
