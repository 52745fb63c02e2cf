//! Suites: the write-ups' workloads, step by step, each written as soon as it is measured.

mod curve;
pub(crate) mod journal;
mod phases;
mod plan;
mod start;
pub(crate) mod verify;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::{Args, CommandFactory};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::folder::RunFolder;
use crate::process::succeed;
use crate::programs::build_extra;
use crate::series::Series;
use crate::server::{self, ServerSpec};
use crate::{namespace, pgo, progress, report, scenario};
use journal::Journal;
use plan::{Availability, SizeArgs, Step, Suite};

/// Folder of unfinished rounds in a folder of results.
const ROUNDS: &str = "rounds";

/// Command line of `suite`.
#[derive(Debug, Args)]
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
    #[command(flatten)]
    size: SizeArgs,
    /// Cargo profile of our programs
    #[arg(long, default_value = "release")]
    profile: String,
    /// Seed of orders and intervals
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A step with its servers.
struct PlannedStep {
    step: Step,
    servers: Vec<&'static ServerSpec>,
    missing: Vec<(String, String)>,
    estimated_s: f64,
}

/// Runs or lists suites. Returns false if one of our servers failed a phase, or a server could not be measured.
pub(crate) fn run<Cli: CommandFactory>(args: &SuiteArgs) -> Result<bool, String> {
    let names = if args.names.is_empty() { plan::names() } else { args.names.clone() };
    let suites = names.iter().map(|name| Suite::load(name)).collect::<Result<Vec<_>, _>>()?;
    let planned = suites.iter().map(|suite| plan_steps(suite, args)).collect::<Result<Vec<_>, _>>()?;
    if args.list {
        suites.iter().zip(&planned).for_each(|(suite, steps)| list(suite, steps, args));
        return Ok(true);
    }
    let mut is_whole = true;
    for (suite, steps) in suites.iter().zip(planned) {
        let folder = start::folder(suite, args)?;
        is_whole &= run_suite(suite, &steps, &folder, args)?;
        render::<Cli>(&folder)?;
    }
    Ok(is_whole)
}

fn plan_steps(suite: &Suite, args: &SuiteArgs) -> Result<Vec<PlannedStep>, String> {
    let is_wanted =
        |step: &&Step| args.only.is_empty() || args.only.iter().any(|only| step.name.starts_with(only));
    let steps: Vec<&Step> = suite.steps.iter().filter(is_wanted).collect();
    if steps.is_empty() {
        let names: Vec<&str> = suite.steps.iter().map(|step| &*step.name).collect();
        return Err(format!(
            "suite {}: no step begins with `{}`\nhelp: the steps are {}",
            suite.name,
            args.only.join("`, `"),
            names.join(", ")
        ));
    }
    for name in &args.servers {
        let serves = |step: &&&Step| {
            scenario::find(&step.scenario).and_then(|scenario| server::find(name, scenario)).is_ok()
        };
        if !steps.iter().any(|step| serves(&step)) {
            let scenario = scenario::find(&steps[0].scenario)?;
            return Err(server::find(name, scenario)
                .err()
                .unwrap_or_else(|| format!("no step for `{name}`")));
        }
    }
    let plan = |step: &Step| {
        let (servers, missing): Availability = step.servers(&args.servers);
        let estimated_s = step.estimated_s(&servers, args.size);
        PlannedStep { step: step.clone(), servers, missing, estimated_s }
    };
    Ok(steps.into_iter().map(plan).collect())
}

fn list(suite: &Suite, steps: &[PlannedStep], args: &SuiteArgs) {
    let minutes = steps.iter().map(|planned| planned.estimated_s).sum::<f64>() / 60.0;
    println!("{}: {}; about {minutes:.0} minutes", suite.name, suite.about);
    for PlannedStep { step, servers, missing, .. } in steps {
        let names: Vec<&str> = servers.iter().map(|spec| &*spec.name).collect();
        println!("  {:20} {}: {}", step.name, step.scenario, names.join(", "));
        step.sizes(args.size).iter().for_each(|line| println!("  {:20}   {line}", ""));
        missing.iter().for_each(|(name, why)| println!("  {:20}   without {name}: {why}", ""));
    }
}

/// Runs the steps that have no result yet.
fn run_suite(suite: &Suite, steps: &[PlannedStep], folder: &Path, args: &SuiteArgs) -> Result<bool, String> {
    start::check_dependencies(steps)?;
    let rounds = folder.join(ROUNDS);
    fs::create_dir_all(&rounds).map_err(|error| format!("{}: {error}", rounds.display()))?;
    start::check_same(&rounds, &start::circumstances(steps, args))?;
    let servers = || steps.iter().flat_map(|planned| &planned.servers).copied();
    let builds: BTreeSet<&str> = servers().filter_map(|spec| spec.build.as_deref()).collect();
    let programs = pgo::build_programs(&args.profile, &builds)?;
    build_extra(&args.profile, servers())?;
    let mut files = RunFolder::create()?;
    for planned in steps {
        let scenario = scenario::find(&planned.step.scenario)?;
        files.serve_set(scenario)?;
        if scenario.congestion_control.is_some()
            && let Err(why) = namespace::gain_rights()
        {
            progress(&why);
        }
    }
    let mut clock =
        Clock { started: Instant::now(), done_s: 0.0, left_s: steps.iter().map(|it| it.estimated_s).sum() };
    let mut is_whole = true;
    for (at, planned) in steps.iter().enumerate() {
        let PlannedStep { step, servers, missing, .. } = planned;
        let name = format!("{:02}-{}", at + 1, step.name);
        let result = folder.join(format!("{name}.json"));
        if result.exists() {
            progress(&format!(
                "{} step {} of {}, {}: measured already",
                suite.name,
                at + 1,
                steps.len(),
                step.name
            ));
            clock.skip(planned.estimated_s);
            continue;
        }
        let (step_s, left) = (planned.estimated_s, clock.left());
        progress(&format!(
            "{} step {} of {}, {}: about {step_s:.0} s; {left} left",
            suite.name,
            at + 1,
            steps.len(),
            step.name
        ));
        step.sizes(args.size).iter().for_each(|line| progress(line));
        missing.iter().for_each(|(name, why)| progress(&format!("{name}: not measured: {why}")));
        let path = rounds.join(format!("{name}.jsonl"));
        let journal = Journal::open(&path)?;
        if journal.len() > 0 {
            progress(&format!("{} rounds were measured before", journal.len()));
        }
        let settings = step.settings(args.size, args.seed);
        let bench = Bench { programs: &programs, folder: &files, settings, journal: Some(&journal) };
        if !servers.is_empty() {
            let (record, text, is_sound) = measure(step, servers, missing, &bench, args.size)?;
            report::store(&result, &record)?;
            println!("{text}");
            is_whole &= is_sound;
        }
        fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        clock.finish(planned.estimated_s);
    }
    progress(&format!("results in {}", folder.display()));
    Ok(is_whole)
}

/// Measures a step. Returns its record, its text, and true if all servers were measured and ours passed all phases.
fn measure(
    step: &Step,
    servers: &[&'static ServerSpec],
    missing: &[(String, String)],
    bench: &Bench<'_>,
    size: SizeArgs,
) -> Result<(Value, String, bool), String> {
    let describe = |series: &[Series]| {
        let mut record = report::describe(&[], series, bench);
        record["step"] = json!({ "name": step.name, "sizes": step.sizes(size), "not_measured": missing });
        record
    };
    if step.has_phases() {
        let rows = phases::run(step, servers, bench, size)?;
        let text = phases::text(&rows);
        let ours: BTreeSet<&str> =
            servers.iter().filter(|spec| !spec.is_foreign()).map(|spec| &*spec.name).collect();
        let has_failed = |row: &&Value| {
            row["verdict"].as_str().is_some_and(|verdict| verdict.starts_with("FAILED"))
                && row["server"].as_str().is_some_and(|server| ours.contains(server))
        };
        let is_sound = rows.iter().find(has_failed).is_none();
        let not_measured = missing.iter().map(|(name, why)| phases::unmeasured(name, &step.name, why));
        let rows: Vec<Value> = rows.iter().cloned().chain(not_measured).collect();
        let mut record = describe(&[]);
        record["phases"] = json!(rows);
        return Ok((record, text, is_sound));
    }
    if step.percent.is_empty() {
        let series = [step.series(step.variant(None, false)?, servers).run(bench)?];
        return Ok((describe(&series), report::comparison(&series), series[0].is_whole()));
    }
    let curve = curve::run(step, servers, bench)?;
    let mut record = describe(&curve.series);
    // A comparison by itself only for readers of the curve.
    record["curve_series"] = record["series"].take();
    record["series"] = json!([]);
    record["curve"] = json!(curve.points);
    Ok((record, curve.text, curve.series[0].is_whole()))
}

/// Renders the results, once this program has a report. It is called here and nowhere else.
fn render<Cli: CommandFactory>(folder: &Path) -> Result<(), String> {
    if Cli::command().find_subcommand("report").is_none() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    let mut command = Command::new(program);
    command.arg("report").arg(folder).arg("--out").arg(folder);
    succeed(command)
}

/// Estimates the time that is left, by how long the steps took so far.
struct Clock {
    started: Instant,
    /// Estimates of steps that were measured, and of those that are left.
    done_s: f64,
    left_s: f64,
}

impl Clock {
    fn skip(&mut self, estimated_s: f64) {
        self.left_s -= estimated_s;
    }

    fn finish(&mut self, estimated_s: f64) {
        self.done_s += estimated_s;
        self.left_s -= estimated_s;
    }

    fn left(&self) -> String {
        let factor = if self.done_s > 0.0 { self.started.elapsed().as_secs_f64() / self.done_s } else { 1.0 };
        format!("{:.0} minutes", (self.left_s * factor / 60.0).ceil())
    }
}
