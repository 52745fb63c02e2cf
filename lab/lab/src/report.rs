//! A comparison as a person reads it.

use std::fmt::Write;

use crate::compare::{AGAIN, Entry, Outcome};
use crate::statistics::{Estimate, median};

/// The table, what is invalid, and how to read it.
pub fn render(outcome: &Outcome) -> String {
    let plan = &outcome.plan;
    let mut out = format!(
        "{}: {}; {} connections, {} rounds of {} s, seed {}\n\n",
        plan.scenario.name,
        plan.scenario.about,
        plan.scenario.connections,
        plan.blocks,
        plan.seconds,
        plan.seed
    );
    let titles =
        ["server", "valid", "µs CPU/response", "÷ base", "syscalls", "RSS MiB", "bytes", "responses/s"];
    let mut rows = vec![titles.map(str::to_owned)];
    rows.extend(outcome.entries.iter().map(|entry| row(outcome, entry)));
    out.push_str(&align(&rows));
    for entry in &outcome.entries {
        for (round, block) in entry.blocks.iter().enumerate().filter(|(_, block)| !block.is_valid()) {
            let faults: Vec<String> = block.faults.iter().map(ToString::to_string).collect();
            // A String takes all that is written to it.
            let _ = writeln!(
                out,
                "invalid, not counted: {} round {}: {}",
                entry.label,
                round + 1,
                faults.join("; ")
            );
        }
    }
    if let Some(note) = outcome.receive_buffer_note() {
        let _ = writeln!(out, "{note}");
    }
    out.push('\n');
    for entry in outcome.entries.iter().filter(|entry| !entry.label.ends_with(AGAIN)) {
        let _ = writeln!(out, "{}: {}", entry.label, entry.identity.text());
    }
    out.push_str(
        "\nMedians, [bootstrap 95 % interval]. The base's second row is the noise. \"client-bound\": the client was the \
         limit, so requests per second say nothing; CPU per response stands.\n",
    );
    out
}

fn row(outcome: &Outcome, entry: &Entry) -> [String; 8] {
    let seed = outcome.plan.seed;
    let none = || "-".to_owned();
    let ratio = outcome.entries.first().and_then(|base| outcome.ratio(entry, base));
    let resident: Vec<f64> = entry.valid().map(|block| block.resident.now_kib as f64 / 1024.0).collect();
    let valid = entry.valid().count();
    let rps = match entry.rps(seed) {
        Some(rps) => format!("{:.0}", rps.median),
        None if valid > 0 => "client-bound".to_owned(),
        None => none(),
    };
    [
        entry.label.clone(),
        format!("{valid}/{}", entry.blocks.len()),
        entry.cpu_us(seed).map_or_else(none, show),
        ratio.map_or_else(none, show),
        entry.syscalls(seed).map_or_else(none, |count| format!("{:.3}", count.median)),
        median(&resident).map_or_else(none, |mib| format!("{mib:.1}")),
        entry.valid().next().map_or_else(none, |block| block.answer_bytes.to_string()),
        rps,
    ]
}

/// A median and its interval.
pub fn show(estimate: Estimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.3} [{low:.3} {high:.3}]", estimate.median),
        None if estimate.values == 1 => format!("{:.3} [one value]", estimate.median),
        None => format!("{:.3} [too few]", estimate.median),
    }
}

/// Columns as wide as their widest cell.
pub fn align<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| rows.iter().map(|row| length(&row[column])).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}
