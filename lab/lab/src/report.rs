//! A comparison as text.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::block::Block;
use crate::compare::{Entry, Figure, Outcome};
use crate::statistics::{Estimate, median};

const NONE: &str = "-";

/// Figures of blocks with latencies.
const LATENCIES: [(&str, Figure); 6] = [
    ("responses/s", Block::responses_per_second),
    ("p50 ms", |block| Some(block.tally.latency?.p50_us as f64 / 1e3)),
    ("p99 ms", |block| Some(block.tally.latency?.p99_us as f64 / 1e3)),
    ("p99.9 ms", |block| Some(block.tally.latency?.p999_us as f64 / 1e3)),
    ("slowest ms", |block| Some(block.tally.latency?.max_us as f64 / 1e3)),
    ("handlers ready a turn", |block| block.ready),
];

/// Renders the table, the invalid blocks, and who took part.
pub(crate) fn render(outcome: &Outcome) -> String {
    let (plan, scenario) = (&outcome.plan, outcome.plan.scenario);
    let mut out = format!(
        "{}: {}; {} connections, {} rounds of {} s, seed {}\n\n",
        scenario.name, scenario.about, scenario.connections, plan.blocks, plan.seconds, plan.seed
    );
    let titles =
        ["server", "valid", "µs CPU/response", "÷ base", "syscalls", "RSS MiB", "bytes", "responses/s"];
    let mut rows = vec![titles.map(str::to_owned)];
    rows.extend(outcome.entries.iter().map(|entry| row(outcome, entry)));
    out.push_str(&align(&rows));
    out.push_str(&latencies(outcome));
    out.push('\n');
    out.push_str(&notes(std::slice::from_ref(outcome)));
    out.push_str(
        "\nMedians, [bootstrap 95 % interval]. The base's second row is the noise. \"client-bound\": the client was the \
         limit, so requests per second say nothing; CPU per response is valid.\n",
    );
    out
}

/// Renders invalid blocks with their reasons, warnings, and who took part.
pub(crate) fn notes(outcomes: &[Outcome]) -> String {
    let (mut out, mut identities) = (String::new(), BTreeSet::new());
    for (outcome, entry) in
        outcomes.iter().flat_map(|outcome| outcome.entries.iter().map(move |it| (outcome, it)))
    {
        let faults: BTreeSet<String> =
            entry.blocks.iter().flat_map(|block| &block.faults).map(ToString::to_string).collect();
        let (all, bad) = (entry.blocks.len(), entry.blocks.len() - entry.valid().count());
        if bad > 0 {
            // A String takes all that is written to it.
            let (scenario, label) = (outcome.plan.scenario.name, &entry.label);
            let faults = faults.into_iter().collect::<Vec<_>>().join("; ");
            let _ = writeln!(out, "not counted: {scenario} {label}: {bad} of {all}: {faults}");
        }
        if !entry.is_control() {
            identities.insert(format!("{}: {}\n", entry.label, entry.identity.text()));
        }
    }
    let warnings = outcomes.iter().filter_map(Outcome::receive_buffer_note).map(|note| note + "\n");
    out.extend(warnings.chain(identities));
    out
}

fn row(outcome: &Outcome, entry: &Entry) -> [String; 8] {
    let seed = outcome.plan.seed;
    let ratio = outcome.entries.first().and_then(|base| outcome.ratio(entry, base));
    let resident: Vec<f64> = entry.valid().map(|block| block.resident.now_kib as f64 / 1024.0).collect();
    let valid = entry.valid().count();
    let none = || NONE.to_owned();
    let rps = match entry.rps(seed) {
        Some(rps) => format!("{:.0}", rps.median),
        None if valid > 0 => "client-bound".to_owned(),
        None => none(),
    };
    [
        entry.label.clone(),
        format!("{valid}/{}", entry.blocks.len()),
        show(entry.figure(Block::cpu_us, seed)),
        show(ratio),
        entry.syscalls(seed).map_or_else(none, |count| format!("{:.3}", count.median)),
        median(&resident).map_or_else(none, |mib| format!("{mib:.1}")),
        entry.valid().next().map_or_else(none, |block| block.response_bytes.to_string()),
        rps,
    ]
}

/// Renders the figures of blocks with latencies, if there are any, each with its ratio to the base's.
fn latencies(outcome: &Outcome) -> String {
    let Some(base) = outcome.entries.first().filter(|_| outcome.plan.scenario.has_latencies()) else {
        return String::new();
    };
    let mut rows = vec![["figure", "server", "measured", "÷ base"].map(str::to_owned)];
    for (title, figure) in LATENCIES {
        for entry in &outcome.entries {
            let Some(measured) = entry.figure(figure, outcome.plan.seed) else { continue };
            let ratio = outcome.ratio_of(figure, entry, base);
            rows.push([title.to_owned(), entry.label.clone(), show(Some(measured)), show(ratio)]);
        }
    }
    format!("\n{}", align(&rows))
}

/// Formats a median and its interval.
pub(crate) fn show(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { median, low: Some(low), high: Some(high), .. }) => {
            format!("{median:.3} [{low:.3} {high:.3}]")
        }
        Some(Estimate { median, values: 1, .. }) => format!("{median:.3} [one value]"),
        Some(Estimate { median, .. }) => format!("{median:.3} [too few]"),
        None => NONE.to_owned(),
    }
}

/// Pads columns to their widest cell.
pub(crate) fn align<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}
