//! The file of a run: everything that was measured, and with what.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::alone::Finding;
use crate::bar::{self, Case};
use crate::binaries::{Binaries, root};
use crate::block::Block;
use crate::compare::{Entry, Outcome};
use crate::json::Json;
use crate::machine;
use crate::statistics::Estimate;

/// Describes the run, figures and circumstances.
pub fn describe(outcome: &Outcome, binaries: &Binaries) -> Json {
    let plan = &outcome.plan;
    let asked = plan.scenario.receive_buffer_bytes;
    let base = outcome.entries.first();
    let entries = outcome.entries.iter().map(|entry| describe_entry(outcome, entry, base));
    Json::Map(vec![
        ("scenario", Json::text(plan.scenario.name)),
        ("about", Json::text(plan.scenario.about)),
        ("blocks", Json::Count(plan.blocks.into())),
        ("seconds", Json::Count(plan.seconds.into())),
        ("seed", Json::Count(plan.seed)),
        ("receive_buffer_bytes", asked.map_or(Json::Null, |bytes| Json::Count(bytes.into()))),
        ("receive_buffer_note", outcome.receive_buffer_note().map_or(Json::Null, Json::text)),
        ("wait_percent_max", Json::Number(plan.wait_percent())),
        ("unix_seconds", Json::Count(unix_seconds())),
        ("commit", Json::text(machine::commit(&root()))),
        ("profile", Json::text(binaries.profile())),
        ("profile_guided", Json::text(binaries.guidance())),
        ("machine", machine::describe()),
        ("wrk", Json::text(machine::version(Path::new("wrk"), "-v"))),
        ("null_answer_bytes", Json::Count(outcome.null_bytes)),
        ("servers", Json::List(entries.collect())),
    ])
}

/// Writes the file, under a name that sorts by time.
///
/// # Errors
/// What the file system refuses.
pub fn write(name: &str, json: &Json) -> Result<PathBuf, String> {
    let folder = root().join("lab/results");
    let path = folder.join(format!("{}-{name}.json", unix_seconds()));
    // Commands name programs and files of this machine: the checkout and scratch folders are no part of the result.
    let mut text = json.to_string();
    let target =
        std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| root().join("target").display().to_string());
    let temporary = std::env::temp_dir().display().to_string();
    for (place, named) in [(target, "$TARGET"), (root().display().to_string(), "$ROOT"), (temporary, "$TEMP")]
    {
        text = text.replace(&place, named);
    }
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text + "\n"));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Describes a run of the bar: its rows, and all that they rest on.
pub fn describe_bar(
    cases: &[&Case],
    (outcomes, findings): (&[Outcome], &[Finding]),
    seed: u64,
    binaries: &Binaries,
) -> Json {
    let rows = cases.iter().map(|case| {
        let verdict = bar::judge(case, outcomes, findings, seed);
        Json::Map(vec![
            ("row", Json::text(case.name)),
            ("scenario", Json::text(case.scenario)),
            ("case", Json::text(case.measure.text())),
            ("wanted", Json::text(case.figure.text())),
            ("measured", describe_estimate(verdict.estimate())),
            ("verdict", Json::text(verdict.text(case.figure))),
        ])
    });
    let outcomes = outcomes.iter().map(|outcome| describe(outcome, binaries));
    Json::Map(vec![
        ("rows", Json::List(rows.collect())),
        ("comparisons", Json::List(outcomes.collect())),
        ("trials", Json::List(findings.iter().map(describe_finding).collect())),
        ("commit", Json::text(machine::commit(&root()))),
        ("profile", Json::text(binaries.profile())),
        ("profile_guided", Json::text(binaries.guidance())),
        ("machine", machine::describe()),
        ("command", Json::text(std::env::args().skip(1).collect::<Vec<_>>().join(" "))),
    ])
}

fn describe_finding(finding: &Finding) -> Json {
    let rounds = finding.rounds.iter().map(|round| match round {
        Ok(figures) => Json::Map(figures.iter().map(|(name, value)| (*name, Json::Number(*value))).collect()),
        Err(reason) => Json::Map(vec![("missing_because", Json::text(reason.as_str()))]),
    });
    Json::Map(vec![
        ("trial", Json::text(format!("{:?}", finding.subject.trial))),
        ("server", Json::text(finding.subject.of)),
        ("scenario", Json::text(finding.subject.scenario)),
        ("workers", Json::Count(finding.subject.trial.workers().into())),
        ("rounds", Json::List(rounds.collect())),
    ])
}

fn describe_entry(outcome: &Outcome, entry: &Entry, base: Option<&Entry>) -> Json {
    let seed = outcome.plan.seed;
    let ratio = base.and_then(|base| outcome.ratio(entry, base));
    let no_syscalls = entry.syscalls.iter().find_map(|count| count.as_ref().err());
    Json::Map(vec![
        ("label", Json::text(entry.label.as_str())),
        ("identity", entry.identity.json()),
        ("valid_blocks", Json::Count(entry.valid().count() as u64)),
        ("cpu_us_per_response", describe_estimate(entry.cpu_us(seed))),
        ("ratio_to_base", describe_estimate(ratio)),
        ("responses_per_second", describe_estimate(entry.rps(seed))),
        ("syscalls_per_response", describe_estimate(entry.syscalls(seed))),
        ("syscalls_missing_because", no_syscalls.map_or(Json::Null, |reason| Json::text(reason.as_str()))),
        ("blocks", Json::List(entry.blocks.iter().map(describe_block).collect())),
    ])
}

fn describe_estimate(estimate: Option<Estimate>) -> Json {
    estimate.map_or(Json::Null, |estimate| {
        Json::Map(vec![
            ("median", Json::Number(estimate.median)),
            ("low", Json::figure(estimate.interval.map(|(low, _)| low))),
            ("high", Json::figure(estimate.interval.map(|(_, high)| high))),
            ("values", Json::Count(estimate.values as u64)),
        ])
    })
}

fn describe_block(block: &Block) -> Json {
    let faults = block.faults.iter().map(|fault| Json::text(fault.to_string())).collect();
    Json::Map(vec![
        ("valid", Json::Bool(block.is_valid())),
        ("faults", Json::List(faults)),
        ("cpu_us_per_response", Json::figure(block.cpu_us())),
        ("responses", Json::Count(block.tally.responses)),
        ("bytes", Json::Count(block.tally.bytes)),
        ("duration_us", Json::Count(block.tally.duration_us)),
        ("answer_bytes", Json::Count(block.answer_bytes)),
        ("receive_buffer_bytes_granted", Json::Count(block.tally.receive_buffer_bytes)),
        ("window_ns", Json::Count(block.window_ns)),
        ("server_cpu_ns", Json::Count(block.server_cpu_ns)),
        ("server_wait_ns", Json::Count(block.server_wait_ns)),
        ("foreign_ns", Json::Count(block.foreign_ns)),
        ("client_busy_percent", Json::Number(block.client_busy_percent)),
        ("client_bound", Json::Bool(crate::validity::is_client_bound(block.client_busy_percent))),
        ("rss_kib", Json::Count(block.resident.now_kib)),
        ("rss_peak_kib", Json::Count(block.resident.peak_kib)),
        ("server_command", Json::text(block.server_line.as_str())),
        ("client_command", Json::text(block.client_line.as_str())),
    ])
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
