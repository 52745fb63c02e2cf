//! The file of a run: everything that was measured, and with what.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::bar::{Measured, Row};
use crate::block::Block;
use crate::compare::{Entry, Outcome};
use crate::machine;
use crate::programs::{Programs, root, target};
use crate::trials;
use crate::validity::is_client_bound;

/// Describes a comparison.
pub(crate) fn describe(outcome: &Outcome, programs: &Programs) -> Value {
    let (plan, scenario) = (&outcome.plan, outcome.plan.scenario);
    json!({
        "scenario": scenario.name,
        "about": scenario.about,
        "blocks": plan.blocks,
        "seconds": plan.seconds,
        "seed": plan.seed,
        "receive_buffer_bytes": scenario.receive_buffer_bytes,
        "receive_buffer_note": outcome.receive_buffer_note(),
        "wait_percent_max": plan.wait_percent(),
        "unix_seconds": unix_seconds(),
        "commit": machine::commit(&root()),
        "profile": programs.profile,
        "profile_guided": programs.guidance,
        "machine": machine::describe(),
        "wrk": machine::version(Path::new("wrk"), "-v"),
        "null_answer_bytes": outcome.null_bytes,
        "servers": outcome.entries.iter().map(|entry| describe_entry(outcome, entry)).collect::<Vec<_>>(),
    })
}

fn describe_entry(outcome: &Outcome, entry: &Entry) -> Value {
    let seed = outcome.plan.seed;
    json!({
        "label": entry.label,
        "identity": entry.identity,
        "valid_blocks": entry.valid().count(),
        "cpu_us_per_response": entry.figure(Block::cpu_us, seed),
        "ratio_to_base": outcome.entries.first().and_then(|base| outcome.ratio(entry, base)),
        "responses_per_second": entry.rps(seed),
        "syscalls_per_response": entry.syscalls(seed),
        "syscalls_missing_because": entry.syscalls.iter().find_map(|count| count.as_ref().err()),
        "blocks": entry.blocks.iter().map(describe_block).collect::<Vec<_>>(),
    })
}

fn describe_block(block: &Block) -> Value {
    let mut described = json!(block);
    described["valid"] = json!(block.is_valid());
    described["cpu_us_per_response"] = json!(block.cpu_us());
    described["client_bound"] = json!(is_client_bound(block.client_busy_percent));
    described
}

/// Describes a run of the bar: its rows, and all that they rest on.
pub(crate) fn describe_bar(rows: &[&Row], measured: &Measured, programs: &Programs) -> Value {
    let describe_row = |row: &&Row| {
        let verdict = measured.judge(row);
        json!({
            "row": row.name,
            "scenario": row.measure.scenario(),
            "case": row.measure.text(),
            "wanted": row.figure.text(),
            "measured": verdict.estimate(),
            "verdict": verdict.text(row.figure),
        })
    };
    let trials = measured.trials.iter().map(|finding| {
        let round = |round: &Result<Vec<(&str, f64)>, String>| match round {
            Ok(figures) => {
                figures.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect::<Value>()
            }
            Err(reason) => json!({ "missing_because": reason }),
        };
        json!({
            "trial": format!("{:?}", finding.subject.trial),
            "server": finding.subject.server,
            "scenario": trials::SCENARIO,
            "workers": finding.subject.trial.workers(),
            "rounds": finding.rounds.iter().map(round).collect::<Vec<_>>(),
        })
    });
    let instructions = measured.instructions.iter().map(|((server, scenario), count)| {
        let (value, reason) = (count.as_ref().ok(), count.as_ref().err());
        json!({ "server": server, "scenario": scenario, "instructions": value, "missing_because": reason })
    });
    json!({
        "rows": rows.iter().map(describe_row).collect::<Vec<_>>(),
        "comparisons": measured.outcomes.iter().map(|it| describe(it, programs)).collect::<Vec<_>>(),
        "trials": trials.collect::<Vec<_>>(),
        "instructions": instructions.collect::<Vec<_>>(),
        "commit": machine::commit(&root()),
        "profile": programs.profile,
        "profile_guided": programs.guidance,
        "machine": machine::describe(),
        "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
    })
}

/// Writes the file, under a name that sorts by time.
pub(crate) fn write(name: &str, record: &Value) -> Result<PathBuf, String> {
    let folder = root().join("lab/results");
    let path = folder.join(format!("{}-{name}.json", unix_seconds()));
    let mut text = serde_json::to_string_pretty(record).map_err(|error| error.to_string())?;
    // The commands name this machine's folders, which are no part of the result.
    for (place, name) in [(target(), "$TARGET"), (root(), "$ROOT"), (std::env::temp_dir(), "$TEMP")] {
        text = text.replace(&place.display().to_string(), name);
    }
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text + "\n"));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
