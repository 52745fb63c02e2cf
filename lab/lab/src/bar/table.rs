//! The bar as a person reads it.

use std::fmt::Write;

use super::cases;
use super::{Case, judge};
use crate::alone::Finding;
use crate::compare::{AGAIN, Outcome};
use crate::report::{align, show};

/// The names of all rows, what each measures and what it must be.
pub fn list() -> String {
    let title = ["row", "scenario", "case", "wanted"].map(str::to_owned);
    let row = |case: &Case| {
        [case.name.to_owned(), case.scenario.to_owned(), case.measure.text(), case.figure.text()]
    };
    let rows: Vec<_> = std::iter::once(title).chain(cases::all().map(row)).collect();
    align(&rows)
}

/// The rows with what was measured, the controls, what did not count, and who took part.
pub fn render(cases: &[&Case], outcomes: &[Outcome], findings: &[Finding], seed: u64) -> String {
    let mut rows = vec![["row", "case", "wanted", "measured", "verdict"].map(str::to_owned)];
    for case in cases {
        let verdict = judge(case, outcomes, findings, seed);
        let measured = verdict.estimate().map_or_else(|| "-".to_owned(), show);
        let text = verdict.text(case.figure);
        rows.push([case.name.to_owned(), case.measure.text(), case.figure.text(), measured, text]);
    }
    let mut out = align(&rows);
    out.push_str(
        "\nMedians, [bootstrap 95 % interval]. A ratio is of server CPU time per verified response.\n",
    );
    out.push_str(&controls(outcomes));
    out.push_str(&invalid(outcomes));
    let notes: String =
        outcomes.iter().filter_map(Outcome::receive_buffer_note).map(|note| format!("\n{note}\n")).collect();
    out.push_str(&notes);
    out.push_str(&identities(outcomes));
    out
}

/// The base of each scenario against itself: what differs there is noise.
fn controls(outcomes: &[Outcome]) -> String {
    let mut rows = vec![["control (noise)", "scenario", "measured", "client"].map(str::to_owned)];
    for outcome in outcomes {
        let Some((base, again)) = outcome.entries.first().zip(outcome.entries.get(1)) else { continue };
        let ratio = outcome.ratio(again, base).map_or_else(|| "-".to_owned(), show);
        let bound =
            outcome.entries.iter().flat_map(|entry| entry.valid()).filter(|block| block.rps().is_none());
        let valid: usize = outcome.entries.iter().map(|entry| entry.valid().count()).sum();
        let client =
            format!("the limit in {} of {valid} blocks: no requests per second there", bound.count());
        let name = format!("{} ÷ {}", again.label, base.label);
        rows.push([name, outcome.plan.scenario.name.to_owned(), ratio, client]);
    }
    if rows.len() > 1 { format!("\n{}", align(&rows)) } else { String::new() }
}

fn invalid(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for outcome in outcomes {
        for entry in &outcome.entries {
            let faults = entry.blocks.iter().flat_map(|block| &block.faults).map(ToString::to_string);
            let mut faults: Vec<String> = faults.collect();
            let (all, bad) = (entry.blocks.len(), entry.blocks.len() - entry.valid().count());
            faults.sort();
            faults.dedup();
            if bad > 0 {
                // A String takes all that is written to it.
                let name = outcome.plan.scenario.name;
                let _ = writeln!(
                    out,
                    "not counted: {name} {}: {bad} of {all}: {}",
                    entry.label,
                    faults.join("; ")
                );
            }
        }
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

fn identities(outcomes: &[Outcome]) -> String {
    let entries = outcomes.iter().flat_map(|outcome| &outcome.entries);
    let mut lines: Vec<String> = entries
        .filter(|entry| !entry.label.ends_with(AGAIN))
        .map(|entry| format!("{}: {}\n", entry.label, entry.identity.text()))
        .collect();
    lines.sort();
    lines.dedup();
    if lines.is_empty() { String::new() } else { format!("\n{}", lines.concat()) }
}
