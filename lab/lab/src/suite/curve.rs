//! Servers over the offered rate: at each rate rounds of all servers, as in any comparison, after rounds in a closed loop
//! that say how much the slowest server can do.

use serde_json::{Value, json};

use super::plan::Step;
use crate::bench::Bench;
use crate::series::{Series, ServerRounds};
use crate::statistics::Estimate;

/// Columns of a curve as text: title and field of a point.
pub(super) const COLUMNS: [(&str, &str); 10] = [
    ("offered/s", "offered_per_s"),
    ("server", "server"),
    ("achieved/s", "achieved_per_s"),
    ("µs CPU", "cpu_us"),
    ("in flight", "in_flight"),
    ("p50 ms", "p50_ms"),
    ("p99 ms", "p99_ms"),
    ("p99.9 ms", "p999_ms"),
    ("max ms", "max_ms"),
    ("not counted", "reason"),
];

/// Measures the capacity of each server, and then all servers at shares of the smallest. Returns points and all rounds.
pub(super) fn run(step: &Step, bench: &Bench<'_>) -> Result<(Vec<Value>, Vec<Series>), String> {
    let closed = step.series(step.variant(None, true)?).run(bench)?;
    let capacity =
        |server: &ServerRounds| Some((closed.estimate(server, "responses_per_s")?.median, server.spec));
    let capacities: Vec<_> =
        closed.servers.iter().filter(|server| !server.is_control()).filter_map(capacity).collect();
    let slowest = capacities.iter().min_by(|one, other| one.0.total_cmp(&other.0));
    let (slowest, spec) = *slowest.ok_or("no server has a valid round in a closed loop")?;
    crate::progress(&format!("rates are shares of {slowest:.0} a second: {} in a closed loop", spec.name));
    let (mut points, mut measured) = (Vec::new(), vec![closed]);
    for percent in &step.percent {
        let rate = (slowest * f64::from(*percent) / 100.0).max(1.0) as u32;
        let mut plan = step.series(step.variant(Some(rate), true)?);
        plan.servers.retain(|spec| capacities.iter().any(|(_, able)| able == spec));
        let series = plan.run(bench)?;
        let servers = series.servers.iter().filter(|server| !server.is_control());
        points.extend(servers.map(|server| point(step, *percent, rate, &series, server)));
        measured.push(series);
    }
    Ok((points, measured))
}

/// Returns a point as the report reads it.
fn point(step: &Step, percent: u32, rate: u32, series: &Series, server: &ServerRounds) -> Value {
    let interval = |estimate: Option<Estimate>| estimate.map(|it| json!([it.median, it.low, it.high]));
    let median = |figure| series.estimate(server, figure).map(|it| it.median);
    let mut point = json!({
        "server": server.label,
        "scenario": step.scenario,
        "percent": percent,
        "offered_per_s": rate,
        "achieved_per_s": median("responses_per_s"),
        "in_flight": median("in_flight"),
        "valid": server.valid().next().is_some(),
        "reason": server.rounds.iter().flat_map(|round| &round.faults).next(),
    });
    for figure in ["cpu_us", "p50_ms", "p99_ms", "p999_ms", "max_ms"] {
        point[figure] = json!(interval(series.estimate(server, figure)));
        point["ratio_to_base"][figure] = json!(interval(series.ratio_to_base(server, figure)));
    }
    point
}
