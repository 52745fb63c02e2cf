//! Servers in turn: in each round every server has one, in random order, so that drift of the machine affects all of them alike.
//! Under a load the base runs twice under two names: their difference is noise.

use std::collections::BTreeMap;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::bench::{Bench, MeasuredRound, RunSettings, ServerSetup};
use crate::experiment::{Experiment, Subject};
use crate::namespace;
use crate::process::free_address;
use crate::scenario::Scenario;
use crate::server::{self, REFERENCE, ServerSpec};
use crate::statistics::{Estimate, estimate};

/// Mark of the base's second name.
const AGAIN: &str = " (again)";
/// Version of servers that no round was run of.
const NOT_RUN: &str = "not run";

/// An experiment with some servers under one scenario; the first is the base.
#[derive(Debug, Clone)]
pub(crate) struct SeriesPlan {
    pub(crate) experiment: Experiment,
    pub(crate) scenario: &'static Scenario,
    pub(crate) servers: Vec<&'static ServerSpec>,
}

/// One name in a series.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerRounds {
    pub(crate) label: String,
    pub(crate) version: String,
    /// Estimates over all rounds that count.
    #[serde(default)]
    pub(crate) figures: BTreeMap<String, Figure>,
    pub(crate) rounds: Vec<MeasuredRound>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) estimate: Estimate,
    pub(crate) ratio_to_base: Option<Estimate>,
}

/// All rounds of a plan, as the file of a run has them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) experiment: Experiment,
    pub(crate) scenario: String,
    /// The scenario in words.
    #[serde(default)]
    pub(crate) about: String,
    /// Receive buffers that it requests.
    #[serde(default)]
    receive_buffer_bytes: Option<u32>,
    /// Rounds that should count.
    #[serde(default)]
    pub(crate) rounds: u32,
    pub(crate) seed: u64,
    /// The base, under a load the base again, and the others.
    pub(crate) servers: Vec<ServerRounds>,
}

impl SeriesPlan {
    /// Returns the plans of some subjects: each experiment once for a scenario, with all servers that are named.
    pub(crate) fn of<'a>(subjects: impl IntoIterator<Item = Subject<'a>>) -> Result<Vec<Self>, String> {
        let mut plans: Vec<Self> = Vec::new();
        for Subject { experiment, scenario, server } in subjects {
            let scenario = crate::scenario::find(scenario)?;
            let spec = server::find(server, scenario)?;
            let is_same = |plan: &Self| plan.experiment == experiment && plan.scenario.name == scenario.name;
            let at = plans.iter().position(is_same).unwrap_or_else(|| {
                plans.push(Self { experiment, scenario, servers: Vec::new() });
                plans.len() - 1
            });
            if !plans[at].servers.contains(&spec) {
                plans[at].servers.push(spec);
            }
        }
        Ok(plans)
    }

    /// Returns the seconds that it takes if all rounds count and the files are old enough.
    pub(crate) fn estimated_s(&self, settings: RunSettings) -> f64 {
        let names = self.servers.len() + usize::from(self.experiment == Experiment::Load);
        f64::from(self.experiment.rounds(settings))
            * names as f64
            * self.experiment.round_s(self.scenario, settings)
    }

    /// Runs all rounds, in a network namespace if the scenario wants one. Errors are those of our own server, whose responses
    /// give the null servers their length.
    pub(crate) fn run(&self, bench: &Bench<'_>) -> Result<Series, String> {
        let Some(name) = &self.scenario.congestion_control else { return self.run_here(bench) };
        // A thread of its own: the others stay where they are.
        let run = || match namespace::enter(name, None) {
            Ok(()) => self.run_here(bench),
            Err(why) => Ok(self.not_run(bench.settings, &why)),
        };
        thread::scope(|scope| scope.spawn(run).join())
            .map_err(|_| format!("{}: panicked", self.scenario.name))?
    }

    /// Returns a series in which each server has failed, for this reason.
    pub(crate) fn not_run(&self, settings: RunSettings, why: &str) -> Series {
        crate::progress(&format!("{}: not run: {why}", self.scenario.name));
        let rounds = self.experiment.rounds(settings);
        let mut series = Series::new(self, rounds, settings.seed, |_| NOT_RUN.to_owned());
        for server in &mut series.servers {
            server.rounds.push(Err(why.to_owned()).into());
        }
        series
    }

    fn run_here(&self, bench: &Bench<'_>) -> Result<Series, String> {
        let Self { experiment, scenario, .. } = *self;
        let settings = bench.settings;
        let seconds = self.estimated_s(settings);
        crate::progress(&format!("{experiment:?}, {}: about {seconds:.0} s", scenario.name));
        // First of all: the validators of a new file are longer, and so is its response.
        bench.folder.settle(scenario);
        let setup = |spec, workers, null_bytes| -> Result<ServerSetup<'_>, String> {
            Ok(ServerSetup { bench, spec, scenario, address: free_address()?, workers, null_bytes })
        };
        let null_bytes = match self.servers.iter().any(|spec| spec.is_null()) {
            true => setup(server::find(REFERENCE, scenario)?, 1, 0)?.start_warm()?.bytes,
            false => 0,
        };
        let rounds = experiment.rounds(settings);
        let mut series =
            Series::new(self, rounds, settings.seed, |spec| spec.measured_version(bench.programs));
        // The base runs twice where there is one server more than in the plan.
        let again = series.servers.len() - self.servers.len();
        let mut random = fastrand::Rng::with_seed(settings.seed);
        for number in 1..=rounds_max(rounds) {
            if number > rounds && series.servers.iter().all(|server| server.has_enough(rounds)) {
                break;
            }
            let mut order: Vec<usize> = (0..series.servers.len()).collect();
            random.shuffle(&mut order);
            for at in order {
                let server = &mut series.servers[at];
                let run = || {
                    let spec = self.servers[at.saturating_sub(again)];
                    let setup = setup(spec, experiment.workers(), null_bytes);
                    setup.map_or_else(|reason| Err(reason).into(), |it| experiment.run(&it))
                };
                let round = bench.round(&format!("{} {} {number}", scenario.name, server.label), run);
                let text = describe(experiment, &round);
                crate::progress(&format!("{number}/{rounds} {}: {text}", server.label));
                server.rounds.push(round);
            }
        }
        series.estimate_all();
        Ok(series)
    }
}

/// Returns the most rounds: further ones replace invalid ones, up to half as many again.
fn rounds_max(rounds: u32) -> u32 {
    rounds + rounds / 2
}

/// Describes a round in one line.
fn describe(experiment: Experiment, round: &MeasuredRound) -> String {
    let shown = experiment
        .figures()
        .iter()
        .filter_map(|(title, name)| Some(format!("{title} {:.3}", round.figure(name)?)));
    match round.faults.as_slice() {
        [] => shown.take(2).collect::<Vec<_>>().join(", "),
        faults => format!("INVALID: {}", faults.join("; ")),
    }
}

impl ServerRounds {
    /// Returns true if further rounds are of no use: enough of them count, or none can be run at all.
    fn has_enough(&self, rounds: u32) -> bool {
        self.valid().count() >= rounds as usize || self.rounds.iter().all(|round| round.figures.is_empty())
    }

    pub(crate) fn is_control(&self) -> bool {
        self.label.ends_with(AGAIN)
    }

    pub(crate) fn valid(&self) -> impl Iterator<Item = &MeasuredRound> {
        self.rounds.iter().filter(|round| round.is_valid())
    }

    /// Returns a figure of all rounds that count.
    pub(crate) fn figure(&self, name: &str) -> Vec<f64> {
        self.rounds.iter().filter_map(|round| round.figure(name)).collect()
    }

    /// Combines a figure with that of another server, round by round, where both rounds count.
    pub(crate) fn combine(&self, other: &Self, name: &str, combine: fn(f64, f64) -> f64) -> Vec<f64> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        pairs.filter_map(|(own, other)| Some(combine(own.figure(name)?, other.figure(name)?))).collect()
    }
}

impl Series {
    /// Returns a series without rounds yet.
    fn new(plan: &SeriesPlan, rounds: u32, seed: u64, version: impl Fn(&ServerSpec) -> String) -> Self {
        let SeriesPlan { experiment, scenario, .. } = *plan;
        let namespace = scenario.congestion_control.as_ref().map_or_else(String::new, |name| {
            format!(" in a network namespace of their own, congestion control {name}")
        });
        let mut servers = Vec::new();
        for (number, spec) in plan.servers.iter().enumerate() {
            let is_twice = number == 0 && experiment == Experiment::Load;
            for mark in if is_twice { ["", AGAIN].as_slice() } else { &[""] } {
                let (label, version) = (format!("{}{mark}", spec.name), version(spec));
                servers.push(ServerRounds { label, version, figures: BTreeMap::new(), rounds: Vec::new() });
            }
        }
        Self {
            experiment,
            scenario: scenario.name.clone(),
            about: format!("{}; {} connections{namespace}", scenario.about, scenario.connections),
            receive_buffer_bytes: scenario.receive_buffer_bytes,
            rounds,
            seed,
            servers,
        }
    }

    /// Estimates all figures of all servers.
    fn estimate_all(&mut self) {
        let names = || self.experiment.figures().iter().map(|(_, name)| *name);
        let figure = |server, name: &str| {
            let estimate = self.estimate(server, name)?;
            Some((name.to_owned(), Figure { estimate, ratio_to_base: self.ratio_to_base(server, name) }))
        };
        let all: Vec<BTreeMap<_, _>> =
            self.servers.iter().map(|it| names().filter_map(|name| figure(it, name)).collect()).collect();
        self.servers.iter_mut().zip(all).for_each(|(server, figures)| server.figures = figures);
    }

    /// Returns true if every server has a round that counts.
    pub(crate) fn is_whole(&self) -> bool {
        self.servers.iter().all(|server| server.valid().next().is_some())
    }

    pub(crate) fn server(&self, label: &str) -> Option<&ServerRounds> {
        self.servers.iter().find(|server| server.label == label)
    }

    /// Estimates a figure over the rounds that count.
    pub(crate) fn estimate(&self, server: &ServerRounds, figure: &str) -> Option<Estimate> {
        estimate(&server.figure(figure), self.seed)
    }

    /// Estimates the ratio of a figure to the base's, over rounds in which the base's isn't 0.
    pub(crate) fn ratio_to_base(&self, server: &ServerRounds, figure: &str) -> Option<Estimate> {
        let mut ratios = server.combine(self.servers.first()?, figure, |own, base| own / base);
        ratios.retain(|ratio| ratio.is_finite());
        estimate(&ratios, self.seed)
    }

    /// Returns a warning where connections were granted smaller receive buffers than the scenario requests.
    pub(crate) fn receive_buffer_note(&self) -> Option<String> {
        let requested = u64::from(self.receive_buffer_bytes?);
        let rounds = self.servers.iter().flat_map(ServerRounds::valid);
        let granted =
            rounds.filter_map(|round| round.details["receive_buffer_bytes_granted"].as_u64()).min()?;
        let name = &self.scenario;
        (granted < requested).then(|| {
            format!("{name}: receive buffers: requested {requested} bytes, granted {granted}; net.core.rmem_max bounds them")
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::report;

    /// Returns a round that costs so many microseconds per response.
    pub(crate) fn round(cpu_us: f64) -> MeasuredRound {
        Ok([("cpu_us", cpu_us)].into()).into()
    }

    pub(crate) fn failed() -> MeasuredRound {
        Err("planted".to_owned()).into()
    }

    /// Returns a comparison of `null-epoll` and `shearwater-epoll` with these rounds.
    pub(crate) fn load_series(base: Vec<MeasuredRound>, other: Vec<MeasuredRound>) -> Series {
        let subject = |server| Subject { experiment: Experiment::Load, scenario: "plaintext", server };
        let plans = SeriesPlan::of(["null-epoll", "shearwater-epoll"].map(subject));
        let mut series = Series::new(&plans.expect("names")[0], 3, 1, |_| String::new());
        for (server, rounds) in series.servers.iter_mut().zip([base.clone(), base, other]) {
            server.rounds = rounds;
        }
        series
    }

    #[test]
    fn ratios_are_of_rounds_that_both_count() {
        let base = vec![round(4.0), failed(), round(8.0), round(100.0)];
        let series = load_series(base, vec![round(6.0), round(900.0), round(12.0), failed()]);
        let ratio = series.ratio_to_base(&series.servers[2], "cpu_us").expect("two rounds count");
        assert!((ratio.median - 1.5).abs() < 1e-9 && ratio.values == 2, "{ratio:?}");
    }

    #[test]
    fn a_base_without_a_cost_gives_no_ratio() {
        let series = load_series(vec![round(0.0); 3], vec![round(5.0); 3]);
        assert!(series.servers.iter().all(|server| series.ratio_to_base(server, "cpu_us").is_none()));
        let text = serde_json::to_string(&series).expect("JSON");
        assert!(serde_json::from_str::<Series>(&text).is_ok(), "its own results are read back: {text}");
    }

    #[test]
    fn an_invalid_round_is_shown_and_enters_no_figure() {
        let disturbed = MeasuredRound { faults: vec!["planted".to_owned()], ..round(900.0) };
        let series = load_series(vec![round(4.0); 3], vec![round(5.0), disturbed, round(5.0)]);
        let labels: Vec<&str> = series.servers.iter().map(|server| &*server.label).collect();
        assert_eq!(labels, ["null-epoll", "null-epoll (again)", "shearwater-epoll"]);
        assert_eq!(series.servers[2].figure("cpu_us"), [5.0, 5.0]);
        let text = report::comparison(std::slice::from_ref(&series));
        assert!(text.contains("not counted: plaintext shearwater-epoll: 1 of 3: planted"), "{text}");
        assert!(text.contains("2/3"), "{text}");
        assert!(series.is_whole() && !load_series(vec![round(4.0)], vec![failed(); 3]).is_whole());
    }

    #[test]
    fn smaller_receive_buffers_than_requested_are_reported() {
        let note = |name: &str, granted: Option<u64>| {
            let details = json!({ "receive_buffer_bytes_granted": granted });
            let rounds = vec![MeasuredRound { details, ..round(4.0) }];
            let mut series = load_series(rounds.clone(), rounds);
            let bytes = crate::scenario::find(name).expect("a scenario").receive_buffer_bytes;
            (series.scenario, series.receive_buffer_bytes) = (name.to_owned(), bytes);
            series.receive_buffer_note()
        };
        let text =
            "1m: receive buffers: requested 4000000 bytes, granted 212992; net.core.rmem_max bounds them";
        assert_eq!(note("1m", Some(212_992)).as_deref(), Some(text));
        assert_eq!(note("1m", Some(4_000_000)), None);
        assert_eq!(note("1m-auto", None), None);
    }

    #[test]
    fn further_rounds_replace_invalid_ones_within_a_bound() {
        let disturbed = MeasuredRound { faults: vec!["planted".to_owned()], ..round(4.0) };
        let series = load_series(vec![round(4.0), disturbed.clone(), round(4.0)], vec![failed(), failed()]);
        assert!(series.servers[0].has_enough(2) && !series.servers[0].has_enough(3));
        assert!(series.servers[2].has_enough(3), "a server that can't run is not retried");
        assert!(!ServerRounds { rounds: vec![disturbed], ..series.servers[0].clone() }.has_enough(1));
        assert_eq!([1, 3, 16].map(rounds_max), [1, 4, 24]);
    }
}
