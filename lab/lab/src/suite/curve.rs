//! Servers over the offered rate: at each rate rounds of all servers, as in any comparison, after rounds in a closed loop
//! that say how much the slowest server can do.

use serde_json::{Value, json};

use super::plan::Step;
use crate::bench::Bench;
use crate::plausibility::is_client_bound;
use crate::series::{Series, ServerRounds};
use crate::statistics::{Estimate, VALUES_MIN, estimate};

/// Measures the capacity of each server, and then all servers at shares of the smallest. Returns capacities, points and all rounds.
pub(super) fn run(step: &Step, bench: &Bench<'_>) -> Result<(Value, Vec<Value>, Vec<Series>), String> {
    let closed = step.series(step.variant(None, true)?).run(bench)?;
    let is_measured = |server: &&ServerRounds| !server.is_control() && server.valid().next().is_some();
    let able: Vec<&ServerRounds> = closed.servers.iter().filter(is_measured).collect();
    let rate = |server: &ServerRounds| closed.estimate(server, "responses_per_s").map_or(0.0, |it| it.median);
    let slowest = able.iter().min_by(|one, other| rate(one).total_cmp(&rate(other)));
    let slowest = slowest.ok_or("no server has a valid round in a closed loop")?;
    let limit = if is_bound_by_client(slowest) { ", which is the client's limit" } else { "" };
    let (name, slowest_per_s) = (&slowest.label, rate(slowest));
    crate::progress(&format!(
        "rates are shares of {slowest_per_s:.0} a second: {name} in a closed loop{limit}"
    ));
    let capacities = able.iter().map(|server| {
        json!({ "server": server.label, "responses_per_s": rate(server), "client_bound": is_bound_by_client(server) })
    });
    let capacities = capacities.collect();
    let (mut points, mut measured) = (Vec::new(), Vec::new());
    for percent in &step.percent {
        let rate = (slowest_per_s * f64::from(*percent) / 100.0).max(1.0) as u32;
        let mut plan = step.series(step.variant(Some(rate), true)?);
        plan.servers.retain(|spec| able.iter().any(|server| server.label == spec.name));
        let series = plan.run(bench)?;
        let servers = series.servers.iter().filter(|server| !server.is_control());
        points.extend(servers.map(|server| point(step, *percent, rate, &series, server)));
        measured.push(series);
    }
    measured.insert(0, closed);
    Ok((capacities, points, measured))
}

/// Returns true if the client was the limit of a server's valid rounds, by their median.
fn is_bound_by_client(server: &ServerRounds) -> bool {
    let busy: Vec<f64> =
        server.valid().filter_map(|round| round.details["client_busy_percent"].as_f64()).collect();
    estimate(&busy, 0).is_some_and(|busy| is_client_bound(busy.median))
}

/// Returns a point as the report reads it.
fn point(step: &Step, percent: u32, rate: u32, series: &Series, server: &ServerRounds) -> Value {
    let interval = |estimate: Option<Estimate>| estimate.map(|it| json!([it.median, it.low, it.high]));
    let median = |figure| series.estimate(server, figure).map(|it| it.median);
    let (valid, faults) = (server.valid().count(), server.rounds.iter().flat_map(|round| &round.faults));
    let is_valid = valid >= VALUES_MIN;
    let why =
        || format!("{valid} of {VALUES_MIN} needed rounds count: {}", faults.last().map_or("", |why| why));
    let mut point = json!({
        "server": server.label,
        "scenario": step.scenario,
        "percent": percent,
        "offered_per_s": rate,
        "achieved_per_s": median("responses_per_s"),
        "in_flight": median("in_flight"),
        "valid": is_valid,
        "reason": (!is_valid).then(why),
    });
    for figure in ["cpu_us", "p50_ms", "p99_ms", "p999_ms", "max_ms"] {
        point[figure] = json!(interval(series.estimate(server, figure)));
        point["ratio_to_base"][figure] = json!(interval(series.ratio_to_base(server, figure)));
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::MeasuredRound;
    use crate::series::tests::{failed, load_series, round};

    #[test]
    fn a_point_needs_three_rounds_and_a_capacity_an_idle_client() {
        let busy =
            |percent: f64| MeasuredRound { details: json!({ "client_busy_percent": percent }), ..round(4.0) };
        let step = Step::default();
        let point_of = |rounds| {
            let series = load_series(vec![round(4.0); 3], rounds);
            point(&step, 50, 100, &series, &series.servers[2])
        };
        assert_eq!(point_of(vec![round(4.0); 3])["valid"], true);
        let two = point_of(vec![round(4.0), failed(), round(4.0)]);
        assert_eq!(
            (&two["valid"], &two["reason"]),
            (&json!(false), &json!("2 of 3 needed rounds count: planted"))
        );
        for (percent, is_bound) in [(89.0, false), (91.0, true)] {
            let series = load_series(vec![round(4.0); 3], vec![busy(percent); 3]);
            assert_eq!(is_bound_by_client(&series.servers[2]), is_bound);
        }
    }
}
