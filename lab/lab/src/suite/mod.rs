//! Suites: the write-ups' workloads, step by step, each written as soon as it is measured.

mod curve;
pub(crate) mod journal;
mod phases;
mod plan;
mod start;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::folder::RunFolder;
use crate::programs::{OurPrograms, build_all};
use crate::render::{self, ReportArgs};
use crate::series::Series;
use crate::server::ServerSpec;
use crate::{progress, report, scenario};
use journal::Journal;
use plan::{Step, Suite};

/// Command line of `suite`.
#[derive(Debug, Default, Args)]
pub(crate) struct SuiteArgs {
    /// Suites, as `--list` names them
    #[arg(required_unless_present = "list")]
    names: Vec<String>,
    /// List the suites, or the steps of those that are named, and measure nothing
    #[arg(long)]
    list: bool,
    /// Folder of the results; of several suites, a folder in it for each [default: lab/results/SUITE-DATE]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Continue a suite that was killed, in `--out` or in its newest folder; nothing that was measured is measured again
    #[arg(long)]
    resume: bool,
    /// Only steps whose names begin with one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Servers instead of the suite's, separated by commas; the first is the base
    #[arg(long, value_delimiter = ',')]
    servers: Vec<String>,
    /// Three rounds and phases of 2 s, to see that everything runs; the figures are rough
    #[arg(long)]
    quick: bool,
    /// Phases as long as in the write-up, instead of at most 5 s
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Maximum run-queue wait of a valid round, in per cent [default: 1; where connections end 3, where each request has one 6]
    #[arg(long)]
    wait_percent: Option<f64>,
    /// Cargo profile of our programs
    #[arg(long, default_value = "release")]
    profile: String,
    /// Seed of orders and intervals
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs or lists suites. Returns false if one of our servers failed a phase, or a server could not be measured.
pub(crate) fn run(args: &SuiteArgs) -> Result<bool, String> {
    let names = if args.names.is_empty() { plan::names() } else { args.names.clone() };
    let suites = names.iter().map(|name| Suite::load(name, args)).collect::<Result<Vec<_>, _>>()?;
    if args.list {
        suites.iter().for_each(|suite| list(suite, args));
        return Ok(true);
    }
    let mut is_sound = true;
    for suite in &suites {
        let folder = start::folder(suite, args)?;
        is_sound &= run_suite(suite, &folder, args)?;
        let results = vec![folder.clone()];
        if let Err(why) = render::run(&ReportArgs { results, out: Some(folder), compare: Vec::new() }) {
            progress(&format!("no report: {why}"));
            is_sound = false;
        }
    }
    Ok(is_sound)
}

fn list(suite: &Suite, args: &SuiteArgs) {
    println!("{}: {}; about {}", suite.name, suite.about, minutes(&suite.steps, args));
    for step in &suite.steps {
        let found: Vec<&str> = step.found.iter().map(|spec| &*spec.name).collect();
        println!("  {}: {} of {}", step.name, step.scenario, found.join(", "));
        step.missing.iter().for_each(|(name, why)| println!("    without {name}: {why}"));
        step.sizes(args).iter().for_each(|line| println!("    {line}"));
    }
}

fn minutes(steps: &[Step], args: &SuiteArgs) -> String {
    format!("{:.0} min", (steps.iter().map(|step| step.estimated_s(args)).sum::<f64>() / 60.0).ceil())
}

/// Runs the steps that have no result yet.
fn run_suite(suite: &Suite, folder: &Path, args: &SuiteArgs) -> Result<bool, String> {
    start::check_dependencies(suite)?;
    let _locked = start::lock(folder)?;
    start::check_same(folder, &start::circumstances(suite, args))?;
    let servers: Vec<&ServerSpec> = suite.steps.iter().flat_map(|step| &step.found).copied().collect();
    let programs = build_all(&args.profile, &servers)?;
    let scenarios = suite.steps.iter().map(|step| scenario::find(&step.scenario));
    let files = RunFolder::create_for(scenarios.collect::<Result<Vec<_>, _>>()?.into_iter())?;
    let mut is_sound = true;
    for (at, step) in suite.steps.iter().enumerate() {
        let (number, count, left) = (at + 1, suite.steps.len(), minutes(&suite.steps[at..], args));
        let name = format!("{number:02}-{}", step.name);
        let result = folder.join(format!("{name}.json"));
        progress(&format!("{} step {number} of {count}, {}; about {left} left", suite.name, step.name));
        if let Ok(text) = fs::read_to_string(&result) {
            progress("measured before");
            is_sound &=
                serde_json::from_str(&text).is_ok_and(|record: Value| record["is_sound"] != json!(false));
            continue;
        }
        step.sizes(args).iter().for_each(|line| progress(line));
        step.missing.iter().for_each(|(name, why)| progress(&format!("{name}: not measured: {why}")));
        if !step.found.is_empty() {
            let sound = run_step(step, &result, &programs, &files, args);
            is_sound &= sound.unwrap_or_else(|why| {
                progress(&format!("{}: no result: {why}", step.name));
                false
            });
        }
    }
    progress(&format!("results in {}", folder.display()));
    Ok(is_sound)
}

/// Runs a step with its journal, and writes its result.
fn run_step(
    step: &Step,
    result: &Path,
    programs: &OurPrograms,
    folder: &RunFolder,
    args: &SuiteArgs,
) -> Result<bool, String> {
    let rounds = result.with_extension("rounds");
    let journal = Journal::open(&rounds)?;
    if journal.len() > 0 {
        progress(&format!("{} rounds were measured before", journal.len()));
    }
    let bench = Bench { programs, folder, settings: step.settings(args), journal: Some(&journal) };
    let outcome = measure(step, &bench, args);
    if let Ok((record, _)) = &outcome {
        report::store(result, record)?;
    }
    // Without a result too: `--resume` measures the step again.
    fs::remove_file(&rounds).map_err(|error| format!("{}: {error}", rounds.display()))?;
    outcome.map(|(_, is_sound)| is_sound)
}

/// Measures a step. Returns its record, and true if all servers were measured and ours passed all phases.
fn measure(step: &Step, bench: &Bench<'_>, args: &SuiteArgs) -> Result<(Value, bool), String> {
    let (mut record, is_sound);
    if step.has_phases() {
        let rows = phases::run(step, bench, args)?;
        // Servers to learn from may fail.
        let climbs = |name: &str| step.climb.as_ref().is_some_and(|prefix| name.starts_with(prefix));
        let ours = |name: &Value| {
            step.found.iter().any(|spec| !spec.is_foreign() && !climbs(&spec.name) && *name == *spec.name)
        };
        let has_failed = |row: &Value| {
            row["verdict"].as_str().is_some_and(|it| it.starts_with("FAILED") || it.starts_with("INVALID"))
        };
        is_sound = !rows.iter().any(|row| ours(&row["server"]) && has_failed(row));
        record = report::describe(&[], &[], bench);
        record["phases"] = json!(rows);
    } else if step.percent.is_empty() {
        let series = [step.series(step.variant(None, false)?).run(bench)?];
        is_sound = series[0].is_whole();
        println!("{}", report::comparison(&series));
        record = report::describe(&[], &series, bench);
    } else {
        let (capacities, points, series) = curve::run(step, bench)?;
        is_sound = series.iter().all(Series::is_whole);
        record = report::describe(&[], &series, bench);
        // Rounds at one rate are no comparison of their own.
        record["rounds_of_curve"] = record["series"].take();
        record["series"] = json!([]);
        record["curve"] = json!(points);
        record["capacities"] = capacities;
    }
    record["is_sound"] = json!(is_sound);
    record["step"] = json!({
        "name": step.name, "climb": step.climb, "sizes": step.sizes(args), "not_measured": step.missing,
    });
    Ok((record, is_sound))
}
