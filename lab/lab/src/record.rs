//! The file of a run: everything that was measured, and with what.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::bar::Memory;
use crate::binaries::{Binaries, root};
use crate::block::Block;
use crate::compare::{Entry, Outcome};
use crate::json::Json;
use crate::machine;
use crate::server::Kind;
use crate::setup::version_of;
use crate::statistics::Estimate;

/// Describes the run, figures and circumstances.
pub fn describe(outcome: &Outcome, binaries: &Binaries) -> Json {
    let plan = &outcome.plan;
    let base = outcome.entries.first();
    let entries = outcome.entries.iter().map(|entry| describe_entry(outcome, entry, base, binaries));
    Json::Map(vec![
        ("scenario", Json::text(plan.scenario.name)),
        ("about", Json::text(plan.scenario.about)),
        ("blocks", Json::Count(plan.blocks.into())),
        ("seconds", Json::Count(plan.seconds.into())),
        ("seed", Json::Count(plan.seed)),
        ("wait_percent_max", Json::Number(plan.wait_percent_max)),
        ("unix_seconds", Json::Count(unix_seconds())),
        ("commit", Json::text(machine::commit(&root()))),
        ("profile", Json::text(binaries.profile())),
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
    for (place, named) in [(target, "$TARGET"), (root().display().to_string(), "$ROOT")] {
        text = text.replace(&place, named);
    }
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text + "\n"));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Describes what a line about memory has measured.
pub fn describe_memory((measure, measured): &Memory) -> Json {
    let (figure, reason) = match measured {
        Ok(figure) => (Json::Number(*figure), Json::Null),
        Err(reason) => (Json::Null, Json::text(reason.as_str())),
    };
    let measure = Json::text(measure.text());
    Json::Map(vec![("measure", measure), ("measured", figure), ("missing_because", reason)])
}

fn describe_entry(outcome: &Outcome, entry: &Entry, base: Option<&Entry>, binaries: &Binaries) -> Json {
    let seed = outcome.plan.seed;
    let program = entry.server.program_path(outcome.plan.scenario, binaries);
    let ratio = base.and_then(|base| outcome.ratio(entry, base));
    let ours = entry.server.kind != Kind::Nginx;
    let version = if ours { machine::commit(&root()) } else { version_of(&program) };
    let (syscalls, no_syscalls) = match &entry.syscalls {
        Ok(count) => (Json::Number(*count), Json::Null),
        Err(reason) => (Json::Null, Json::text(reason.as_str())),
    };
    Json::Map(vec![
        ("label", Json::text(entry.label.as_str())),
        ("version", Json::text(version)),
        ("age_days", machine::age_days(&program).map_or(Json::Null, Json::Count)),
        ("valid_blocks", Json::Count(entry.valid().count() as u64)),
        ("cpu_us_per_response", describe_estimate(entry.cpu_us(seed))),
        ("ratio_to_base", describe_estimate(ratio)),
        ("responses_per_second", describe_estimate(entry.rps(seed))),
        ("syscalls_per_response", syscalls),
        ("syscalls_missing_because", no_syscalls),
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
        ("window_ns", Json::Count(block.window_ns)),
        ("server_cpu_ns", Json::Count(block.server_cpu_ns)),
        ("server_wait_ns", Json::Count(block.server_wait_ns)),
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
