//! Suites as data (`lab/suites/*.toml`): their steps, and the sizes that these have on this machine.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use super::SuiteArgs;
use crate::bench::RunSettings;
use crate::experiment::Experiment;
use crate::programs::root;
use crate::scenario::{self, Scenario};
use crate::series::SeriesPlan;
use crate::server::{self, ServerSpec};

/// Descriptors of a client that are no connections.
const OTHER_DESCRIPTORS: u64 = 256;
/// Maximum length of a phase where `--full` doesn't ask for the written one, and with `--quick`.
const PHASE_S_MAX: u32 = 5;
const QUICK_PHASE_S_MAX: u32 = 2;
/// Rounds of a comparison or of a rate, and with `--quick`: fewer have no interval.
const BLOCKS: u32 = 6;
const QUICK_BLOCKS: u32 = 3;
/// Seconds of a step's or a phase's start.
const START_S: f64 = 2.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    #[serde(skip)]
    pub(super) name: String,
    pub(super) about: String,
    /// Servers of steps that name none; the first is the base.
    servers: Vec<String>,
    #[serde(rename = "step")]
    pub(super) steps: Vec<Step>,
}

/// A comparison, or with `percent` a curve, or with `phase` phases; `lab/suites/README.md` describes the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) scenario: String,
    servers: Vec<String>,
    connections: Option<u32>,
    seconds: Option<u32>,
    blocks: Option<u32>,
    experiment: Option<Experiment>,
    written: String,
    /// Beginning of the names of servers that are each made from the one before.
    pub(super) climb: Option<String>,
    pub(super) percent: Vec<u32>,
    #[serde(rename = "phase")]
    pub(super) phases: Vec<Phase>,
    /// Servers that can be measured, and the others with the reason.
    #[serde(skip)]
    pub(super) found: Vec<&'static ServerSpec>,
    #[serde(skip)]
    pub(super) missing: Vec<(String, String)>,
}

/// A load on a server that keeps running from phase to phase.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) path: Option<String>,
    /// 0 where `load` has stages.
    pub(super) connections: u32,
    /// Length; of a phase with stages, for the time left.
    pub(super) seconds: u32,
    /// Load of the write-up, where it is another one.
    pub(super) written: Option<String>,
    pub(super) timeout_s: Option<u32>,
    pub(super) rate: Option<u32>,
    /// A mix of requests, each with the body of its response.
    pub(super) requests: Vec<[String; 2]>,
    /// Further options of `cargo lab load`.
    pub(super) load: String,
    /// Bounds by the name of a figure, which must be below.
    pub(super) limits: BTreeMap<String, f64>,
}

/// Returns the names of all suites.
pub(super) fn names() -> Vec<String> {
    let files = fs::read_dir(root().join("lab/suites")).into_iter().flatten().flatten();
    let names = files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

impl Suite {
    /// Reads a suite, with the steps and servers that the command line asks for.
    pub(super) fn load(name: &str, args: &SuiteArgs) -> Result<Self, String> {
        let names = names();
        if !names.iter().any(|known| known == name) {
            return Err(format!("no suite `{name}`\nhelp: the suites are {}", names.join(", ")));
        }
        let path = format!("lab/suites/{name}.toml");
        let text = fs::read_to_string(root().join(&path)).map_err(|error| format!("{path}: {error}"))?;
        let mut suite = Self::parse(&text, &args.servers).map_err(|error| format!("{path}: {error}"))?;
        name.clone_into(&mut suite.name);
        let known = server::all()?;
        let is_unknown =
            |name: &&String| !known.iter().any(|spec| Some(&*spec.name) == name.split('@').next());
        if let Some(unknown) = args.servers.iter().find(is_unknown) {
            return Err(format!("no server `{unknown}`\nhelp: `cargo lab list` names them"));
        }
        let all: Vec<String> = suite.steps.iter().map(|step| step.name.clone()).collect();
        let is_wanted =
            |step: &Step| args.only.is_empty() || args.only.iter().any(|only| step.name.starts_with(only));
        suite.steps.retain(is_wanted);
        match suite.steps.as_slice() {
            [] => Err(format!(
                "{path}: no step begins with `{}`\nhelp: the steps are {}",
                args.only.join("`, `"),
                all.join(", ")
            )),
            _ => Ok(suite),
        }
    }

    /// Parses and checks a suite, and finds its servers; `servers` instead, if there are any.
    fn parse(text: &str, servers: &[String]) -> Result<Self, String> {
        let mut suite: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (at, step) in suite.steps.iter_mut().enumerate() {
            let wrong = |why: String| format!("step {} `{}`: {why}", at + 1, step.name);
            let scenario = scenario::find(&step.scenario).map_err(wrong)?;
            if !step.percent.is_empty() && step.has_phases() {
                return Err(wrong("it has either `percent` or phases".to_owned()));
            }
            step.phases.iter().try_for_each(Phase::check).map_err(wrong)?;
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
            if step.name.is_empty() || !step.name.chars().all(is_plain) {
                return Err(wrong("a name has letters, digits, `-` and `.`: it becomes a file's".to_owned()));
            }
            let own = if step.servers.is_empty() { &suite.servers } else { &step.servers };
            for name in if servers.is_empty() { own } else { servers } {
                let found = server::find(name, scenario).and_then(|spec| spec.installed().map(|()| spec));
                match found {
                    Ok(spec) => step.found.push(spec),
                    Err(why) => {
                        step.missing.push((name.clone(), why.lines().next().unwrap_or_default().to_owned()));
                    }
                }
            }
        }
        Ok(suite)
    }
}

impl Step {
    /// Returns true if it has phases instead of rounds.
    pub(super) fn has_phases(&self) -> bool {
        !self.phases.is_empty()
    }

    /// Returns the settings of its rounds.
    pub(super) fn settings(&self, args: &SuiteArgs) -> RunSettings {
        let own = self.blocks.unwrap_or(BLOCKS);
        let blocks = if args.quick { own.min(QUICK_BLOCKS) } else { own };
        let (syscall_rounds, instruction_rounds) = (blocks, blocks);
        let (seconds, wait_percent) = (self.seconds.unwrap_or(1), args.wait_percent);
        RunSettings { blocks, seconds, syscall_rounds, instruction_rounds, seed: args.seed, wait_percent }
    }

    /// Returns its scenario with its own number of connections, and at a rate if there is one.
    pub(super) fn variant(&self, rate: Option<u32>, latencies: bool) -> Result<&'static Scenario, String> {
        let mut variant = scenario::find(&self.scenario)?.clone();
        if let Some(connections) = self.connections {
            variant.connections = connections;
            variant.name = format!("{}-c{connections}", variant.name);
        }
        if let Some(rate) = rate {
            variant.name = format!("{} at {rate}/s", variant.name);
            variant.rate = Some(rate);
        }
        variant.latencies |= latencies;
        // Never freed: there are as many as steps and rates.
        Ok(Box::leak(Box::new(variant)))
    }

    /// Returns the plan of its rounds under a variant of its scenario.
    pub(super) fn series(&self, scenario: &'static Scenario) -> SeriesPlan {
        let experiment = self.experiment.unwrap_or(Experiment::Load);
        SeriesPlan { experiment, scenario, servers: self.found.clone() }
    }

    /// Returns the seconds that it takes.
    pub(super) fn estimated_s(&self, args: &SuiteArgs) -> f64 {
        if self.has_phases() {
            let one =
                |phase: &Phase| START_S + f64::from(phase.here(args).seconds) * f64::from(phase.rounds());
            return self.phases.iter().map(one).sum::<f64>() * self.found.len() as f64;
        }
        let Ok(scenario) = self.variant(None, false) else { return 0.0 };
        let runs = if self.percent.is_empty() { 1 } else { 1 + self.percent.len() };
        START_S + self.series(scenario).estimated_s(self.settings(args)) * runs as f64
    }

    /// Describes its size, here and in the write-up.
    pub(super) fn sizes(&self, args: &SuiteArgs) -> Vec<String> {
        if self.has_phases() {
            return self.phases.iter().map(|phase| phase.sizes(args)).collect();
        }
        let RunSettings { blocks, seconds, .. } = self.settings(args);
        let connections = self.variant(None, false).map_or(0, |scenario| scenario.connections);
        let percent: Vec<String> = self.percent.iter().map(u32::to_string).collect();
        let rates = match percent.as_slice() {
            [] => String::new(),
            percent => format!(", at {} % of the slowest server's capacity", percent.join(", ")),
        };
        let written = if self.written.is_empty() { "nothing like it" } else { &self.written };
        vec![format!(
            "here: {connections} connections, {blocks} rounds of {seconds} s{rates}; written: {written}"
        )]
    }
}

impl Phase {
    /// Returns the phase in its size on this machine: as many connections as descriptors allow.
    pub(super) fn here(&self, args: &SuiteArgs) -> Self {
        let descriptors = testkit::process::raise_descriptor_limit().saturating_sub(OTHER_DESCRIPTORS);
        let connections = self.connections.min(u32::try_from(descriptors).unwrap_or(u32::MAX));
        let seconds_max = match args {
            // Options of its own say how long it takes.
            _ if args.full || connections == 0 => u32::MAX,
            _ if args.quick || !self.limits.is_empty() => QUICK_PHASE_S_MAX,
            _ => PHASE_S_MAX,
        };
        Self { connections, seconds: self.seconds.min(seconds_max), ..self.clone() }
    }

    /// Returns the options of `cargo lab load` for it.
    pub(super) fn options(&self) -> String {
        let is_sized = self.connections > 0;
        let options = [
            ("-c", is_sized.then_some(self.connections)),
            ("-d", is_sized.then_some(self.seconds)),
            ("--rate=", self.rate),
            ("--timeout=", self.timeout_s),
        ];
        let given = options.iter().filter_map(|(name, value)| Some(format!("{name}{}", (*value)?)));
        let load = Some(self.load.clone()).filter(|load| !load.is_empty());
        given.chain(load).collect::<Vec<_>>().join(" ")
    }

    fn sizes(&self, args: &SuiteArgs) -> String {
        let written = self.written.clone().unwrap_or_else(|| self.options());
        format!("{}: here: {}; written: {written}", self.name, self.here(args).options())
    }

    /// Refuses what a mix can't have: its requests say what is sent, and it is sent in a closed loop.
    fn check(&self) -> Result<(), String> {
        let others =
            self.path.is_some() || self.rate.is_some() || self.timeout_s.is_some() || !self.load.is_empty();
        if !self.requests.is_empty() && others {
            return Err(format!(
                "phase `{}`: `requests` can't have `path`, `rate`, `timeout_s` or `load`\nhelp: leave them out",
                self.name
            ));
        }
        if self.seconds == 0 {
            return Err(format!("phase `{}`: `seconds` is missing", self.name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_suite_can_be_read_and_names_known_servers() {
        assert_eq!(names(), ["S0", "S1", "S2", "S3", "S4", "http2", "ladder", "mix", "techempower", "tls"]);
        for name in names() {
            let suite = Suite::load(&name, &SuiteArgs::default()).unwrap_or_else(|error| panic!("{error}"));
            for step in &suite.steps {
                let namesakes = suite.steps.iter().filter(|other| other.name == step.name);
                assert_eq!(namesakes.count(), 1, "{name}: two steps {}", step.name);
                let unknown = step.missing.iter().filter(|(_, why)| !why.contains("is not installed"));
                assert_eq!(unknown.count(), 0, "{name}, {}: {:?}", step.name, step.missing);
                let names: BTreeSet<&str> = step.phases.iter().map(|phase| &*phase.name).collect();
                assert_eq!(names.len(), step.phases.len(), "{name}, {}: two phases of one name", step.name);
            }
        }
    }

    #[test]
    fn a_wrong_suite_is_refused_with_its_place() {
        let parse = |step: &str| {
            let text = format!("about = \"x\"\nservers = []\n[[step]]\n{step}");
            Suite::parse(&text, &[]).map(drop).expect_err("it is wrong")
        };
        assert!(parse("name = \"a\"\nscenario = \"2k\"").contains("step 1 `a`: no scenario `2k`"));
        assert!(parse("name = \"a/b\"\nscenario = \"1k\"").contains("it becomes a file's"));
        assert!(parse("nme = \"a\"").contains("line 4"));
        assert!(
            parse("name = \"a\"\nscenario = \"1k\"\npercent = [5]\nphase = [{ name = \"b\", seconds = 1 }]")
                .contains("either")
        );
        let mix = "name = \"a\"\nscenario = \"1k\"\nphase = [{ name = \"b\", seconds = 1, rate = 2, requests = [[\"\", \"\"]] }]";
        assert!(parse(mix).contains("step 1 `a`: phase `b`: `requests` can't have"));
        let load = |args: &SuiteArgs| Suite::load("S3", args).map(drop).expect_err("it is wrong");
        let only = SuiteArgs { only: vec!["x".to_owned()], ..SuiteArgs::default() };
        assert!(load(&only).contains("help: the steps are throughput-1k, "));
        let servers = SuiteArgs { servers: vec!["apache".to_owned()], ..SuiteArgs::default() };
        assert!(load(&servers).contains("no server `apache`\nhelp: "));
    }

    #[test]
    fn a_phase_is_shortened_here_and_keeps_its_connections() {
        let phase = Phase { connections: 40, seconds: 30, rate: Some(9), ..Phase::default() };
        let here = |quick, full| phase.here(&SuiteArgs { quick, full, ..SuiteArgs::default() }).options();
        assert_eq!(here(false, false), "-c40 -d5 --rate=9");
        assert_eq!(here(true, false), "-c40 -d2 --rate=9");
        assert_eq!(here(false, true), "-c40 -d30 --rate=9");
        let staged = Phase { connections: 0, rate: None, load: "--stages 9:30s".to_owned(), ..phase };
        assert_eq!(staged.here(&SuiteArgs::default()).options(), "--stages 9:30s");
        assert_eq!(staged.here(&SuiteArgs::default()).seconds, 30);
    }
}
