//! The laboratory, run as `cargo lab`: measures Shearwater, null servers and peers in turn under the same load, and counts
//! no figure that is not valid. The headline is the server's CPU time per verified response, which a busy client can't blur.

#![forbid(unsafe_code)]

mod bar;
mod block;
mod client;
mod compare;
mod downloads;
mod folder;
mod instructions;
mod machine;
mod peers;
mod pgo;
mod proc_fs;
mod process;
mod programs;
mod record;
mod report;
mod scenario;
mod server;
mod sites;
mod statistics;
mod trials;
mod validity;
mod wrk;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, value_parser};

use bar::{Agenda, Settings};
use programs::Programs;

/// Measures Shearwater and its peers in one run
#[derive(Debug, Parser)]
#[command(name = "cargo lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run servers in turn and compare their CPU time per response
    Compare {
        /// Load, as `list` names it
        #[arg(long)]
        scenario: String,
        /// Servers, as `list` names them, separated by commas; the first is the base
        #[arg(long)]
        servers: String,
        /// Rounds in which system calls are counted
        #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(0..=1_000))]
        syscall_rounds: u32,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Measure the project's figures and print which are met
    Bar {
        /// Only these rows and groups (axum, handlers, sites), separated by commas
        #[arg(long)]
        only: Option<String>,
        /// Also rows of peers that nothing is required of
        #[arg(long)]
        peers: bool,
        /// List the rows and measure nothing
        #[arg(long)]
        list: bool,
        #[command(flatten)]
        run: RunArgs,
    },
    /// Count user instructions per request with valgrind (epoll only)
    Instructions {
        /// Loads, as `list` names them, separated by commas
        #[arg(long)]
        scenario: String,
        /// Servers, as `list` names them, separated by commas
        #[arg(long)]
        servers: String,
        #[command(flatten)]
        programs: ProgramArgs,
    },
    /// Build the program with a profile of how it runs [default: with the profile if there is one, else without]
    Pgo {
        action: Option<pgo::Action>,
        /// Train on epoll alone, for machines without io_uring
        #[arg(long)]
        epoll_only: bool,
    },
    /// Show which tools are installed, and how to install the others
    Setup {
        /// Build the peers from crates first, which takes minutes
        #[arg(long)]
        build_peers: bool,
    },
    /// List scenarios and servers
    List,
    /// Run a load, given as JSON (the lab calls it)
    #[command(hide = true)]
    Client { load: String },
}

#[derive(Debug, Args)]
struct ProgramArgs {
    /// Cargo profile of our programs
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Build without the recorded profile, which is used where there is one (`cargo lab pgo generate`)
    #[arg(long)]
    no_pgo: bool,
}

impl ProgramArgs {
    fn build(&self) -> Result<Programs, String> {
        Programs::build(&self.profile, !self.no_pgo)
    }
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Rounds; each server has one block in each
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u32).range(1..=1_000))]
    blocks: u32,
    /// Length of a block's window in seconds
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Seed of block orders and intervals
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    programs: ProgramArgs,
    /// Maximum run-queue wait of a valid block, in per cent of its window [default: 1, where connections end 3]
    #[arg(long)]
    wait_percent: Option<f64>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
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
fn run(command: Command) -> Result<bool, String> {
    match command {
        Command::Compare { scenario, servers, syscall_rounds, run } => {
            compare(&scenario, &servers, syscall_rounds, &run)
        }
        Command::Bar { list: true, .. } => print(&bar::list()),
        Command::Bar { only, peers, run, .. } => measure_bar(only.as_deref(), peers, &run),
        Command::Instructions { scenario, servers, programs } => {
            count_instructions(&scenario, &servers, &programs)
        }
        Command::Pgo { action, epoll_only } => pgo::run(action, !epoll_only).map(|()| true),
        Command::Setup { build_peers } => {
            if build_peers {
                peers::build()?;
            }
            let (table, is_ready) = machine::setup();
            print(&table).map(|_| is_ready)
        }
        Command::List => {
            let about =
                |scenario: &scenario::Scenario| format!("  {:22} {}\n", scenario.name, scenario.about);
            let scenarios: String = scenario::SCENARIOS.iter().map(about).collect();
            let servers: String =
                server::SERVERS.iter().map(|server| format!("  {}\n", server.name)).collect();
            print(&format!("scenarios\n{scenarios}servers\n{servers}"))
        }
        Command::Client { load } => {
            let _ = testkit::process::raise_descriptor_limit();
            let load = serde_json::from_str(&load).map_err(|error| format!("load: {error}"))?;
            let tally = client::run(&load).map_err(|error| format!("client: {error}"))?;
            print(&(tally.line() + "\n"))
        }
    }
}

fn print(text: &str) -> Result<bool, String> {
    print!("{text}");
    Ok(true)
}

fn compare(scenario: &str, servers: &str, syscall_rounds: u32, run: &RunArgs) -> Result<bool, String> {
    let RunArgs { blocks, seconds, seed, wait_percent: wait_percent_max, .. } = *run;
    let (scenario, servers) = (scenario::find(scenario)?, compare::servers(servers)?);
    let plan = compare::Plan { scenario, servers, blocks, seconds, seed, wait_percent_max, syscall_rounds };
    progress(&format!("about {:.0} s", plan.estimated_s()));
    let programs = run.programs.build()?;
    let outcome = compare::run(plan, &programs)?;
    let record = record::describe(&outcome, &programs);
    progress(&format!("written to {}", record::write(scenario.name, &record)?.display()));
    print(&if run.json { format!("{record:#}\n") } else { report::render(&outcome) })?;
    Ok(outcome.is_whole())
}

fn measure_bar(only: Option<&str>, peers: bool, run: &RunArgs) -> Result<bool, String> {
    let RunArgs { blocks, seconds, seed, wait_percent: wait_percent_max, .. } = *run;
    let rows = bar::select(only, peers)?;
    let agenda = Agenda::of(&rows, Settings { blocks, seconds, seed, wait_percent_max })?;
    progress(&format!("{} rows, about {:.0} minutes", rows.len(), agenda.estimated_s() / 60.0));
    let programs = run.programs.build()?;
    let measured = agenda.run(&programs)?;
    let record = record::describe_bar(&rows, &measured, &programs);
    progress(&format!("written to {}", record::write("bar", &record)?.display()));
    print(&if run.json { format!("{record:#}\n") } else { bar::render(&rows, &measured) })?;
    Ok(rows.iter().all(|row| measured.judge(row).is_met()))
}

fn count_instructions(scenarios: &str, servers: &str, programs: &ProgramArgs) -> Result<bool, String> {
    let (programs, folder) = (programs.build()?, folder::Folder::create()?);
    let mut table = vec![["scenario", "server", "instructions a request", "÷ first"].map(str::to_owned)];
    for scenario in scenarios.split(',') {
        let mut first = None;
        for server in servers.split(',') {
            let count = instructions::per_request(server, scenario, &folder, &programs)?;
            let ratio = count / *first.get_or_insert(count);
            table.push([
                scenario.to_owned(),
                server.to_owned(),
                format!("{count:.1}"),
                format!("{ratio:.3}"),
            ]);
        }
    }
    print(&(report::align(&table) + &programs.about() + "\n"))
}
