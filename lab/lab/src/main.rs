//! The laboratory, run as `cargo lab`: measures Shearwater, null servers and peers in turn under the same load, and counts
//! no figure that is not valid. The headline is the server's CPU time per verified response, which a busy client can't blur.

#![forbid(unsafe_code)]

mod bar;
mod bench;
mod block;
mod change_points;
mod client;
mod connections;
mod downloads;
mod experiment;
mod file_set;
mod folder;
mod format;
mod gate;
mod h2load;
mod load;
mod machine;
mod namespace;
mod plausibility;
mod process;
mod programs;
mod render;
mod report;
mod scenario;
mod scrape;
mod series;
mod server;
mod statistics;
mod suite;
mod trials;
mod tune;
mod version;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use bar::BarRow;
use bench::{Bench, RunSettings};
use connections::ConnectionsArgs;
use experiment::{Experiment, Subject};
use folder::RunFolder;
use gate::GateArgs;
use programs::OurPrograms;
use series::{Series, SeriesPlan};
use server::ServerSpec;

const HELP: &str = "\
Examples:
  cargo lab setup                     what is installed, and how to install the rest
  cargo lab compare --scenario 1k --servers null-epoll,shearwater-epoll,nginx
  cargo lab bar --only 1k-epoll,p99-epoll --blocks 4
  cargo lab compare --experiments instructions --scenario plaintext,1k --servers shearwater-epoll
  cargo lab connections --count 15000 --hold 30
  cargo lab load http://127.0.0.1:8080/ --rate 20000 --duration 30s
  cargo lab report                    a page of HTML of all results in lab/results
  cargo lab suite S3                  all that a write-up measured, with peers; --list shows the steps

How to read a result:
  1.060 [1.041 1.083]  the median of all rounds, and between which values it is with 95 % certainty
  ÷ base               the same figure of the first server, round by round
  (again)              the first server against itself: smaller differences elsewhere say nothing
  not counted          rounds that something disturbed, with the reason; they enter no figure
docs/lab.md says what each figure means, and why the main one is CPU time per response.";

/// Measures Shearwater and its peers in one run
#[derive(Debug, Parser)]
#[command(name = "cargo lab", version, after_help = HELP)]
struct LabCli {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Run servers in turn and compare their figures; exits with 1 if one is missing
    Compare {
        /// Loads, as `list` names them, separated by commas
        #[arg(long)]
        scenario: String,
        /// Servers, as `list` names them, separated by commas; the first is the base. NAME@BUILD is one of ours in another
        /// build: a profile of cargo, or `guided` by the recorded profile
        #[arg(long)]
        servers: String,
        /// Measurements, separated by commas
        #[arg(long, value_enum, value_delimiter = ',', default_values = ["load", "system-calls"])]
        experiments: Vec<Experiment>,
        #[command(flatten)]
        settings: RunSettings,
        /// Cargo profile of our programs where no other build is named
        #[arg(long, default_value = "release")]
        profile: String,
    },
    /// Measure the project's figures and print which are met; exits with 1 if one is missed or not measured
    Bar {
        /// Rows and groups, separated by commas; `--list` names them
        #[arg(long, default_value = "default")]
        only: String,
        /// List the rows and measure nothing
        #[arg(long)]
        list: bool,
        #[command(flatten)]
        settings: RunSettings,
        /// Cargo profile of our programs where no other build is named
        #[arg(long, default_value = "release")]
        profile: String,
    },
    /// Compare counts per response of two revisions, and keep them; exits with 1 on a regression
    Gate(GateArgs),
    /// Load any server by the lab's own client and compare every response; exits with 1 if one was wrong or a rate was not kept
    Load(Box<load::LoadArgs>),
    /// Open many connections, hold them, and watch memory and CPU time; exits with 1 if one failed or a bound is missed
    Connections(ConnectionsArgs),
    /// Check figures against arithmetic, the kernel and the machine; exits with 1 if one of FILE can't be true
    Plausible {
        /// Figures in TOML, in the form of lab/lab/claims.toml [default: the published figures there]
        file: Option<PathBuf>,
    },
    /// Render results as a page of HTML and a summary in Markdown
    Report(render::ReportArgs),
    /// Run suites of a write-up's workloads, each step written as it is measured; exits with 1 if ours failed in one
    Suite(suite::SuiteArgs),
    /// Show which tools and peers are installed, and how to install the others
    Setup {
        /// Build the peers that registries have first, which takes minutes; one that fails stops no other
        #[arg(long)]
        build_peers: bool,
    },
    /// Show settings of the system that limit a measurement; with --apply exits with 1 if one could not be set
    Tune {
        /// Change them, as root, until the next start of the machine
        #[arg(long)]
        apply: bool,
    },
    /// List scenarios and servers
    List,
    /// Run a load from a file of JSON (the lab calls it)
    #[command(hide = true)]
    Client { load: PathBuf },
    /// Hold connections for `connections`, as standard input says (the lab calls it)
    #[command(hide = true)]
    Hold { task: String },
    /// Try to enter a network namespace for so many connections (the lab calls it)
    #[command(hide = true)]
    TryNamespace { connections: u32 },
}

fn main() -> ExitCode {
    match run(LabCli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints progress, apart from the results.
fn progress(line: &str) {
    eprintln!("lab: {line}");
}

/// Runs a command; returns false if a figure is missed or missing.
fn run(command: LabCommand) -> Result<bool, String> {
    match command {
        LabCommand::Compare { scenario, servers, experiments, settings, profile } => {
            let plans = plans(&scenario, &servers, &experiments)?;
            let measured = measure("compare", plans, &[], settings, &profile)?;
            // System calls are missing where perf is.
            let mut needed = measured.iter().filter(|series| series.experiment != Experiment::SystemCalls);
            Ok(needed.all(Series::is_whole))
        }
        LabCommand::Bar { list: true, .. } => print(&report::list_rows()),
        LabCommand::Bar { only, settings, profile, .. } => {
            let rows = bar::select(&only)?;
            let plans = SeriesPlan::of(rows.iter().flat_map(|row| row.subjects()))?;
            let measured = measure("bar", plans, &rows, settings, &profile)?;
            Ok(rows.iter().all(|row| row.judge(&measured).is_met()))
        }
        LabCommand::Gate(args) => gate::run(&args),
        LabCommand::Load(args) => load::run(&args),
        LabCommand::Connections(args) => connections::run(&args),
        LabCommand::Report(args) => render::run(&args),
        LabCommand::Suite(args) => suite::run(&args),
        LabCommand::Hold { task } => connections::hold(&task).map(|()| true),
        LabCommand::TryNamespace { connections } => connections::try_namespace(connections).map(|()| true),
        LabCommand::Plausible { file } => plausibility::run(file.as_deref()),
        LabCommand::Setup { build_peers } => {
            let failed = if build_peers { programs::build_peers(server::all()?) } else { Vec::new() };
            let (table, is_ready) = machine::setup()?;
            print(&format::align(&table))?;
            for (command, why) in &failed {
                eprintln!("error: not built: {why}\nhelp: the command was `{command}`");
            }
            Ok(is_ready && failed.is_empty())
        }
        LabCommand::Tune { apply } => {
            let (table, is_right) = tune::run(Path::new("/"), apply);
            print(&table)?;
            Ok(is_right || !apply)
        }
        LabCommand::List => {
            let line = |name: &str, about: &str| format!("  {name:24} {about}\n");
            let scenarios: String = scenario::all().iter().map(|it| line(&it.name, &it.about)).collect();
            let servers = server::all()?.iter().filter(|it| !it.about.is_empty());
            let servers: String = servers.map(|it| line(&it.name, &it.about)).collect();
            print(&format!("scenarios\n{scenarios}servers\n{servers}"))
        }
        LabCommand::Client { load } => {
            let _ = testkit::process::raise_descriptor_limit();
            let text =
                std::fs::read_to_string(&load).map_err(|error| format!("{}: {error}", load.display()))?;
            let load = serde_json::from_str(&text).map_err(|error| format!("load: {error}"))?;
            let counts = client::run(&load)?;
            print(&(serde_json::to_string(&counts).map_err(|error| error.to_string())? + "\n"))
        }
    }
}

fn print(text: &str) -> Result<bool, String> {
    print!("{text}");
    Ok(true)
}

/// Returns the plans of experiments with these scenarios and servers.
fn plans(scenarios: &str, servers: &str, experiments: &[Experiment]) -> Result<Vec<SeriesPlan>, String> {
    let servers: Vec<&str> = servers.split(',').collect();
    if let Some(at) = (1..servers.len()).find(|at| servers[..*at].contains(&servers[*at])) {
        return Err(format!("`{}` is named twice; the base runs twice by itself", servers[at]));
    }
    let mut subjects = Vec::new();
    for scenario in scenarios.split(',') {
        for &experiment in experiments {
            subjects.extend(servers.iter().map(|&server| Subject { experiment, scenario, server }));
        }
    }
    SeriesPlan::of(subjects)
}

/// Runs all plans, writes the file of the run, and prints the rows, or without rows all figures.
fn measure(
    name: &str,
    plans: Vec<SeriesPlan>,
    rows: &[&BarRow],
    settings: RunSettings,
    profile: &str,
) -> Result<Vec<Series>, String> {
    let servers: Vec<&ServerSpec> = plans.iter().flat_map(|plan| &plan.servers).copied().collect();
    let programs = programs::build_all(profile, &servers)?;
    measure_built(name, plans, rows, settings, &programs)
}

/// Does the same with programs that are built.
fn measure_built(
    name: &str,
    plans: Vec<SeriesPlan>,
    rows: &[&BarRow],
    settings: RunSettings,
    programs: &OurPrograms,
) -> Result<Vec<Series>, String> {
    let minutes = plans.iter().map(|plan| plan.estimated_s(settings)).sum::<f64>() / 60.0;
    progress(&format!("about {minutes:.1} minutes"));
    let folder = RunFolder::create_for(plans.iter().map(|plan| plan.scenario))?;
    let bench = Bench { programs, folder: &folder, settings, journal: None };
    let plans = plans.into_iter().filter(|plan| plan.experiment.rounds(settings) > 0);
    let measured = plans.map(|plan| plan.run(&bench)).collect::<Result<Vec<_>, _>>()?;
    let rows: Vec<_> = rows.iter().map(|row| row.judge(&measured)).collect();
    let record = report::describe(&rows, &measured, &bench);
    progress(&format!("written to {}", report::write(name, &record)?.display()));
    let text = if rows.is_empty() { report::comparison(&measured) } else { report::bar(&rows, &measured) };
    print!("{text}");
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_anything_is_run() {
        let plans = |scenario, servers| plans(scenario, servers, &[Experiment::Load]);
        assert_eq!(plans("1k,100k", "null-epoll,nginx").map(|plans| plans.len()), Ok(2));
        for (scenario, servers) in
            [("1k", "nginx,nginx"), ("1k", "apache"), ("1k", ""), ("2k", "nginx"), ("1k", "hyper")]
        {
            assert!(plans(scenario, servers).is_err(), "{scenario} {servers}");
        }
    }
}
