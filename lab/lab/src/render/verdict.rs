//! Verdicts in words, ours against each peer, and the forest plot of all servers against the base.

use serde_json::{Value, json};

use super::chart::{Axis, Scale};
use crate::experiment::Experiment;
use crate::series::{Series, ServerRounds};
use crate::server;
use crate::statistics::{Estimate, VALUES_MIN, estimate};

const CPU: &str = "cpu_us";

/// Returns the part of a server in a comparison: ours, peer, null, or the base's second run.
pub(super) fn role(label: &str) -> &'static str {
    let name = label.split_once('@').map_or(label, |(name, _)| name);
    let spec = server::all().unwrap_or_default().iter().find(|spec| spec.name == name);
    match spec {
        _ if label.ends_with(" (again)") => "control",
        Some(spec) if spec.is_null() => "null",
        // Also our engine under other people's routers, which is built with the peers.
        _ if name.starts_with("shearwater-") => "ours",
        Some(spec) if !spec.is_foreign() => "ours",
        _ => "peer",
    }
}

/// Returns the verdicts of a comparison under load, of each server of ours against each peer.
pub(super) fn verdicts(series: &Series) -> Vec<Value> {
    let with = |wanted| series.servers.iter().filter(move |server| role(&server.label) == wanted);
    let judge = |(ours, peer): (&ServerRounds, &ServerRounds)| {
        let ratios = peer.combine(ours, CPU, |peer, ours| peer / ours);
        let noise = if has_control(series) { noise(series) } else { f64::INFINITY };
        let (outcome, words) = words(estimate(&ratios, series.seed), &peer.label, noise);
        json!({ "scenario": series.scenario, "ours": ours.label, "peer": peer.label, "outcome": outcome, "words": words })
    };
    let pairs = with("ours").flat_map(|ours| with("peer").map(move |peer| (ours, peer)));
    pairs.filter(|_| series.experiment == Experiment::Load).map(judge).collect()
}

fn ratio_to_base(server: &ServerRounds) -> Option<Estimate> {
    server.figures.get(CPU)?.ratio_to_base
}

fn ends(ratio: Estimate) -> [f64; 2] {
    [ratio.low.unwrap_or(ratio.median), ratio.high.unwrap_or(ratio.median)]
}

/// Returns false if no round of the base's second run counts, so that the noise is unknown.
fn has_control(series: &Series) -> bool {
    let control = series.servers.iter().find(|server| role(&server.label) == "control");
    control.is_none_or(|control| ratio_to_base(control).is_some())
}

/// Returns the largest factor by which the base differs from itself.
pub(super) fn noise(series: &Series) -> f64 {
    let control = series.servers.iter().find(|server| role(&server.label) == "control");
    let ends = control.and_then(ratio_to_base).map_or([1.0; 2], ends);
    ends.into_iter().fold(1.0, |most, end| end.max(1.0 / end).max(most))
}

/// Describes the peer's CPU time divided by ours.
fn words(ratio: Option<Estimate>, peer: &str, noise: f64) -> (&'static str, String) {
    let Some(Estimate { median, low: Some(low), high: Some(high), .. }) = ratio else {
        let values = ratio.map_or(0, |ratio| ratio.values);
        return (
            "missing",
            format!("not compared with {peer}: {values} of {VALUES_MIN} needed rounds count for both"),
        );
    };
    if noise.is_infinite() {
        return ("missing", format!("not compared with {peer}: no round of the base's second run counts"));
    }
    let outcome = class([median, low, high], noise);
    let is_more = outcome == "bad";
    let [median, low, high] =
        if is_more { [1.0 / median, 1.0 / high, 1.0 / low] } else { [median, low, high] };
    let [shown, low, high] = [median, low, high].map(|value| factor(value, median));
    let words = match outcome {
        "noise" => format!("no difference beyond noise: {peer} ÷ ours is {shown}, 95 % {low}–{high}"),
        "good" => format!("{shown} × less CPU than {peer}, 95 % {low}–{high}"),
        _ => format!("{shown} × more CPU than {peer}, 95 % {low}–{high}"),
    };
    (outcome, words)
}

/// Returns the class of a ratio, of which more is better. It counts if its interval excludes 1 and it is more than the noise.
pub(super) fn class([median, low, high]: [f64; 3], noise: f64) -> &'static str {
    let is_noise = (low..=high).contains(&1.0) || median.max(1.0 / median) <= noise;
    match is_noise {
        true => "noise",
        false if median > 1.0 => "good",
        false => "bad",
    }
}

/// Formats a factor with the digits that the median's distance from 1 calls for.
pub(super) fn factor(value: f64, median: f64) -> String {
    let decimals = if (median - 1.0).abs() < 0.1 { 3 } else { 2 };
    format!("{value:.decimals$}")
}

/// Returns the class of a verdict in words.
pub(super) fn outcome(words: &str) -> &'static str {
    let words = words.to_lowercase();
    let classes = [
        ("not measured", "missing"),
        ("met", "good"),
        ("passed", "good"),
        ("missed", "bad"),
        ("failed", "bad"),
    ];
    match classes.iter().find(|(start, _)| words.starts_with(start)) {
        _ if words.contains("within noise") => "noise",
        found => found.map_or("", |(_, class)| class),
    }
}

/// Places the ratios to the base of all series under load on one logarithmic axis.
pub(super) fn forest(all: &[&Series]) -> Value {
    let loads = || all.iter().filter(|series| series.experiment == Experiment::Load);
    let ratios = loads().flat_map(|series| &series.servers).filter_map(ratio_to_base);
    let noises = loads().map(|series| noise(series)).flat_map(|noise| [noise, 1.0 / noise]);
    let axis = Axis::over(Scale::Log, ratios.flat_map(ends).chain(noises));
    let row = |server: &ServerRounds| {
        let ratio = ratio_to_base(server)?;
        let (ends, shown) = (ends(ratio), factor(ratio.median, ratio.median));
        let interval = ends.map(|end| factor(end, ratio.median)).join("–");
        let shown = if ratio.low.is_some() { format!("{shown} ({interval})") } else { shown };
        let (at, ends) = (axis.at(ratio.median), ends.map(|end| axis.at(end)));
        let cpu = server.figures[CPU].estimate;
        Some(json!({ "label": server.label, "at": at, "ends": ends, "ratio": shown, "cpu": cpu }))
    };
    let panel = |series: &&Series| {
        let rows: Vec<Value> = series.servers.iter().filter_map(row).collect();
        let (noise, base) = (noise(series), series.servers.first()?);
        let noise = [axis.at(1.0 / noise), axis.at(noise)];
        (!rows.is_empty())
            .then(|| json!({ "scenario": series.scenario, "base": base.label, "noise": noise, "rows": rows }))
    };
    let panels: Vec<Value> = loads().filter_map(panel).collect();
    json!({ "panels": panels, "ticks": axis.ticks(), "one": axis.at(1.0) })
}
