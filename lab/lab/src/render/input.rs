//! Result files as the report reads them: unknown fields are ignored, a missing one is an error with its path.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::bar::RowResult;
use crate::series::Series;

/// One file of a run. Each part may be missing, but not all of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ResultFile {
    #[serde(skip_deserializing)]
    pub(super) name: String,
    pub(super) server: String,
    pub(super) command: String,
    pub(super) commit: String,
    pub(super) unix_seconds: u64,
    pub(super) rows: Vec<RowResult>,
    #[serde(skip_serializing)]
    pub(super) series: Vec<Series>,
    pub(super) curve: Vec<CurvePoint>,
    pub(super) phases: Vec<PhaseResult>,
    /// Of `cargo lab load`.
    pub(super) latency: Option<LoadLatency>,
    pub(super) findings: Option<Findings>,
    /// Everything that is only shown, such as the machine.
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LoadLatency {
    pub(super) quantiles_ns: Vec<(f64, f64)>,
}

impl ResultFile {
    /// Returns the connections of a run that holds many.
    pub(super) fn connections(&self) -> Option<u64> {
        self.others.get("plan")?.get("connections")?.as_u64()
    }
}

/// A server at an offered rate, with its figures.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CurvePoint {
    pub(super) server: String,
    pub(super) scenario: String,
    pub(super) offered_per_s: f64,
    valid: bool,
    #[serde(flatten)]
    pub(super) figures: Map<String, Value>,
}

/// A phase of a stress test.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PhaseResult {
    pub(super) server: String,
    pub(super) name: String,
    requests: u64,
    errors: u64,
    non_2xx: u64,
    timeouts: u64,
    pub(super) verdict: String,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// The findings of a run with many connections.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Findings {
    base: Memory,
    plateau: Option<Memory>,
    counts: Map<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Memory {
    rss_mib: f64,
    slab_mib: f64,
}

/// Counts of a commit, which repeat on machines of one kind: a line of a record.
#[derive(Debug, Deserialize)]
pub(super) struct GateRecord {
    pub(super) commit: String,
    #[serde(default)]
    pub(super) cpu: String,
    pub(super) figures: BTreeMap<String, f64>,
}

const PARTS: [&str; 6] = ["rows", "series", "curve", "phases", "latency", "findings"];
const HELP: &str =
    "help: name files that `cargo lab compare`, `bar`, `connections` or `suite` wrote, or their folder";

/// Reads files, and those in folders and in the folders directly below them that hold results, the oldest run first.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<ResultFile>, String> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let below = entries(path)?.into_iter().filter(|path| path.is_dir());
            for folder in below.chain([path.clone()]) {
                // A suite keeps other files beside its results.
                for path in entries(&folder)?.iter().filter(|path| has_extension(path, "json")) {
                    files.extend(read_file(path)?);
                }
            }
        } else {
            files.push(
                read_file(path)?.ok_or_else(|| format!("{}: no result in it\n{HELP}", path.display()))?,
            );
        }
    }
    if files.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(format!("{}: no result files\n{HELP}", names.join(", ")));
    }
    files.sort_by(|a, b| (a.unix_seconds, &a.name).cmp(&(b.unix_seconds, &b.name)));
    Ok(files)
}

/// Reads a file; returns nothing if it has no results.
fn read_file(path: &Path) -> Result<Option<ResultFile>, String> {
    let failed = |error: String| format!("{}: {error}\n{HELP}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let is_empty = |part: &Value| part.is_null() || part.as_array().is_some_and(Vec::is_empty);
    if PARTS.iter().all(|part| is_empty(&value[part])) {
        return Ok(None);
    }
    let mut file: ResultFile = parse(value).map_err(failed)?;
    file.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if file.server.is_empty() && file.findings.is_some() {
        let mut words = file.command.split_whitespace().skip_while(|word| *word != "--server").skip(1);
        file.server = words.next().unwrap_or("shearwater-uring").to_owned();
    }
    // Suites measure the same scenarios and phases in several steps.
    if let Some(step) = file.others.get("step").and_then(|step| step["name"].as_str()) {
        file.curve.iter_mut().for_each(|point| point.scenario = format!("{step}, {}", point.scenario));
        file.phases.iter_mut().for_each(|phase| phase.name = format!("{step}, {}", phase.name));
    }
    if file.server.is_empty() && file.latency.is_some() {
        file.server = file.name.trim_end_matches(".json").to_owned();
    }
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
pub(super) fn read_records(folder: &Path) -> Result<BTreeMap<String, Vec<GateRecord>>, String> {
    let mut records = BTreeMap::new();
    for path in entries(folder).unwrap_or_default().iter().filter(|path| has_extension(path, "jsonl")) {
        let place = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{place}: {error}"))?;
        let parse = |(at, line)| {
            let value = serde_json::from_str::<Value>(line).map_err(|error| error.to_string());
            value.and_then(parse).map_err(|error| format!("{place}:{}: {error}", at + 1))
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        records.insert(name, text.lines().enumerate().map(parse).collect::<Result<_, _>>()?);
    }
    Ok(records)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}

/// Returns a part of all files in order of time, without those that a later run replaces.
pub(super) fn newest<T>(
    files: &[ResultFile],
    part: fn(&ResultFile) -> &[T],
    key: fn(&T) -> String,
) -> Vec<&T> {
    let mut seen = BTreeSet::new();
    let all = files.iter().rev().flat_map(|file| part(file).iter().rev());
    let mut kept: Vec<&T> = all.filter(|item| seen.insert(key(item))).collect();
    kept.reverse();
    kept
}
