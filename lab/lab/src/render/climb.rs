//! Servers that are each made from the one before: what a step is worth, on which load, and whether the order of steps matters.

use serde_json::{Value, json};

use super::chart::{Axis, Scale};
use super::input::ResultFile;
use super::verdict::{class, factor, noise};
use crate::experiment::Experiment;
use crate::series::{Series, ServerRounds};
use crate::statistics::{Estimate, estimate};

const CPU: &str = "cpu_us";

/// A figure of a suite's step.
struct Column<'a> {
    /// The suite's step, and the beginning of the names of servers that climb.
    step: &'a str,
    prefix: &'a str,
    series: &'a Series,
    title: &'static str,
    figure: &'static str,
}

/// A server compared with the one that it was made from.
struct Climb {
    before: Option<String>,
    own: String,
}

impl Climb {
    fn of(before: &str, own: &str) -> Self {
        Self { before: Some(before.to_owned()), own: own.to_owned() }
    }
}

/// Describes the ladder that the files have, if they have one.
pub(super) fn climb(files: &[ResultFile]) -> Value {
    let columns: Vec<Column<'_>> = files.iter().flat_map(columns).collect();
    let loads: Vec<&Column<'_>> = columns.iter().filter(|column| column.figure == CPU).collect();
    // The load with most servers has their order.
    let Some(widest) = loads.iter().max_by_key(|load| load.series.servers.len()) else { return Value::Null };
    let servers = widest.series.servers.iter().filter(|server| !server.is_control());
    let labels: Vec<&str> = servers.map(|server| &*server.label).collect();
    let chain: Vec<&str> =
        labels.iter().copied().filter(|it| it.starts_with(widest.prefix) && !it.contains('@')).collect();
    let rows = |climbs: &[Climb]| -> Vec<Value> { climbs.iter().map(|climb| climb.row(&loads)).collect() };
    let cost = |label: &&str| {
        let cells: Vec<Value> = columns.iter().map(|column| json!(column.cost(label))).collect();
        json!({ "server": label, "cells": cells })
    };
    let order = orders(&chain, &labels);
    json!({
        "loads": loads.iter().map(|load| json!({ "name": load.step, "about": load.series.about })).collect::<Vec<_>>(),
        "waterfalls": loads.iter().map(|load| load.waterfall(&chain, &labels)).collect::<Vec<_>>(),
        "steps": rows(&steps(&chain, &labels)),
        "beside": rows(&beside(&chain, &labels)),
        "order": rows(&order),
        "changes": changes(&order, &loads),
        "columns": columns.iter().map(|it| json!([it.step, it.title])).collect::<Vec<_>>(),
        "costs": labels.iter().map(cost).collect::<Vec<_>>(),
    })
}

/// Returns the figures of a file that has a ladder.
fn columns(file: &ResultFile) -> Vec<Column<'_>> {
    let step = file.others.get("step");
    let text = |field: &str| step.and_then(|step| step[field].as_str());
    let (Some(step), Some(prefix)) = (text("name"), text("climb")) else { return Vec::new() };
    let mut found = Vec::new();
    for series in &file.series {
        let most = if series.experiment == Experiment::Load { 1 } else { 2 };
        let figures = series.experiment.figures().iter().take(most);
        found.extend(figures.map(|(title, figure)| Column { step, prefix, series, title, figure }));
    }
    found
}

/// Returns the steps of the chain, and the last server's further builds.
fn steps(chain: &[&str], labels: &[&str]) -> Vec<Climb> {
    let first = chain.first().map(|own| Climb { before: None, own: (*own).to_owned() });
    let steps = chain.windows(2).map(|pair| Climb::of(pair[0], pair[1]));
    let last = chain.last().into_iter().flat_map(|last| builds(last, labels).map(|own| Climb::of(last, own)));
    first.into_iter().chain(steps).chain(last).collect()
}

/// Returns a server's further builds.
fn builds<'a>(of: &str, labels: &[&'a str]) -> impl Iterator<Item = &'a str> {
    labels.iter().copied().filter(move |label| label.split_once('@').is_some_and(|(name, _)| name == of))
}

/// Returns the steps that were measured before and after another one, in the order of what is stepped to.
fn orders(chain: &[&str], labels: &[&str]) -> Vec<Climb> {
    let mut found = Vec::new();
    for pair in chain.windows(2) {
        for built in builds(pair[1], labels) {
            let before = built.replace(pair[1], pair[0]);
            if labels.contains(&&*before) {
                found.extend([Climb::of(pair[0], pair[1]), Climb::of(&before, built)]);
            }
        }
    }
    let further = chain.iter().flat_map(|own| builds(own, labels).map(|built| Climb::of(own, built)));
    found.extend(further);
    found
}

/// Returns the servers that aren't of the ladder, against its last one.
fn beside(chain: &[&str], labels: &[&str]) -> Vec<Climb> {
    let others = labels.iter().filter(|label| !chain.iter().any(|it| label.split('@').next() == Some(it)));
    chain.last().into_iter().flat_map(|last| others.clone().map(|own| Climb::of(last, own))).collect()
}

/// Names the step that a comparison is of: the build, or else the server.
fn step_of(climb: &Climb) -> &str {
    let (name, build) = climb.own.split_once('@').unwrap_or((&climb.own, ""));
    match &climb.before {
        Some(before) if before == name => build,
        _ => name,
    }
}

/// Returns where a step has another verdict before another step than after it.
fn changes(order: &[Climb], loads: &[&Column<'_>]) -> Vec<Value> {
    let mut found = Vec::new();
    for (at, one) in order.iter().enumerate() {
        for other in order[at + 1..].iter().filter(|other| step_of(other) == step_of(one)) {
            for load in loads {
                let judged = |climb: &Climb| climb.before.as_ref().and_then(|it| load.judge(it, &climb.own));
                let (Some(first), Some(second)) = (judged(one), judged(other)) else { continue };
                if first.0 != second.0 {
                    found.push(json!({
                        "step": step_of(one), "load": load.step,
                        "one": one.own, "first": first.1, "other": other.own, "second": second.1,
                    }));
                }
            }
        }
    }
    found
}

impl Climb {
    /// Returns its verdicts on each load; of the first server the cost.
    fn row(&self, loads: &[&Column<'_>]) -> Value {
        let cell = |load: &&Column<'_>| match &self.before {
            None => load
                .cost(&self.own)
                .map(|it| json!({ "outcome": "", "words": format!("{:.2} µs", it.median) })),
            Some(before) => {
                let judged = load.judge(before, &self.own);
                judged.map(|(outcome, words)| json!({ "outcome": outcome, "words": words }))
            }
        };
        let cells: Vec<Option<Value>> = loads.iter().map(cell).collect();
        json!({ "step": step_of(self), "before": self.before, "own": self.own, "cells": cells })
    }
}

impl Column<'_> {
    fn server(&self, label: &str) -> Option<&ServerRounds> {
        self.series.server(label)
    }

    fn cost(&self, label: &str) -> Option<Estimate> {
        let cost = self.series.estimate(self.server(label)?, self.figure)?;
        // Counts are differences of two runs: what is left of things that happen once may be a millionth, or less than 0.
        let count = |value: f64| (value * 1e3).round() / 1e3 + 0.0;
        let rounded = |it: Estimate| Estimate {
            median: count(it.median),
            low: it.low.map(count),
            high: it.high.map(count),
            ..it
        };
        Some(if self.figure == CPU { cost } else { rounded(cost) })
    }

    /// Returns the class of a difference, and in words how much less the second server takes, round by round.
    fn judge(&self, before: &str, own: &str) -> Option<(&'static str, String)> {
        let (before, own) = (self.server(before)?, self.server(own)?);
        let ratios = before.combine(own, self.figure, |before, own| before / own);
        let Some(Estimate { median, low: Some(low), high: Some(high), .. }) =
            estimate(&ratios, self.series.seed)
        else {
            return Some(("missing", "too few rounds".to_owned()));
        };
        let outcome = class([median, low, high], noise(self.series));
        let is_more = outcome == "bad";
        let shown = if is_more { [1.0 / median, 1.0 / high, 1.0 / low] } else { [median, low, high] };
        let [shown, low, high] = shown.map(|it| factor(it, shown[0]));
        let words = match outcome {
            "noise" => format!("within noise: {shown} ({low}–{high})"),
            _ => format!("{shown} × {} ({low}–{high})", if is_more { "more" } else { "less" }),
        };
        Some((outcome, words))
    }

    /// Places the cost of each server that was measured under the load, and of what it was made from, on one axis.
    fn waterfall(&self, chain: &[&str], labels: &[&str]) -> Value {
        let mut climbs = steps(chain, labels);
        climbs.extend(beside(chain, labels));
        climbs.retain(|climb| self.cost(&climb.own).is_some());
        let costs = climbs.iter().filter_map(|climb| self.cost(&climb.own)).map(|it| it.median);
        let axis = Axis::over(Scale::Log, costs);
        let row = |climb: &Climb| {
            let cost = self.cost(&climb.own)?;
            let is_step = climb.own.starts_with(self.prefix);
            let before = climb.before.as_deref().filter(|_| is_step);
            let from = before.and_then(|before| self.cost(before)).map_or(cost.median, |it| it.median);
            let (outcome, words) = before.and_then(|before| self.judge(before, &climb.own)).unzip();
            let [from, to] = [from, cost.median].map(|it| axis.at(it));
            Some(json!({
                "label": climb.own.strip_prefix(self.prefix).unwrap_or(&climb.own), "from": from.min(to), "width": (from - to).abs(), "at": to, "outcome": outcome, "words": words, "cost": cost,
            }))
        };
        let rows: Vec<Value> = climbs.iter().filter_map(row).collect();
        json!({ "name": self.step, "about": self.series.about, "noise": factor(noise(self.series), 1.0), "rows": rows, "ticks": axis.ticks() })
    }
}
