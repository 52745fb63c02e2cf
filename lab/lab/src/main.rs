//! The lab's commands, run as `cargo lab NAME`.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use lab::bar::run::{Agenda, Settings};
use lab::bar::{self, Verdict, cases, table};
use lab::binaries::Binaries;
use lab::client::beside::{self, Request};
use lab::client::{self, Load};
use lab::compare::{self, BLOCKS_MAX, Plan};
use lab::{peers, record, report, scenario, server, setup};

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
    Setup(SetupArgs),
    /// List scenarios and servers
    List,
    /// Send the requests of a scenario (the lab calls it)
    #[command(hide = true)]
    Client(ClientArgs),
    /// Ask for a small file while large ones are downloaded (the lab calls it)
    #[command(hide = true)]
    Beside(BesideArgs),
}

#[derive(Debug, Args)]
struct SetupArgs {
    /// Build the peers from crates first, which takes minutes
    #[arg(long)]
    build_peers: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Rounds; each server has one block in each
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(BLOCKS_MAX)))]
    blocks: u32,

    /// Length of a block's window in seconds
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,

    /// For the order of blocks and the intervals
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Profile that our programs are built in
    #[arg(long, default_value = "dist")]
    profile: String,

    /// A block is invalid if its server waited for its core longer, in per cent of the window; without it, 1, and 3 where
    /// connections end
    #[arg(long)]
    wait_percent: Option<f64>,

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

    /// Rounds in which system calls are counted
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=i64::from(BLOCKS_MAX)))]
    syscall_rounds: u32,

    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct BarArgs {
    /// Only these rows, with commas between
    #[arg(long)]
    only: Option<String>,

    /// Also rows in which nothing is asked of us
    #[arg(long)]
    peers: bool,

    /// Name the rows and run nothing
    #[arg(long)]
    list: bool,

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
    millis: u64,
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    bytes: u64,
    #[arg(long)]
    connections: u32,
}

#[derive(Debug, Args)]
struct BesideArgs {
    #[arg(long)]
    address: SocketAddr,
    #[arg(long)]
    target: String,
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    bytes: u64,
    #[arg(long)]
    millis: u64,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Compare(args) => compare(&args),
        Command::Bar(args) => bar(&args),
        Command::Setup(args) => check_setup(&args),
        Command::List => list(),
        Command::Client(args) => send(&args),
        Command::Beside(args) => ask_beside(&args),
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
        syscall_rounds: args.syscall_rounds,
    };
    say(&format!("about {:.0} s", plan.estimated_s()));
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
    if args.list {
        print!("{}", table::list());
        return Ok(ExitCode::SUCCESS);
    }
    let RunArgs { blocks, seconds, seed, wait_percent: wait_percent_max, .. } = args.run;
    let cases = cases::select(args.only.as_deref(), args.peers)?;
    let agenda = Agenda::of(&cases, Settings { blocks, seconds, seed, wait_percent_max })?;
    say(&format!("{} rows, about {:.0} minutes", cases.len(), agenda.estimated_s() / 60.0));
    let binaries = Binaries::build(&args.run.profile)?;
    let (outcomes, findings) = agenda.run(&binaries, &say)?;
    let json = record::describe_bar(&cases, (&outcomes, &findings), seed, &binaries);
    say(&format!("written to {}", record::write("bar", &json)?.display()));
    let text = || table::render(&cases, &outcomes, &findings, seed);
    print!("{}", if args.run.json { format!("{json}\n") } else { text() });
    // What was to be run and gave no figure is not met either.
    let met = |case: &&bar::Case| {
        matches!(bar::judge(case, &outcomes, &findings, seed), Verdict::Met(_) | Verdict::Shown(_))
    };
    Ok(if cases.iter().all(met) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check_setup(args: &SetupArgs) -> Result<ExitCode, String> {
    if args.build_peers {
        peers::build(&say)?;
    }
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
        duration: Duration::from_millis(args.millis),
        answer_bytes: usize::try_from(args.bytes).map_err(|error| error.to_string())?,
        connections: args.connections,
    };
    let tally = client::run(&load).map_err(|error| format!("client: {error}"))?;
    println!("{tally}");
    Ok(ExitCode::SUCCESS)
}

fn ask_beside(args: &BesideArgs) -> Result<ExitCode, String> {
    let request = Request {
        address: args.address,
        target: args.target.clone(),
        answer_bytes: usize::try_from(args.bytes).map_err(|error| error.to_string())?,
        duration: Duration::from_millis(args.millis),
    };
    println!("{}", beside::run(&request).map_err(|error| format!("client: {error}"))?);
    Ok(ExitCode::SUCCESS)
}
