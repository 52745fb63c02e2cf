//! Suites as data (`lab/suites/*.toml`): their steps, and the sizes that these have on this machine.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::bench::RunSettings;
use crate::experiment::Experiment;
use crate::programs::{OurPrograms, lookup, root};
use crate::scenario::{self, Scenario};
use crate::series::SeriesPlan;
use crate::server::{self, ServerSpec};

/// Descriptors of a client that are no connections.
const OTHER_DESCRIPTORS: u64 = 256;
/// Maximum length of a phase where `--full` doesn't ask for the written one, and with `--quick`.
const PHASE_S_MAX: u32 = 10;
const QUICK_PHASE_S_MAX: u32 = 2;
/// Rounds of a comparison or of a rate, and with `--quick`: fewer have no interval.
const BLOCKS: u32 = 5;
const QUICK_BLOCKS: u32 = 3;
/// Seconds of a phase's start, and of the waits until files are old enough.
const PHASE_START_S: f64 = 1.0;
const SETTLE_S: f64 = 4.0;

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
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) scenario: String,
    pub(super) servers: Vec<String>,
    connections: Option<u32>,
    seconds: Option<u32>,
    blocks: Option<u32>,
    written: String,
    pub(super) percent: Vec<u32>,
    pub(super) verify: bool,
    #[serde(rename = "phase")]
    pub(super) phases: Vec<Phase>,
}

/// A load on a server that keeps running from phase to phase.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) path: Option<String>,
    pub(super) threads: u32,
    pub(super) connections: u32,
    pub(super) seconds: u32,
    pub(super) timeout_s: Option<u32>,
    pub(super) rate: Option<u32>,
    pub(super) requests: Vec<MixedRequest>,
    pub(super) load: Option<String>,
    pub(super) limits: Limits,
}

/// A request of a mix, and the body of its response.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MixedRequest {
    pub(super) send: String,
    pub(super) body: String,
}

/// Bounds of a phase; a figure must be below.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) p50_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    pub(super) max_ms: Option<f64>,
    pub(super) errors_percent: Option<f64>,
}

/// Sizes that the command line asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::Args, Serialize)]
pub(crate) struct SizeArgs {
    /// Three rounds and phases of 2 s, to see that everything runs; the figures are rough
    #[arg(long)]
    quick: bool,
    /// Phases with the threads and seconds of the write-up, instead of this machine's
    #[arg(long, conflicts_with = "quick")]
    full: bool,
}

/// The size of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhaseSize {
    pub(super) threads: u32,
    pub(super) connections: u32,
    pub(super) seconds: u32,
}

/// Servers of a step that can be measured, and the others with the reason.
pub(super) type Availability = (Vec<&'static ServerSpec>, Vec<(String, String)>);

/// Returns the names of all suites.
pub(super) fn names() -> Vec<String> {
    let files = fs::read_dir(root().join("lab/suites")).into_iter().flatten().flatten();
    let name = |path: std::path::PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(".toml")?.to_owned());
    let mut names: Vec<String> = files.filter_map(|entry| name(entry.path())).collect();
    names.sort();
    names
}

impl Suite {
    /// Reads a suite and checks it.
    pub(super) fn load(name: &str) -> Result<Self, String> {
        let names = names();
        if !names.iter().any(|known| known == name) {
            return Err(format!("no suite `{name}`\nhelp: the suites are {}", names.join(", ")));
        }
        let path = format!("lab/suites/{name}.toml");
        let text = fs::read_to_string(root().join(&path)).map_err(|error| format!("{path}: {error}"))?;
        Self::parse(name, &text).map_err(|error| format!("{path}: {error}"))
    }

    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut suite: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        name.clone_into(&mut suite.name);
        for (at, step) in suite.steps.iter_mut().enumerate() {
            let wrong = |why: String| Err(format!("step {} `{}`: {why}", at + 1, step.name));
            if let Err(why) = scenario::find(&step.scenario) {
                return wrong(why);
            }
            if !step.percent.is_empty() && !step.phases.is_empty() {
                return wrong("a step has `percent` or phases, not both".to_owned());
            }
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
            if step.name.is_empty() || !step.name.chars().all(is_plain) {
                return wrong("a name has letters, digits, `-` and `.`: it becomes a file's".to_owned());
            }
            if step.servers.is_empty() {
                step.servers.clone_from(&suite.servers);
            }
        }
        Ok(suite)
    }
}

impl Step {
    /// Returns true if it has phases instead of rounds.
    pub(super) fn has_phases(&self) -> bool {
        self.verify || !self.phases.is_empty()
    }

    /// Returns the settings of its rounds.
    pub(super) fn settings(&self, size: SizeArgs, seed: u64) -> RunSettings {
        let blocks = if size.quick { QUICK_BLOCKS } else { self.blocks.unwrap_or(BLOCKS) };
        RunSettings { blocks, seconds: self.seconds.unwrap_or(1), seed, ..RunSettings::default() }
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
    pub(super) fn series(&self, scenario: &'static Scenario, servers: &[&'static ServerSpec]) -> SeriesPlan {
        SeriesPlan { experiment: Experiment::Load, scenario, servers: servers.to_vec() }
    }

    /// Finds its servers; those of `only` instead, if there are any.
    pub(super) fn servers(&self, only: &[String]) -> Availability {
        let names = if only.is_empty() { &self.servers } else { only };
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for name in names {
            let spec = scenario::find(&self.scenario).and_then(|scenario| server::find(name, scenario));
            let spec = spec.map_err(|why| why.lines().next().unwrap_or_default().to_owned());
            match spec.and_then(|spec| installed(spec).map(|()| spec)) {
                Ok(spec) => found.push(spec),
                Err(why) => missing.push((name.clone(), why)),
            }
        }
        (found, missing)
    }

    /// Returns the seconds that it takes, with so many servers.
    pub(super) fn estimated_s(&self, servers: &[&'static ServerSpec], size: SizeArgs) -> f64 {
        if !self.has_phases() {
            let Ok(scenario) = self.variant(None, false) else { return 0.0 };
            let runs = 1.max(self.percent.len() + usize::from(!self.percent.is_empty()));
            return SETTLE_S
                + self.series(scenario, servers).estimated_s(self.settings(size, 0)) * runs as f64;
        }
        let measured = self.phases.iter().filter(|phase| phase.load.is_none());
        let one = |phase: &Phase| PHASE_START_S + f64::from(phase.size_here(size).seconds);
        (SETTLE_S + measured.map(one).sum::<f64>()) * servers.len() as f64
    }

    /// Describes what is run: as the write-up has it, and here.
    pub(super) fn sizes(&self, size: SizeArgs) -> Vec<String> {
        let settings = self.settings(size, 0);
        let connections = self.variant(None, false).map_or(0, |scenario| scenario.connections);
        let rounds =
            format!("{connections} connections, {} rounds of {} s", settings.blocks, settings.seconds);
        let written = |text: &str| if text.is_empty() { String::new() } else { format!("; written: {text}") };
        match self.percent.as_slice() {
            _ if self.has_phases() => {
                let rules = self.verify.then(|| "here: TechEmpower's rules, once".to_owned());
                rules.into_iter().chain(self.phases.iter().map(|phase| phase.sizes(size))).collect()
            }
            [] => vec![format!("here: {rounds} a server{}", written(&self.written))],
            percent => {
                let percent: Vec<String> = percent.iter().map(u32::to_string).collect();
                let percent = percent.join(", ");
                vec![format!(
                    "here: {rounds} at {percent} % of the slowest server's capacity{}",
                    written(&self.written)
                )]
            }
        }
    }
}

impl Phase {
    fn written_size(&self) -> PhaseSize {
        PhaseSize { threads: self.threads.max(1), connections: self.connections, seconds: self.seconds }
    }

    /// Returns its size on this machine: one client thread on the client's core, and as many connections as descriptors allow.
    pub(super) fn size_here(&self, size: SizeArgs) -> PhaseSize {
        let descriptors = testkit::process::raise_descriptor_limit().saturating_sub(OTHER_DESCRIPTORS);
        let connections = self.connections.min(u32::try_from(descriptors).unwrap_or(u32::MAX));
        let seconds_max = if size.quick { QUICK_PHASE_S_MAX } else { PHASE_S_MAX };
        match self.written_size() {
            written if size.full => PhaseSize { connections, ..written },
            written => PhaseSize { threads: 1, connections, seconds: written.seconds.min(seconds_max) },
        }
    }

    fn sizes(&self, size: SizeArgs) -> String {
        if let Some(load) = &self.load {
            return format!("{}: cargo lab load {load}", self.name);
        }
        let show =
            |PhaseSize { threads, connections, seconds }| format!("-t{threads} -c{connections} -d{seconds}s");
        let rate = self.rate.map_or_else(String::new, |rate| format!(", {rate} requests a second"));
        let (here, written) = (show(self.size_here(size)), show(self.written_size()));
        format!("{}: here: {here}{rate}; written: {written}", self.name)
    }
}

/// Returns an error that says how to install a server's program, where that is missing. Ours are built.
fn installed(spec: &ServerSpec) -> Result<(), String> {
    if !spec.is_foreign() || lookup(&spec.path(&OurPrograms::default())).is_some() {
        return Ok(());
    }
    let install = spec.install.as_deref().unwrap_or("cargo lab setup --build-peers");
    Err(format!("{} is not installed: {install}", spec.program))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers that suites name and that are not in the list yet.
    const PENDING: [&str; 2] = ["nginx-writeup", "nginx-debian"];

    #[test]
    fn every_suite_can_be_read_and_names_known_servers() {
        assert_eq!(names(), ["S0", "S1", "S2", "S3", "S4", "mix", "techempower"]);
        for name in names() {
            let suite = Suite::load(&name).unwrap_or_else(|error| panic!("{error}"));
            let mut step_names: Vec<&str> = suite.steps.iter().map(|step| &*step.name).collect();
            step_names.sort_unstable();
            step_names.dedup();
            assert_eq!(step_names.len(), suite.steps.len(), "{name}: two steps of one name");
            for step in &suite.steps {
                let scenario = scenario::find(&step.scenario).expect("checked");
                for server in step.servers.iter().filter(|server| !PENDING.contains(&&***server)) {
                    assert!(server::find(server, scenario).is_ok(), "{name}, {}: {server}", step.name);
                }
                assert!(
                    step.sizes(SizeArgs::default())
                        .iter()
                        .all(|line| line.contains("here: ") || line.contains("lab load"))
                );
            }
        }
    }

    #[test]
    fn a_wrong_suite_is_refused_with_its_place() {
        let parse = |steps: &str| {
            Suite::parse("x", &format!("about = \"x\"\nservers = []\n{steps}"))
                .map(drop)
                .expect_err("it is wrong")
        };
        assert!(parse("[[step]]\nname = \"a\"\nscenario = \"2k\"").contains("step 1 `a`: no scenario `2k`"));
        assert!(parse("[[step]]\nname = \"a/b\"\nscenario = \"1k\"").contains("it becomes a file's"));
        assert!(parse("[[step]]\nnme = \"a\"").contains("line 4"));
        let both = "[[step]]\nname = \"a\"\nscenario = \"1k\"\npercent = [5]\n[[step.phase]]\nname = \"p\"";
        assert!(parse(both).contains("not both"));
        assert!(Suite::load("S9").is_err_and(|error| error.contains("the suites are S0, S1")));
    }

    #[test]
    fn a_phase_is_shortened_here_and_keeps_its_connections() {
        let phase = Phase { threads: 12, connections: 40, seconds: 30, ..Phase::default() };
        let here = |size| phase.size_here(size);
        let seconds = |quick, full| here(SizeArgs { quick, full }).seconds;
        assert_eq!([seconds(false, false), seconds(true, false), seconds(false, true)], [10, 2, 30]);
        assert_eq!(here(SizeArgs::default()), PhaseSize { threads: 1, connections: 40, seconds: 10 });
        assert_eq!(here(SizeArgs { quick: false, full: true }).threads, 12);
    }
}
