//! Parts of the page as flat lists, which the templates draw or print.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::chart::number;
use super::input::{CurvePoint, Record, ResultFile, Row, Series};
use super::verdict::{CPU, Outcome, Role, outcome};
use crate::experiment::Experiment;

/// Returns each row's outcome in a word.
pub(super) fn outcomes(rows: &[&Row]) -> Vec<Value> {
    let word = |row: &&Row| {
        let outcome = outcome(&row.verdict);
        let name = match outcome {
            Some(Outcome::Good) => "met",
            Some(Outcome::Noise) => "within noise",
            Some(Outcome::Bad) => "MISSED",
            Some(Outcome::Missing) => "not measured",
            None => "for information",
        };
        json!({ "name": name, "outcome": outcome })
    };
    rows.iter().map(word).collect()
}

/// Returns all figures besides the CPU time under load.
pub(super) fn figures(series: &[&Series]) -> Vec<Value> {
    let mut found = Vec::new();
    for series in series {
        let (scenario, experiment) = (&series.scenario, series.experiment);
        for (figure, name) in experiment.figures() {
            let is_main = experiment == Experiment::Load && *name == CPU;
            for server in series.servers.iter().filter(|server| !is_main && server.counted(name) > 0) {
                // A valid round leaves requests per second out where the client was the limit.
                let is_whole = server.counted(name) == server.counted(CPU) || experiment != Experiment::Load;
                let measured = server.estimate(name, series.seed).filter(|_| is_whole);
                let ratio = series.servers.first().and_then(|base| server.ratio(base, name, series.seed));
                let ratio = ratio.filter(|_| is_whole);
                found.push(json!({ "scenario": scenario, "figure": figure, "server": server.label, "measured": measured, "ratio": ratio }));
            }
        }
    }
    found
}

/// Returns everything that does not count, with the reasons.
pub(super) fn invalid(files: &[ResultFile], series: &[&Series], curve: &[&CurvePoint]) -> Vec<Value> {
    let mut found = Vec::new();
    for series in series {
        for server in &series.servers {
            let bad: Vec<_> = server.rounds.iter().filter(|round| !round.faults.is_empty()).collect();
            let reasons: BTreeSet<&str> =
                bad.iter().flat_map(|round| &round.faults).map(String::as_str).collect();
            let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
            let of =
                format!("{}, {}", series.scenario, series.experiment.title(series.experiment.figures()[0].1));
            let count = format!("{} of {} rounds", bad.len(), server.rounds.len());
            found
                .extend((!bad.is_empty()).then(
                    || json!({ "of": of, "server": server.label, "count": count, "reasons": reasons }),
                ));
        }
    }
    for point in curve.iter().filter(|point| !point.valid) {
        let of = format!("{} at {} requests a second", point.scenario, number(point.offered_per_s));
        let reasons = point.reason.as_deref().unwrap_or("no reason given");
        found.push(json!({ "of": of, "server": point.server, "count": "the point", "reasons": reasons }));
    }
    for file in files {
        for (server, reasons) in file.step.iter().flat_map(|step| &step.not_measured) {
            let of = file.step.as_ref().map_or("", |step| &step.name);
            found.push(json!({ "of": of, "server": server, "count": "not measured", "reasons": reasons }));
        }
        let failures = file.findings.iter().flat_map(|findings| &findings.counts.failures);
        for (reasons, count) in failures {
            let count = format!("{count} connections");
            found.push(json!({ "of": file.name, "server": file.server, "count": count, "reasons": reasons }));
        }
    }
    found
}

/// Returns each server's version, which names its age.
pub(super) fn versions(files: &[ResultFile]) -> BTreeSet<[&str; 2]> {
    let servers = files.iter().flat_map(|file| &file.series).flat_map(|series| &series.servers);
    let servers = servers.filter(|server| Role::of(&server.label) != Role::Control);
    servers.map(|server| [&*server.label, &*server.version]).collect()
}

/// Returns the commands of each server and its client, of a round of each scenario.
pub(super) fn commands(series: &[&Series]) -> Vec<Value> {
    let mut found = Vec::new();
    for series in series {
        for server in series.servers.iter().filter(|server| Role::of(&server.label) != Role::Control) {
            let details = || server.rounds.iter().map(|round| &round.details);
            let command = |name| details().find_map(|details| details[name].as_str());
            if let (Some(server_command), Some(client_command)) =
                (command("server_command"), command("client_command"))
            {
                let (scenario, server) = (&series.scenario, &server.label);
                found.push(json!({ "scenario": scenario, "server": server, "server_command": server_command, "client_command": client_command }));
            }
        }
    }
    found
}

/// Returns latencies at quantiles, of each server at each rate, and of single loads.
pub(super) fn percentiles(files: &[ResultFile], curve: &[&CurvePoint]) -> Vec<Value> {
    let points = curve.iter().map(|it| {
        let title = format!("{} at {} requests a second", it.scenario, number(it.offered_per_s));
        (title, it.server.clone(), &it.percentiles)
    });
    let loads = files.iter().map(|file| {
        let name = if file.server.is_empty() { &file.name } else { &file.server };
        ("Single loads".to_owned(), name.clone(), &file.percentiles)
    });
    let value = |(title, server, percentiles): (String, String, &Vec<(f64, f64)>)| {
        let pair = |&(quantile, ms): &(f64, f64)| json!({ "title": title, "server": server, "quantile": quantile, "ms": ms });
        percentiles.iter().map(pair).collect::<Vec<_>>()
    };
    points.chain(loads).flat_map(value).collect()
}

/// Returns each figure of each run of the records, in order of time, and whether it changed there.
pub(super) fn records(
    records: &BTreeMap<String, Vec<Record>>,
    change_points: impl Fn(&[f64]) -> Vec<usize>,
) -> Vec<Value> {
    let mut flat = Vec::new();
    for (record, runs) in records {
        let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.figures.keys()).collect();
        for name in names {
            let found = || runs.iter().filter_map(|run| Some((&run.commit, *run.figures.get(name)?)));
            let changes = change_points(&found().map(|(_, value)| value).collect::<Vec<_>>());
            let value = |(at, (commit, value)): (usize, (&String, f64))| {
                let title = format!("{record}: {name}");
                json!({ "title": title, "server": record, "commit": commit, "value": value, "run": at + 1, "changed": changes.contains(&at) })
            };
            flat.extend(found().enumerate().map(value));
        }
    }
    flat
}
