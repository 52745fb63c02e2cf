//! Servers over the offered rate: at each rate rounds of all servers, as in any comparison, between rounds in a closed loop
//! that say how much the slowest server can do.

use serde_json::{Value, json};

use super::plan::Step;
use crate::bench::Bench;
use crate::report::align;
use crate::series::{Series, ServerRounds};
use crate::server::ServerSpec;
use crate::statistics::Estimate;

/// Figures of a point beside its rate.
const FIGURES: [&str; 5] = ["cpu_us", "p50_ms", "p99_ms", "p999_ms", "max_ms"];

/// A measured curve: its points, and all rounds that they rest on.
pub(super) struct Curve {
    pub(super) points: Vec<Value>,
    pub(super) series: Vec<Series>,
    pub(super) text: String,
}

/// Measures the capacity of each server, and then all servers at shares of the smallest.
pub(super) fn run(step: &Step, servers: &[&'static ServerSpec], bench: &Bench<'_>) -> Result<Curve, String> {
    let closed = step.series(step.variant(None, true)?, servers).run(bench)?;
    let capacity =
        |server: &ServerRounds| Some((closed.estimate(server, "responses_per_s")?.median, server.spec));
    let capacities: Vec<(f64, &'static ServerSpec)> =
        closed.servers.iter().filter(|server| !server.is_control()).filter_map(capacity).collect();
    let slowest = capacities.iter().min_by(|one, other| one.0.total_cmp(&other.0));
    let (slowest, server) = *slowest.ok_or("no server has a valid round in a closed loop")?;
    crate::progress(&format!("capacity: {slowest:.0} responses a second, of {}", server.name));
    let able: Vec<&'static ServerSpec> = capacities.iter().map(|(_, spec)| *spec).collect();
    let mut curve = Curve { points: Vec::new(), series: vec![closed], text: String::new() };
    let mut table = vec![
        [
            "offered/s",
            "server",
            "achieved/s",
            "µs CPU",
            "in flight",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
        ]
        .map(str::to_owned),
    ];
    for percent in &step.percent {
        let rate = (slowest * f64::from(*percent) / 100.0).max(1.0) as u32;
        let series = step.series(step.variant(Some(rate), true)?, &able).run(bench)?;
        for server in series.servers.iter().filter(|server| !server.is_control()) {
            curve.points.push(point(step, rate, &series, server));
            table.push(row(rate, &series, server));
        }
        curve.series.push(series);
    }
    curve.text = format!(
        "{}: rates are shares of {slowest:.0} a second, the most that the slowest server ({}) does here in a closed loop\n\n{}",
        step.name,
        server.name,
        align(&table)
    );
    Ok(curve)
}

/// Returns a point as the report reads it.
fn point(step: &Step, rate: u32, series: &Series, server: &ServerRounds) -> Value {
    let interval = |estimate: Option<Estimate>| estimate.map(|it| json!([it.median, it.low, it.high]));
    let median = |figure| series.estimate(server, figure).map(|it| it.median);
    let mut point = json!({
        "server": server.label,
        "scenario": step.scenario,
        "offered_per_s": rate,
        "achieved_per_s": median("responses_per_s"),
        "in_flight": median("in_flight"),
        "valid": server.valid().next().is_some(),
        "reason": server.rounds.iter().flat_map(|round| &round.faults).next(),
    });
    for figure in FIGURES {
        point[figure] = json!(interval(series.estimate(server, figure)));
        point["ratio_to_base"][figure] = json!(interval(series.ratio_to_base(server, figure)));
    }
    point
}

fn row(rate: u32, series: &Series, server: &ServerRounds) -> [String; 9] {
    let show = |figure: &str, decimals: usize| {
        let estimate = series.estimate(server, figure);
        estimate.map_or_else(|| "-".to_owned(), |it| format!("{:.decimals$}", it.median))
    };
    let valid = server.valid().count();
    let faults = server.rounds.iter().flat_map(|round| &round.faults).next();
    let achieved = match (valid, faults) {
        (0, Some(fault)) => format!("INVALID: {fault}"),
        _ => show("responses_per_s", 0),
    };
    let [cpu, p50, p99, p999, most] = FIGURES.map(|figure| show(figure, 3));
    [rate.to_string(), server.label.clone(), achieved, cpu, show("in_flight", 2), p50, p99, p999, most]
}
