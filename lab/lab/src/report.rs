//! Results as text, and the file of a run, which holds everything that was measured and with what.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::bar::{self, BarRow, RowResult};
use crate::bench::Bench;
use crate::format::{align, show};
use crate::machine;
use crate::programs::{root, target};
use crate::series::Series;

/// Renders a comparison: every figure of every server, the invalid rounds, and who took part.
pub(crate) fn comparison(measured: &[Series]) -> String {
    let mut out = String::new();
    for series in measured {
        let Series { scenario, about, rounds, .. } = series;
        let _ = writeln!(out, "{scenario}: {about}, {rounds} rounds\n\n{}", figures(series));
    }
    out + &notes(measured)
        + "\nMedians, [bootstrap 95 % interval]. The base's second row is the noise: a smaller difference is none. \
           \"client-bound\": the client was the limit, so responses per second say nothing; CPU per response is valid.\n"
}

/// Renders the figures of a series, each with its ratio to the base's.
fn figures(series: &Series) -> String {
    let mut rows = vec![["figure", "server", "counted", "measured", "÷ base"].map(str::to_owned)];
    for (at, (title, name)) in series.experiment.figures().iter().enumerate() {
        // The first two of a load are always shown, so that a missing one is seen.
        if at > 1 && series.servers.iter().all(|server| server.figure(name).is_empty()) {
            continue;
        }
        for server in &series.servers {
            let (values, valid) = (server.figure(name).len(), server.valid().count());
            let (measured, ratio) = match values < valid {
                true => ("client-bound".to_owned(), "-".to_owned()),
                false => (show(series.estimate(server, name)), show(series.ratio_to_base(server, name))),
            };
            let counted = format!("{valid}/{}", server.rounds.len());
            rows.push([(*title).to_owned(), server.label.clone(), counted, measured, ratio]);
        }
    }
    align(&rows)
}

/// Renders invalid rounds with their reasons, warnings, and who took part.
fn notes(measured: &[Series]) -> String {
    let (mut out, mut identities) = (String::new(), BTreeSet::new());
    for series in measured {
        for server in &series.servers {
            let faults: BTreeSet<&str> =
                server.rounds.iter().flat_map(|round| &round.faults).map(String::as_str).collect();
            let (all, bad) = (server.rounds.len(), server.rounds.len() - server.valid().count());
            if bad > 0 {
                // A String takes all that is written to it.
                let (scenario, label) = (&series.scenario, &server.label);
                let faults = faults.into_iter().collect::<Vec<_>>().join("; ");
                let _ = writeln!(out, "not counted: {scenario} {label}: {bad} of {all}: {faults}");
            }
            if !server.is_control() {
                identities.insert(format!("{}: {}\n", server.label, server.version));
            }
        }
    }
    let notes = measured.iter().filter_map(Series::receive_buffer_note);
    out.extend(notes.map(|note| note + "\n").chain(identities));
    out
}

/// Renders the rows of the bar with what was measured, the controls, what did not count, and who took part.
pub(crate) fn bar(rows: &[RowResult], measured: &[Series]) -> String {
    let mut table = vec![["row", "scenario", "case", "wanted", "measured", "verdict"].map(str::to_owned)];
    table.extend(rows.iter().map(|it| {
        let measured = show(it.measured);
        [&it.row, &it.scenario, &it.case, &it.wanted, &measured, &it.verdict].map(String::clone)
    }));
    let mut out = align(&table);
    out.push_str("\nMedians, [bootstrap 95 % interval]. A ratio of CPU time is taken round by round.\n\n");
    out.push_str(&controls(measured));
    out + "\n" + &notes(measured)
}

/// Renders the base of each load against itself: its difference is noise.
fn controls(measured: &[Series]) -> String {
    let mut table = vec![["control (noise)", "scenario", "measured"].map(str::to_owned)];
    for series in measured {
        for server in series.servers.iter().filter(|server| server.is_control()) {
            let name = format!("{} ÷ {}", server.label, series.servers[0].label);
            let ratio = show(series.ratio_to_base(server, "cpu_us"));
            table.push([name, series.scenario.clone(), ratio]);
        }
    }
    if table.len() > 1 { align(&table) + "\n" } else { String::new() }
}

/// Renders the names of all rows, what each measures and what it must be.
pub(crate) fn list_rows() -> String {
    let title = ["row", "scenario", "case", "wanted"].map(str::to_owned);
    let row = |row: &BarRow| [row.name.clone(), row.scenario.clone(), row.text(), row.wanted()];
    let groups: String = bar::groups().map(|(name, rows)| format!("{name}: {rows} rows\n")).collect();
    align(&std::iter::once(title).chain(bar::all().map(row)).collect::<Vec<_>>())
        + "\ngroups for --only\n"
        + &groups
}

/// Describes a run: its rows, all that they rest on, and with what it was measured.
pub(crate) fn describe(rows: &[RowResult], measured: &[Series], bench: &Bench<'_>) -> Value {
    json!({
        "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        "unix_seconds": unix_seconds(),
        "commit": machine::commit(),
        "profile": bench.programs.usual,
        "settings": bench.settings,
        "machine": machine::describe(),
        "rows": rows,
        "series": measured,
    })
}

/// Writes the file of a run, under a name that sorts by time.
pub(crate) fn write(name: &str, record: &Value) -> Result<PathBuf, String> {
    let path = root().join("lab/results").join(format!("{}-{name}.json", unix_seconds()));
    store(&path, record).map(|()| path)
}

/// Writes a record whole or not at all.
pub(crate) fn store(path: &Path, record: &Value) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(record).map_err(|error| error.to_string())?;
    // The commands name this machine's folders, which are no part of the result.
    for (place, name) in [(target(), "$TARGET"), (root(), "$ROOT"), (std::env::temp_dir(), "$TEMP")] {
        text = text.replace(&place.display().to_string(), name);
    }
    let unfinished = path.with_extension("unfinished");
    let written = fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(&unfinished, text + "\n"))
        .and_then(|()| fs::rename(&unfinished, path));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
