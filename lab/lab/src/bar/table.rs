//! The bar as text.

use std::fmt::Write;

use super::{Measured, Row, rows};
use crate::compare::Outcome;
use crate::report::{align, notes, show};

/// Renders the names of all rows, what each measures and what it must be.
pub(crate) fn list() -> String {
    let title = ["row", "scenario", "case", "wanted"].map(str::to_owned);
    let row = |row: &Row| {
        [row.name.to_owned(), row.measure.scenario().to_owned(), row.measure.text(), row.figure.text()]
    };
    let groups = rows::GROUPS.map(|(name, rows)| format!("{name}: {} rows\n", rows.len())).concat();
    align(&std::iter::once(title).chain(rows::all().map(row)).collect::<Vec<_>>())
        + "\ngroups for --only\n"
        + &groups
}

/// Renders the rows with what was measured, the controls, what did not count, and who took part.
pub(crate) fn render(rows: &[&Row], measured: &Measured) -> String {
    let mut table = vec![["row", "case", "wanted", "measured", "verdict"].map(str::to_owned)];
    for row in rows {
        let (verdict, wanted) = (measured.judge(row), row.figure.text());
        let text = verdict.text(row.figure);
        table.push([row.name.to_owned(), row.measure.text(), wanted, show(verdict.estimate()), text]);
    }
    let outcomes = &measured.outcomes;
    let mut out = align(&table);
    out.push_str(
        "\nMedians, [bootstrap 95 % interval]. A ratio is of server CPU time per verified response.\n",
    );
    for part in [controls(outcomes), counts(measured), notes(outcomes)] {
        if !part.is_empty() {
            out.push('\n');
            out.push_str(&part);
        }
    }
    out
}

/// Renders the base of each scenario against itself: its difference is noise.
fn controls(outcomes: &[Outcome]) -> String {
    let mut table = vec![["control (noise)", "scenario", "measured", "client"].map(str::to_owned)];
    for outcome in outcomes {
        let [base, again, ..] = outcome.entries.as_slice() else { continue };
        let valid: Vec<_> = outcome.entries.iter().flat_map(|entry| entry.valid()).collect();
        let bound = valid.iter().filter(|block| block.rps().is_none()).count();
        let client = format!("the limit in {bound} of {} blocks: no requests per second there", valid.len());
        let name = format!("{} ÷ {}", again.label, base.label);
        table.push([name, outcome.plan.scenario.name.to_owned(), show(outcome.ratio(again, base)), client]);
    }
    if table.len() > 1 { align(&table) } else { String::new() }
}

/// Renders the counts of instructions.
fn counts(measured: &Measured) -> String {
    let mut out = String::new();
    for ((server, scenario), count) in &measured.instructions {
        let count =
            count.as_ref().map_or_else(|reason| format!("NOT MEASURED: {reason}"), |it| format!("{it:.1}"));
        let _ = writeln!(out, "instructions a request: {server} {scenario}: {count}");
    }
    out
}
