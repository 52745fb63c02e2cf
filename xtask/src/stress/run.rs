//! One whole run against one driver: the server's start, the phases, a moment of rest, the server's end.

use std::process::Command;
use std::time::Duration;

use super::bystander::{self, Seen};
use super::figures::Figures;
use super::phase::{PHASES, Phase, Requests};
use super::{Plan, counted, wrk};
use crate::harness::client::{Client, request};
use crate::harness::folder::Folder;
use crate::harness::process::{self, core_percent, growth_kib, settle_descriptors};
use crate::harness::program;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// Between two phases: the kernel ends the last one's connections.
const PAUSE: Duration = Duration::from_secs(2);
/// A client that asks for little gets its answer within this time in every phase: `wrk`'s own timeout in most of them.
const BYSTANDER_MAX: Duration = Duration::from_secs(5);
/// How long the server has to notice the ends of a phase's connections.
const SETTLE: Duration = Duration::from_secs(5);
/// What the server may still hold a minute after the last phase, beyond the start, KiB. Per worker (two here): spare outputs and
/// blocks 1 MiB each, receive buffers of io_uring 1 MiB, slots of the 5,000 connections 0.3 MiB; and as much again for pages that the
/// allocator keeps in part.
const GROWTH_MAX_KIB: f64 = 16.0 * 1024.0;
/// The answer of the smallest program.
const BODY: &[u8] = b"Hello, World!";

/// Runs all phases against one driver.
pub(super) fn run(plan: &Plan<'_>) -> Outcome<Report> {
    let folder = Folder::new(plan.keep)?;
    let command = Command::new(program::smallest(plan.server_bin.map(|path| path.as_path()))?);
    let server = Server::start(command, &folder, |command, address| {
        command.args([&address.to_string(), plan.driver]);
    })?;
    let mut report = Report::new();
    let uses_uring = process::uses_io_uring(server.pid());
    report.check("driver in use", if uses_uring { "uring" } else { "epoll" }, plan.driver, {
        uses_uring == (plan.driver == "uring")
    });
    report.note("load generator", wrk::version().unwrap_or_default());
    let answer_bytes = probe(&server, &mut report)?;
    // Until then the connections of the start and of the probe have ended.
    std::thread::sleep(PAUSE);
    let at_start = server.snapshot();
    report.note("resident at start, KiB", at_start.rss_kib);
    let mut requests = 1;
    for phase in &PHASES {
        eprintln!("stress {}: {} for {} s", plan.driver, phase.name, phase.seconds);
        let cpu = process::cpu_ns(server.pid());
        let (figures, seen) = bystander::beside(server.address(), BODY, || {
            wrk::run(phase, server.address(), plan.seed, &folder)
        });
        let figures = figures?;
        let spent =
            core_percent(cpu, process::cpu_ns(server.pid()), Duration::from_micros(figures.duration_us));
        report_phase(&mut report, phase, &figures, answer_bytes);
        report_seen(&mut report, phase, &seen);
        report.note(&format!("{}: server's CPU", phase.name), percent(spent));
        report.note(&format!("{}: resident at its end, KiB", phase.name), server.snapshot().rss_kib);
        requests += figures.requests + seen.answers;
        std::thread::sleep(PAUSE);
    }
    let descriptors = settle_descriptors(server.pid(), at_start.descriptors, SETTLE);
    eprintln!("stress {}: left alone for {} s", plan.driver, plan.settle.as_secs());
    std::thread::sleep(plan.settle);
    let after = server.snapshot();
    report.back_at("descriptors after the phases", descriptors, at_start.descriptors);
    report.note("resident at most, KiB", process::rss_peak_kib(server.pid()));
    report.note(&format!("resident {} s later, KiB", plan.settle.as_secs()), after.rss_kib);
    let growth = growth_kib(at_start.rss_kib, after.rss_kib);
    report.at_most_if_measured("resident growth", growth, GROWTH_MAX_KIB, 0, "KiB");
    probe(&server, &mut report)?;
    counted::report_and_stop(server, requests + 1, &mut report)?;
    Ok(report)
}

fn percent(share: Option<f64>) -> String {
    share.map_or("not measured".to_owned(), |share| format!("{share:.0} % of a core"))
}

/// One request by our own client: the answer is what it has to be. Gives how long it is, head and body.
fn probe(server: &Server, report: &mut Report) -> Outcome<u64> {
    let mut client = Client::open(server.address()).during("connecting to the server")?;
    let answer = client.exchange(&request("GET", "/"), false).during("asking the server")?;
    let right = answer.head.status == 200 && answer.body == BODY;
    report.check("probe", format!("status {}", answer.head.status), "200 and the body", right);
    Ok((answer.head.text.len() + answer.body.len()) as u64)
}

fn report_phase(report: &mut Report, phase: &Phase, figures: &Figures, answer_bytes: u64) {
    let named = |what: &str| format!("{}: {what}", phase.name);
    let Figures { requests, bytes, connect_errors, read_errors, write_errors, timeouts, .. } = *figures;
    report.check(
        &named("answers"),
        requests,
        format!(">= {}: one per connection", phase.connections),
        requests >= phase.connections,
    );
    report.equal(&named("answers of 4xx and 5xx"), figures.status_errors, 0);
    report.equal(&named("errors: connect"), connect_errors, 0);
    report.equal(&named("errors: read"), read_errors, 0);
    report.equal(&named("errors: write"), write_errors, 0);
    report.equal(&named("errors: timeout"), timeouts, 0);
    // All answers are equally long, so that a redirect, an error page or a torn answer would show. The last answer of a connection
    // may have come in part.
    let most = (requests + phase.connections) * answer_bytes;
    let whole = (requests * answer_bytes..=most).contains(&bytes);
    report.check(
        &named("bytes read"),
        bytes,
        format!("= {answer_bytes} x answers, + at most one each"),
        whole,
    );
    report_load(report, phase, figures);
    report.note(&named("answers per second"), format!("{:.0}", figures.per_second()));
    let ms = |us: u64| us as f64 / 1000.0;
    let latency = [figures.p50_us, figures.p99_us, figures.max_us].map(ms);
    let [p50, p99, max] = latency;
    report.note(&named("latency p50, p99, most"), format!("{p50:.0}, {p99:.0}, {max:.0} ms"));
}

fn report_seen(report: &mut Report, phase: &Phase, seen: &Seen) {
    let wrong = seen.wrong.as_ref().map_or("none".to_owned(), ToString::to_string);
    let right = seen.wrong.is_none() && seen.answers > 0;
    report.check(&format!("{}: a bystander's errors", phase.name), wrong, "none", right);
    let (slowest, most) = (seen.slowest.as_secs_f64() * 1e3, BYSTANDER_MAX.as_secs_f64() * 1e3);
    report.at_most(&format!("{}: a bystander's slowest answer", phase.name), slowest, most, 0, "ms");
}

/// The script has sent what it should, so that a phase can't pass by asking for less.
fn report_load(report: &mut Report, phase: &Phase, figures: &Figures) {
    let Some((least, most)) = phase.load_bytes() else { return };
    let named = |what: &str| format!("{}: {what}", phase.name);
    // One more than answered per connection, and one that wrk asks its script for before it starts.
    let built_most = figures.requests + phase.connections + 1;
    let sent = (figures.requests..=built_most).contains(&figures.built);
    report.check(&named("requests built"), figures.built, format!("<= {built_most}, >= answers"), sent);
    let mean = figures.built_bytes / figures.built.max(1);
    let middle = least.midpoint(most);
    let near = mean.abs_diff(middle) <= (most - least) / 8;
    report.check(&named("bytes carried, mean"), mean, format!("about {middle}"), near);
    if phase.requests == Requests::Payloads {
        let share = 100.0 * figures.marked as f64 / figures.built.max(1) as f64;
        let shown = format!("{share:.1} %");
        report.check(&named("with a 40,000-byte header"), shown, "some", figures.marked > 0);
    }
}
