//! The bar: the figures that the project must meet (`rows.toml`), and how each is judged.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Subject};
use crate::series::{Series, ServerRounds};
use crate::statistics::{Estimate, VALUES_MIN, estimate};

/// Rows by group; the group `default` is run unless others are named.
static GROUPS: LazyLock<BTreeMap<String, Vec<BarRow>>> =
    LazyLock::new(|| parse(include_str!("../rows.toml")));

/// One row of the bar; `rows.toml` describes the fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BarRow {
    pub(crate) name: String,
    experiment: Experiment,
    figure: Option<String>,
    pub(crate) scenario: String,
    server: String,
    over: Option<String>,
    minus: Option<String>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    below: Option<f64>,
    /// Path that a revision has if it can be measured.
    pub(crate) needs: Option<String>,
}

/// A judged row, as the file of a run has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowResult {
    pub(crate) row: String,
    pub(crate) scenario: String,
    pub(crate) case: String,
    pub(crate) wanted: String,
    pub(crate) measured: Option<Estimate>,
    /// `met`, `MISSED`, either within noise, `for information`, or `NOT MEASURED` with the reason.
    pub(crate) verdict: String,
}

impl RowResult {
    /// Returns false if a bound was missed or not measured.
    pub(crate) fn is_met(&self) -> bool {
        self.verdict.starts_with("met") || self.verdict == "for information"
    }
}

/// Parses groups of rows.
pub(crate) fn parse(text: &str) -> BTreeMap<String, Vec<BarRow>> {
    toml::from_str(text).expect("a test parses it")
}

/// Returns the rows and groups of these names.
pub(crate) fn select(only: &str) -> Result<Vec<&'static BarRow>, String> {
    let mut found = Vec::new();
    for name in only.split(',') {
        let before = found.len();
        match GROUPS.get(name) {
            Some(rows) => found.extend(rows),
            None => found.extend(all().filter(|row| row.name == name)),
        }
        if found.len() == before {
            return Err(format!("the bar has no row `{name}`\nhelp: `cargo lab bar --list` names them"));
        }
    }
    Ok(found)
}

pub(crate) fn all() -> impl Iterator<Item = &'static BarRow> {
    GROUPS.values().flatten()
}

/// Returns the groups with the number of their rows.
pub(crate) fn groups() -> impl Iterator<Item = (&'static str, usize)> {
    GROUPS.iter().map(|(name, rows)| (&**name, rows.len()))
}

impl BarRow {
    fn figure(&self) -> &str {
        self.figure.as_deref().unwrap_or(self.experiment.figures()[0].1)
    }

    fn subject(&self) -> Subject<'_> {
        Subject { experiment: self.experiment, scenario: &self.scenario, server: &self.server }
    }

    /// Returns the subject that this one is compared with.
    fn base(&self) -> Option<Subject<'_>> {
        let name = self.over.as_ref().or(self.minus.as_ref())?;
        let (server, scenario) = name.split_once(' ').unwrap_or((name, &self.scenario));
        Some(Subject { experiment: self.experiment, scenario, server })
    }

    /// Returns the subjects that must be measured, the base first.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject<'_>> {
        self.base().into_iter().chain([self.subject()])
    }

    /// Describes the quantity.
    pub(crate) fn text(&self) -> String {
        let about = format!("{}: {}", self.experiment.title(self.figure()), self.server);
        match (&self.over, &self.minus) {
            (Some(base), _) => format!("{about} ÷ {base}"),
            (None, Some(base)) => format!("{about} - {base}"),
            (None, None) => about,
        }
    }

    /// Describes the bound.
    pub(crate) fn wanted(&self) -> String {
        match (self.at_most, self.at_least, self.below) {
            (Some(bound), _, _) => format!("≤ {bound}"),
            (_, Some(bound), _) => format!("≥ {bound}"),
            (_, _, Some(bound)) => format!("< {bound}, all of it"),
            _ => "-".to_owned(),
        }
    }

    pub(crate) fn has_bound(&self) -> bool {
        self.at_most.or(self.at_least).or(self.below).is_some()
    }

    fn is_met_by(&self, measured: f64) -> bool {
        self.at_most.is_none_or(|bound| measured <= bound)
            && self.at_least.is_none_or(|bound| measured >= bound)
            && self.below.is_none_or(|bound| measured < bound)
    }

    /// Judges by the median, where all must be below the bound by the upper end of the interval. Says so where the interval
    /// crosses the bound.
    pub(crate) fn judge(&self, measured: &[Series]) -> RowResult {
        let judged = self.estimate(measured).and_then(|estimate| match (self.below, estimate.high) {
            (Some(_), None) => {
                Err(format!("{} of {VALUES_MIN} values that an interval needs", estimate.values))
            }
            (Some(_), Some(high)) => Ok((estimate, high)),
            (None, _) => Ok((estimate, estimate.median)),
        });
        let verdict = match &judged {
            Err(reason) => format!("NOT MEASURED: {reason}"),
            Ok(_) if !self.has_bound() => "for information".to_owned(),
            Ok((estimate, judged)) => {
                let ends = estimate.low.zip(estimate.high);
                let is_clear = ends.is_none_or(|(low, high)| self.is_met_by(low) == self.is_met_by(high));
                let word = if self.is_met_by(*judged) { "met" } else { "MISSED" };
                if is_clear { word.to_owned() } else { format!("{word}, within noise") }
            }
        };
        RowResult {
            row: self.name.clone(),
            scenario: self.scenario.clone(),
            case: self.text(),
            wanted: self.wanted(),
            measured: judged.ok().map(|(estimate, _)| estimate),
            verdict,
        }
    }

    fn estimate(&self, measured: &[Series]) -> Result<Estimate, String> {
        let find = |subject: Subject<'_>| -> Result<(&Series, &ServerRounds), String> {
            let is_same = |series: &&Series| {
                series.experiment == subject.experiment && series.scenario == subject.scenario
            };
            let series = measured.iter().find(is_same);
            let found = series.and_then(|series| Some((series, series.server(subject.server)?)));
            found.ok_or_else(|| format!("{} was not run", subject.server))
        };
        let (series, own) = find(self.subject())?;
        let base = self.base().map(find).transpose()?.map(|(_, base)| base);
        let values = match base {
            None => own.figure(self.figure()),
            Some(base) if self.over.is_some() => own.combine(base, self.figure(), |own, base| own / base),
            Some(base) => own.combine(base, self.figure(), |own, base| own - base),
        };
        let reason = || {
            let mut faults = own
                .rounds
                .iter()
                .chain(base.iter().flat_map(|base| &base.rounds))
                .flat_map(|round| &round.faults);
            faults.next().cloned().unwrap_or_else(|| "no round counts".to_owned())
        };
        enough(estimate(&values, series.seed).ok_or_else(reason)?, series.rounds)
    }
}

/// Requires half of the rounds, and as many as an interval needs where they were run: the rest of a disturbed run is chance.
fn enough(estimate: Estimate, rounds: u32) -> Result<Estimate, String> {
    let rounds = rounds as usize;
    let least = rounds.div_ceil(2).max(rounds.min(VALUES_MIN));
    match estimate.values {
        values if values < least => Err(format!("{values} of {rounds} rounds count, {least} are needed")),
        _ => Ok(estimate),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bench::MeasuredRound;
    use crate::block::tests::SETTINGS;
    use crate::report;
    use crate::series::SeriesPlan;
    use crate::series::tests::{failed, load_series, round};

    /// Returns the CPU time of shearwater-epoll divided by that of null-epoll, with a bound.
    fn row(bound: &str) -> BarRow {
        let fixed =
            "name = 'planted'\nexperiment = 'load'\nscenario = 'plaintext'\nserver = 'shearwater-epoll'\n";
        toml::from_str(&format!("{fixed}over = 'null-epoll'\n{bound}")).expect("a row")
    }

    fn judge(row: &BarRow, base: Vec<MeasuredRound>, other: Vec<MeasuredRound>) -> String {
        row.judge(&[load_series(base, other)]).verdict
    }

    fn rounds(cpu_us: &[f64]) -> Vec<MeasuredRound> {
        cpu_us.iter().map(|cpu_us| if *cpu_us > 0.0 { round(*cpu_us) } else { failed() }).collect()
    }

    #[test]
    fn rows_are_judged_by_their_bound_and_interval() {
        let noisy = [4.0, 4.4, 4.4, 5.0];
        for (bound, ours, text) in [
            ("at_most = 1.25", &[5.0; 3][..], "met"),
            ("at_most = 1.24", &[5.0; 3], "MISSED"),
            ("at_least = 1.26", &[5.0; 3], "MISSED"),
            ("", &[5.0; 3], "for information"),
            ("at_most = 1.15", &noisy, "met, within noise"),
            ("at_most = 1.05", &noisy, "MISSED, within noise"),
            ("at_most = 1.5", &noisy, "met"),
            ("at_least = 1.5", &noisy, "MISSED"),
            // A claim to be less needs the whole interval.
            ("below = 1.0", &[3.9; 4], "met"),
            ("below = 1.0", &[3.9, 3.8, 3.9, 0.0], "met"),
            ("below = 1.0", &[3.9, 3.8, 3.9, 4.1], "MISSED, within noise"),
            ("below = 1.0", &[4.0; 4], "MISSED"),
            ("at_most = 9.0", &[0.0; 3], "NOT MEASURED: planted"),
        ] {
            assert_eq!(
                judge(&row(bound), vec![round(4.0); ours.len()], rounds(ours)),
                text,
                "{bound} {ours:?}"
            );
        }
        let mut two = load_series(vec![round(4.0); 2], vec![round(3.0); 2]);
        two.rounds = 2;
        assert!(row("below = 1.0").judge(&[two]).verdict.starts_with("NOT MEASURED"), "no interval");
    }

    #[test]
    fn figures_are_divided_subtracted_or_taken_alone() {
        let measured = [load_series(vec![round(4.0); 3], vec![round(5.0); 3])];
        let median = |row: BarRow| row.judge(&measured).measured.map(|estimate| estimate.median);
        assert_eq!(median(row("")), Some(1.25));
        assert_eq!(median(BarRow { over: None, minus: Some("null-epoll".to_owned()), ..row("") }), Some(1.0));
        assert_eq!(median(BarRow { over: None, ..row("") }), Some(5.0));
        assert_eq!(median(BarRow { figure: Some("p99_ms".to_owned()), ..row("") }), None, "no round has it");
        assert_eq!(median(BarRow { scenario: "1k".to_owned(), ..row("") }), None, "it was not run");
        let text = report::bar(&[], &measured);
        assert!(text.contains("null-epoll (again) ÷ null-epoll  plaintext  1.000 [1.000 1.000]"), "{text}");
    }

    #[test]
    fn a_server_is_divided_by_itself_under_another_scenario() {
        let row = all().find(|row| row.name == "tail-hot-uring").expect("a row");
        let series = |scenario: &str, p99_ms: f64| {
            let subject = Subject { experiment: Experiment::Load, scenario, server: "shearwater-uring" };
            let plan = SeriesPlan::of([subject]).expect("names").remove(0);
            let mut series = plan.not_run(SETTINGS, "planted");
            series.servers[0].rounds = vec![Ok([("p99_ms", p99_ms), ("cpu_us", 9.0)].into()).into(); 16];
            series
        };
        let judge = |meanwhile| row.judge(&[series("tail-hot-alone", 0.2), series("tail-hot", meanwhile)]);
        let (near, far) = (judge(0.4), judge(0.5));
        assert!(near.measured.is_some_and(|ratio| ratio.median == 2.0) && near.is_met());
        assert!(far.measured.is_some_and(|ratio| ratio.median == 2.5) && !far.is_met());
        let alone = [series("tail-hot", 0.4)];
        assert_eq!(row.judge(&alone).verdict, "NOT MEASURED: shearwater-uring was not run");
        // As where no network namespace is permitted.
        let plan = SeriesPlan::of(row.subjects()).expect("names").remove(1);
        let refused = [series("tail-hot-alone", 0.2), plan.not_run(SETTINGS, "planted")];
        assert_eq!(row.judge(&refused).verdict, "NOT MEASURED: planted");
    }

    #[test]
    fn a_row_with_too_few_valid_rounds_is_not_measured() {
        let judge = |valid: usize, rounds: u32| {
            let mut others = vec![round(4.0); valid];
            others.resize(rounds as usize, failed());
            let mut series = load_series(vec![round(4.0); rounds as usize], others);
            series.rounds = rounds;
            row("at_most = 1.0").judge(&[series])
        };
        for (least, rounds) in [(8, 16), (3, 4), (2, 2), (1, 1)] {
            assert!(judge(least, rounds).is_met(), "{least} of {rounds}");
            assert!(!judge(least - 1, rounds).is_met(), "{} of {rounds}", least - 1);
        }
        assert_eq!(judge(7, 16).verdict, "NOT MEASURED: 7 of 16 rounds count, 8 are needed");
    }

    #[test]
    fn selects_rows_and_groups_by_name() {
        let count = |only| select(only).expect("rows").len();
        assert_eq!(count("default,peers,guided"), count("default") + count("peers") + count("guided"));
        assert_eq!(count("fresh-rss-epoll,axum"), 1 + count("axum"));
        assert!(["nothing", ""].iter().all(|name| select(name).is_err()));
        let names: BTreeSet<&str> = all().map(|row| &*row.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(groups().all(|(group, _)| !names.contains(group)));
    }

    #[test]
    fn every_row_is_run_once_with_servers_that_serve_it() {
        let plans = |rows: &[&'static BarRow]| {
            SeriesPlan::of(rows.iter().flat_map(|row| row.subjects()))
                .expect("servers that serve the scenarios")
        };
        for row in all() {
            assert!(!row.experiment.title(row.figure()).is_empty(), "{}: no such figure", row.name);
            assert!(row.over.is_none() || row.minus.is_none(), "{}: two comparisons", row.name);
            let bounds = [row.at_most, row.at_least, row.below];
            assert!(bounds.iter().flatten().count() <= 1, "{}: two bounds", row.name);
            assert!(!plans(&[row]).is_empty());
        }
        let only = plans(&select("churn-uring,fresh-rss-epoll").expect("rows"));
        let servers: Vec<&str> = only[0].servers.iter().map(|spec| &*spec.name).collect();
        assert_eq!((only.len(), servers), (2, vec!["null-uring", "shearwater-uring"]));
        let default = plans(&select("default").expect("rows"));
        let minutes = default.iter().map(|plan| plan.estimated_s(SETTINGS)).sum::<f64>() / 60.0;
        assert!((5.0..=40.0).contains(&minutes), "{minutes}");
    }
}
