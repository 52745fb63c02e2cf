//! The lab's commands, run as `cargo lab NAME`.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use lab::binaries::Binaries;
use lab::client::{self, Load};
use lab::compare::{self, BLOCKS_MAX, Outcome, Plan};
use lab::json::Json;
use lab::validity::WAIT_PERCENT_MAX;
use lab::{bar, record, report, scenario, server, setup};

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
    Compare(CompareArgs),
    /// Run what the project's figures need, and print which are held
    Bar(BarArgs),
    /// Say what is installed, and how to get what is not
    Setup,
    /// List scenarios and servers
    List,
    /// Send the requests of a scenario (the lab calls it)
    #[command(hide = true)]
    Client(ClientArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Rounds; each server has one block in each
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(BLOCKS_MAX)))]
    blocks: u32,

    /// Length of a block's window in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,

    /// For the order of blocks and the intervals
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Profile that our programs are built in
    #[arg(long, default_value = "dist")]
    profile: String,

    /// A block is invalid if its server waited for its core longer, in per cent of the window
    #[arg(long, default_value_t = WAIT_PERCENT_MAX)]
    wait_percent: f64,

    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct CompareArgs {
    /// The load, as `list` names it
    #[arg(long)]
    scenario: String,

    /// The servers, as `list` names them, with commas between
    #[arg(long)]
    servers: String,

    /// What the others are held against; without it, the first server
    #[arg(long)]
    base: Option<String>,

    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct BarArgs {
    /// Only this scenario, or `idle` for the lines about memory
    #[arg(long)]
    scenario: Option<String>,

    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct ClientArgs {
    #[arg(long)]
    scenario: String,
    #[arg(long)]
    address: SocketAddr,
    #[arg(long)]
    seconds: u64,
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    bytes: u64,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Compare(args) => compare(&args),
        Command::Bar(args) => bar(&args),
        Command::Setup => check_setup(),
        Command::List => list(),
        Command::Client(args) => send(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("lab: {error}");
        ExitCode::from(2)
    })
}

/// Progress, apart from the results.
fn say(line: &str) {
    eprintln!("lab: {line}");
}

fn compare(args: &CompareArgs) -> Result<ExitCode, String> {
    let run = &args.run;
    let plan = Plan {
        scenario: scenario::find(&args.scenario)?,
        servers: compare::servers(&args.servers, args.base.as_deref())?,
        blocks: run.blocks,
        seconds: run.seconds,
        seed: run.seed,
        wait_percent_max: run.wait_percent,
    };
    let binaries = Binaries::build(&run.profile)?;
    let outcome = compare::run(plan, &binaries, &say)?;
    let json = record::describe(&outcome, &binaries);
    let path = record::write(outcome.plan.scenario.name, &json)?;
    say(&format!("written to {}", path.display()));
    print!("{}", if run.json { format!("{json}\n") } else { report::render(&outcome) });
    // A comparison in which a server has no block that counts compares nothing.
    Ok(if outcome.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn bar(args: &BarArgs) -> Result<ExitCode, String> {
    let run = &args.run;
    let plans = bar::plans(run.blocks, run.seconds, run.seed, run.wait_percent)?;
    let wanted = |plan: &Plan| args.scenario.as_ref().is_none_or(|name| plan.scenario.name == name);
    let mut names = plans.iter().map(|plan| plan.scenario.name).chain(["idle"]);
    if let Some(name) = args.scenario.as_deref().filter(|name| !names.any(|known| known == *name)) {
        return Err(format!("the bar has no line about {name:?}"));
    }
    let binaries = Binaries::build(&run.profile)?;
    let mut outcomes = Vec::new();
    let mut described = Vec::new();
    for plan in plans.into_iter().filter(wanted) {
        say(plan.scenario.name);
        let outcome = compare::run(plan, &binaries, &say)?;
        described.push(record::describe(&outcome, &binaries));
        outcomes.push(outcome);
    }
    // Memory is no scenario: it is measured with the whole bar, or by its own name.
    let memory = if args.scenario.as_deref().is_none_or(|name| name == "idle") {
        bar::measure_memory(&binaries)
    } else {
        Vec::new()
    };
    described.extend(memory.iter().map(record::describe_memory));
    let json = Json::List(described);
    say(&format!("written to {}", record::write("bar", &json)?.display()));
    print!("{}", if run.json { format!("{json}\n") } else { bar::render(&outcomes, &memory) });
    let missed = |case| matches!(bar::judge(case, &outcomes, &memory), bar::Verdict::Missed(_));
    // What was to be run and gave no figure is not held either.
    let whole = outcomes.iter().all(Outcome::is_whole) && memory.iter().all(|(_, measured)| measured.is_ok());
    Ok(if whole && !bar::CASES.iter().any(missed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check_setup() -> Result<ExitCode, String> {
    let (table, ready) = setup::check();
    print!("{table}");
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list() -> Result<ExitCode, String> {
    println!("scenarios");
    for scenario in scenario::SCENARIOS {
        println!("  {:18} {}", scenario.name, scenario.about);
    }
    println!("servers");
    for server in server::SERVERS {
        println!("  {}", server.name);
    }
    Ok(ExitCode::SUCCESS)
}

fn send(args: &ClientArgs) -> Result<ExitCode, String> {
    let load = Load {
        address: args.address,
        scenario: *scenario::find(&args.scenario)?,
        duration: Duration::from_secs(args.seconds),
        answer_bytes: usize::try_from(args.bytes).map_err(|error| error.to_string())?,
    };
    let tally = client::run(&load).map_err(|error| format!("client: {error}"))?;
    println!("{tally}");
    Ok(ExitCode::SUCCESS)
}
