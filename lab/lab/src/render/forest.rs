//! The forest plot: each server's CPU time per response divided by the base's, all scenarios on one axis.

use serde::Serialize;

use super::chart::{Axis, Scale, Tick};
use super::input::{Series, Server};
use super::verdict::{CPU, factor, noise};
use crate::experiment::Experiment;
use crate::statistics::Estimate;

#[derive(Debug, Serialize)]
pub(super) struct Forest {
    panels: Vec<Panel>,
    ticks: Vec<Tick>,
    /// Place of the base.
    one: f64,
}

/// One scenario.
#[derive(Debug, Serialize)]
struct Panel {
    scenario: String,
    base: String,
    /// Ends of the band in which a difference is noise.
    noise: [f64; 2],
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    label: String,
    at: f64,
    ends: Option<[f64; 2]>,
    ratio: String,
    cpu: Option<Estimate>,
}

/// Places the ratios of all series under load.
pub(super) fn forest(all: &[&Series]) -> Option<Forest> {
    let loads = || all.iter().filter(|series| series.experiment == Experiment::Load);
    let ratios = |series: &Series| -> Vec<Estimate> {
        let ratio = |server: &Server| server.ratio(series.servers.first()?, CPU, series.seed);
        series.servers.iter().filter_map(ratio).collect()
    };
    let ends = |it: Estimate| [it.median, it.low.unwrap_or(it.median), it.high.unwrap_or(it.median)];
    let noises = loads().map(|series| noise(series)).flat_map(|noise| [noise, 1.0 / noise]);
    let axis = Axis::over(Scale::Log, loads().flat_map(|it| ratios(it)).flat_map(ends).chain(noises));
    let panel = |series: &&Series| {
        let base = series.servers.first()?;
        let row = |server: &Server| {
            let ratio = server.ratio(base, CPU, series.seed)?;
            let ends = ratio.low.zip(ratio.high).map(|(low, high)| [low, high]);
            let text = |[low, high]: [f64; 2]| {
                let [low, high] = [low, high].map(|end| factor(end, ratio.median));
                format!(" ({low}–{high})")
            };
            Some(Row {
                label: server.label.clone(),
                at: axis.at(ratio.median),
                ends: ends.map(|ends| ends.map(|end| axis.at(end))),
                ratio: factor(ratio.median, ratio.median) + &ends.map_or_else(String::new, text),
                cpu: server.estimate(CPU, series.seed),
            })
        };
        let rows: Vec<Row> = series.servers.iter().filter_map(row).collect();
        let noise = noise(series);
        let noise = [1.0 / noise, noise].map(|end| axis.at(end));
        let (scenario, base) = (series.scenario.clone(), base.label.clone());
        (!rows.is_empty()).then_some(Panel { scenario, base, noise, rows })
    };
    let panels: Vec<Panel> = loads().filter_map(panel).collect();
    (!panels.is_empty()).then(|| Forest { panels, ticks: axis.ticks(), one: axis.at(1.0) })
}
