//! Result files as the report reads them: unknown fields are ignored, a missing one is an error with its path.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::experiment::Experiment;
use crate::statistics::{Estimate, estimate};

/// One file of a run. Each part may be missing, but not all of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ResultFile {
    #[serde(skip_deserializing)]
    pub(super) name: String,
    pub(super) command: String,
    pub(super) unix_seconds: u64,
    pub(super) commit: String,
    pub(super) profile: String,
    pub(super) settings: Value,
    pub(super) machine: Map<String, Value>,
    pub(super) rows: Vec<Row>,
    #[serde(skip_serializing)]
    pub(super) series: Vec<Series>,
    #[serde(skip_serializing)]
    pub(super) curve: Vec<CurvePoint>,
    pub(super) phases: Vec<Phase>,
    pub(super) tools: Vec<Map<String, Value>>,
    /// Quantiles with their latency in milliseconds, of a single load.
    pub(super) percentiles: Vec<(f64, f64)>,
    /// The same of `cargo lab load`, in nanoseconds, with counts.
    #[serde(skip_serializing)]
    histogram: Vec<(f64, f64, u64)>,
    /// The step of a suite.
    pub(super) step: Option<Step>,
    /// Server of a single load, or of a run with many connections.
    pub(super) server: String,
    pub(super) plan: Option<Plan>,
    pub(super) findings: Option<Findings>,
    pub(super) figures: Vec<BoundedFigure>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) name: String,
    /// Servers that are missing, and why.
    #[serde(default)]
    pub(super) not_measured: Vec<(String, String)>,
}

/// A row of the bar.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) row: String,
    pub(super) scenario: String,
    pub(super) case: String,
    pub(super) wanted: String,
    pub(super) measured: Option<Estimate>,
    pub(super) verdict: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Series {
    pub(super) experiment: Experiment,
    pub(super) scenario: String,
    pub(super) seed: u64,
    pub(super) servers: Vec<Server>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Server {
    pub(super) label: String,
    #[serde(default)]
    pub(super) version: String,
    pub(super) rounds: Vec<Round>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Round {
    pub(super) faults: Vec<String>,
    pub(super) figures: BTreeMap<String, f64>,
    #[serde(default)]
    pub(super) details: Value,
}

/// A server at an offered rate.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CurvePoint {
    pub(super) server: String,
    pub(super) scenario: String,
    pub(super) offered_per_s: f64,
    pub(super) achieved_per_s: Option<f64>,
    pub(super) cpu_us: Option<Interval>,
    pub(super) p50_ms: Option<Interval>,
    pub(super) p99_ms: Option<Interval>,
    pub(super) p999_ms: Option<Interval>,
    pub(super) max_ms: Option<Interval>,
    pub(super) in_flight: Option<f64>,
    pub(super) valid: bool,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) percentiles: Vec<(f64, f64)>,
}

impl CurvePoint {
    /// Tells the points of a curve apart.
    pub(super) fn key(&self) -> String {
        format!("{} {} {}", self.server, self.scenario, self.offered_per_s)
    }
}

/// Median, and the ends of its 95 % interval.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Interval(f64, Option<f64>, Option<f64>);

/// A phase of a stress test.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Phase {
    pub(super) server: String,
    pub(super) name: String,
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) non_2xx: u64,
    pub(super) timeouts: u64,
    pub(super) verdict: String,
    #[serde(default)]
    thresholds: Vec<Threshold>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Threshold {
    name: String,
    limit: f64,
    measured: Option<f64>,
    passed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) connections: u32,
}

/// The findings of a run with many connections.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Findings {
    pub(super) base: Memory,
    pub(super) plateau: Option<Memory>,
    pub(super) counts: Counts,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Memory {
    pub(super) rss_mib: f64,
    pub(super) slab_mib: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) failures: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BoundedFigure {
    pub(super) name: String,
    pub(super) value: Option<f64>,
    pub(super) bound: Option<f64>,
}

/// One run of the deterministic figures, a line of a record.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) commit: String,
    pub(super) figures: BTreeMap<String, f64>,
}

impl ResultFile {
    /// Returns the server that a command for many connections names.
    fn server_of_command(&self) -> String {
        let mut words = self.command.split_whitespace().skip_while(|word| *word != "--server").skip(1);
        words.next().unwrap_or("shearwater-uring").to_owned()
    }
}

impl Server {
    /// Returns the number of rounds that count and have a figure.
    pub(super) fn counted(&self, figure: &str) -> usize {
        self.rounds.iter().filter(|round| round.figure(figure).is_some()).count()
    }

    pub(super) fn estimate(&self, figure: &str, seed: u64) -> Option<Estimate> {
        let values: Vec<f64> = self.rounds.iter().filter_map(|round| round.figure(figure)).collect();
        estimate(&values, seed)
    }

    /// Estimates the ratio of a figure to another server's, round by round, where both rounds count.
    pub(super) fn ratio(&self, base: &Self, figure: &str, seed: u64) -> Option<Estimate> {
        let pairs = self.rounds.iter().zip(&base.rounds);
        let ratio = |(own, base): (&Round, &Round)| Some(own.figure(figure)? / base.figure(figure)?);
        estimate(&pairs.filter_map(ratio).collect::<Vec<_>>(), seed)
    }
}

impl Round {
    fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied().filter(|_| self.faults.is_empty())
    }
}

/// Reads files, and those in folders that hold results, the oldest run first.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<ResultFile>, String> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            // A suite keeps other files beside its results.
            for path in files_in(path, "json")? {
                files.extend(read_file(&path)?);
            }
        } else {
            let file = read_file(path)?;
            files.push(file.ok_or_else(|| format!("{}: no result in it\n{HELP}", path.display()))?);
        }
    }
    if files.is_empty() {
        let names = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(format!("{names}: no result files\n{HELP}"));
    }
    files.sort_by(|a, b| (a.unix_seconds, &a.name).cmp(&(b.unix_seconds, &b.name)));
    Ok(files)
}

const HELP: &str =
    "help: name files that `cargo lab compare`, `bar`, `connections` or `suite` wrote, or their folder";

/// Parts of a file that are results.
const PARTS: [&str; 8] =
    ["rows", "series", "curve", "phases", "tools", "percentiles", "histogram", "findings"];

/// Reads a file; returns nothing if it has no results.
fn read_file(path: &Path) -> Result<Option<ResultFile>, String> {
    let place = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{place}: {error}\n{HELP}"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{place}: {error}\n{HELP}"))?;
    if !PARTS
        .iter()
        .any(|part| value[part].is_object() || value[part].as_array().is_some_and(|it| !it.is_empty()))
    {
        return Ok(None);
    }
    let mut file: ResultFile = parse(value).map_err(|error| format!("{place}: {error}\n{HELP}"))?;
    file.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if file.server.is_empty() && file.findings.is_some() {
        file.server = file.server_of_command();
    }
    let latencies = file.histogram.iter().map(|(quantile, ns, _)| (*quantile, ns / 1e6));
    file.percentiles.extend(latencies);
    Ok(Some(file))
}

/// Deserializes JSON; errors name the field.
fn parse<'a, T: Deserialize<'a>>(
    json: impl Deserializer<'a, Error = serde_json::Error>,
) -> Result<T, String> {
    let parsed = serde_path_to_error::deserialize(json);
    parsed.map_err(|error| format!("`{}`: {}", error.path(), error.inner()))
}

/// Reads the records of a folder, if there is one, by the names of their files.
pub(super) fn read_records(folder: &Path) -> Result<BTreeMap<String, Vec<Record>>, String> {
    let mut records = BTreeMap::new();
    for path in files_in(folder, "jsonl").unwrap_or_default() {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let place = |at| format!("{}:{}", path.display(), at + 1);
        let parse = |(at, line)| {
            let line = &mut serde_json::Deserializer::from_str(line);
            parse(line).map_err(|error| format!("{}: {error}", place(at)))
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        records.insert(name, lines.map(parse).collect::<Result<_, _>>()?);
    }
    Ok(records)
}

fn files_in(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|it| it == extension)).collect())
}

/// Returns a part of all files in order of time, without those that a later run replaces.
pub(super) fn newest<'a, T>(
    files: &'a [ResultFile],
    part: fn(&ResultFile) -> &[T],
    key: fn(&T) -> String,
) -> Vec<&'a T> {
    let mut seen = BTreeSet::new();
    let all = files.iter().rev().flat_map(|file| part(file).iter().rev());
    let mut kept: Vec<&T> = all.filter(|item| seen.insert(key(item))).collect();
    kept.reverse();
    kept
}
