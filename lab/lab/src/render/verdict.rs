//! Verdicts in words: ours against each peer, scenario by scenario.

use std::collections::BTreeSet;

use serde::Serialize;

use super::input::{Series, Server};
use crate::experiment::Experiment;
use crate::statistics::{Estimate, VALUES_MIN};

pub(super) const CPU: &str = "cpu_us";
const AGAIN: &str = " (again)";

/// Part that a server has in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Ours,
    Peer,
    Null,
    /// The base a second time.
    Control,
}

impl Role {
    pub(super) fn of(label: &str) -> Self {
        let name = label.split_once('@').map_or(label, |(name, _)| name);
        let is_ours = |name: &str| {
            crate::server::all().iter().any(|spec| spec.name == name && !spec.is_foreign() && !spec.is_null())
        };
        match name {
            _ if label.ends_with(AGAIN) => Self::Control,
            _ if name.starts_with("null-") => Self::Null,
            _ if is_ours(name) => Self::Ours,
            _ => Self::Peer,
        }
    }
}

/// Outcome of a comparison; the names are classes of the templates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Good,
    Noise,
    Bad,
    Missing,
}

#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) scenario: String,
    pub(super) ours: String,
    pub(super) peer: String,
    pub(super) outcome: Outcome,
    pub(super) words: String,
}

/// Returns the verdicts of a comparison under load, of each server of ours against each peer.
pub(super) fn verdicts(series: &Series) -> Vec<Verdict> {
    if series.experiment != Experiment::Load {
        return Vec::new();
    }
    let with = |role| series.servers.iter().filter(move |server| Role::of(&server.label) == role);
    let noise = noise(series);
    let judge = |(ours, peer): (&Server, &Server)| {
        let (outcome, words) = words(peer.ratio(ours, CPU, series.seed), &peer.label, noise);
        let (ours, peer) = (ours.label.clone(), peer.label.clone());
        Verdict { scenario: series.scenario.clone(), ours, peer, outcome, words }
    };
    with(Role::Ours).flat_map(|ours| with(Role::Peer).map(move |peer| (ours, peer))).map(judge).collect()
}

/// Counts the outcomes of each server of ours.
pub(super) fn headlines(verdicts: &[Verdict]) -> Vec<String> {
    let servers: BTreeSet<&str> = verdicts.iter().map(|it| &*it.ours).collect();
    let line = |ours| {
        let count = |outcome| verdicts.iter().filter(|it| it.ours == ours && it.outcome == outcome).count();
        let [less, none, more, open] =
            [Outcome::Good, Outcome::Noise, Outcome::Bad, Outcome::Missing].map(count);
        let all = less + none + more + open;
        let open = if open > 0 { format!(", too little measured in {open}") } else { String::new() };
        format!(
            "{ours}: less CPU per response than a peer in {less} of {all} comparisons, no difference beyond noise in {none}, more in {more}{open}"
        )
    };
    servers.into_iter().map(line).collect()
}

/// Returns the largest factor that the base's second run differs by, with its interval.
pub(super) fn noise(series: &Series) -> f64 {
    let control = series.servers.iter().find(|server| Role::of(&server.label) == Role::Control);
    let ratio = control.zip(series.servers.first()).and_then(|(it, base)| it.ratio(base, CPU, series.seed));
    let ends = ratio.map(|it| [it.low.unwrap_or(it.median), it.high.unwrap_or(it.median)]);
    ends.map_or(1.0, |ends| ends.into_iter().fold(1.0, |most, end| end.max(1.0 / end).max(most)))
}

/// Describes the peer's CPU time divided by ours. A difference counts if the interval excludes 1 and it is more than the noise.
fn words(ratio: Option<Estimate>, peer: &str, noise: f64) -> (Outcome, String) {
    let Some(Estimate { median, low, high, values }) = ratio else {
        return (Outcome::Missing, format!("not compared with {peer}: no round counts for both"));
    };
    let Some((low, high)) = low.zip(high) else {
        let median = factor(median, median);
        return (
            Outcome::Missing,
            format!("{peer} ÷ ours is {median}; an interval needs {VALUES_MIN} rounds, {values} count"),
        );
    };
    let is_noise = (low..=high).contains(&1.0) || median.max(1.0 / median) <= noise;
    let (outcome, text, [median, low, high]) = match median {
        _ if is_noise => (Outcome::Noise, "no difference beyond noise:", [median, low, high]),
        more if more > 1.0 => (Outcome::Good, "less CPU than", [median, low, high]),
        _ => (Outcome::Bad, "more CPU than", [1.0 / median, 1.0 / high, 1.0 / low]),
    };
    let ([low, high], shown) = ([low, high].map(|end| factor(end, median)), factor(median, median));
    let words = match outcome {
        Outcome::Noise => format!("{text} {peer} ÷ ours is {shown}, 95 % {low}–{high}"),
        _ => format!("{shown} × {text} {peer}, 95 % {low}–{high}"),
    };
    (outcome, words)
}

/// Formats a factor with the digits that the median's distance from 1 calls for.
pub(super) fn factor(value: f64, median: f64) -> String {
    let decimals = match (median - 1.0).abs() {
        small if small < 0.1 => 3,
        middle if middle < 9.0 => 2,
        _ => 1,
    };
    format!("{value:.decimals$}")
}

/// Returns what a verdict in words means.
pub(super) fn outcome(words: &str) -> Option<Outcome> {
    let words = words.to_lowercase();
    let starts = |all: &[&str]| all.iter().any(|start| words.starts_with(start));
    match () {
        () if starts(&["not measured", "not run"]) => Some(Outcome::Missing),
        () if words.contains("within noise") => Some(Outcome::Noise),
        () if starts(&["met", "passed", "ok"]) => Some(Outcome::Good),
        () if starts(&["missed", "failed"]) => Some(Outcome::Bad),
        () => None,
    }
}
