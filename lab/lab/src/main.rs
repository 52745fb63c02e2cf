//! The lab's commands, run as `cargo lab NAME`.

#![forbid(unsafe_code)]

mod arguments;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use arguments::{
    BarArgs, BesideArgs, Cli, ClientArgs, Command, CompareArgs, CrowdArgs, CrowdClientArgs, HandlersArgs,
    LastingArgs, OrderArgs, RunArgs, SetupArgs, SitesArgs, TogetherClientArgs,
};
use lab::bar::run::{Agenda, Settings};
use lab::bar::{self, Verdict, cases, table};
use lab::binaries::Binaries;
use lab::client::beside::{self, Request};
use lab::client::{self, Load};
use lab::compare::{self, Plan};
use lab::{crowd, handlers, idle, lasting, order, peers, record, report, scenario, server, setup, sites};

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Compare(args) => compare(&args),
        Command::Bar(args) => bar(&args),
        Command::Sites(args) => cost_of_sites(&args),
        Command::Handlers(args) => cost_of_handlers(&args),
        Command::Lasting(args) => let_last(&args),
        Command::Order(args) => compare_orders(&args),
        Command::Crowd(args) => face_crowd(&args),
        Command::CrowdClient(args) => be_crowd(&args),
        Command::TogetherClient(args) => ask_together(&args),
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
    let binaries = Binaries::build(&run.programs.making(), &say)?;
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
    let binaries = Binaries::build(&args.run.programs.making(), &say)?;
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

fn cost_of_sites(args: &SitesArgs) -> Result<ExitCode, String> {
    let binaries = Binaries::build(&args.programs.making(), &say)?;
    let outcome = sites::run(&binaries, &say)?;
    println!("{}{}", outcome.text(), binaries.about());
    Ok(if outcome.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cost_of_handlers(args: &HandlersArgs) -> Result<ExitCode, String> {
    let binaries = Binaries::build(&args.programs.making(), &say)?;
    let verdicts = handlers::run(&binaries, &say)?;
    println!("{}{}", verdicts.text(), binaries.about());
    Ok(if verdicts.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare_orders(args: &OrderArgs) -> Result<ExitCode, String> {
    let plan = order::Plan {
        connections: args.connections,
        blocks: args.blocks,
        seconds: args.seconds,
        seed: args.seed,
        wait_percent_max: args.wait_percent,
    };
    let binaries = Binaries::build(&args.programs.making(), &say)?;
    let outcome = order::run(plan, &binaries, &say)?;
    println!("{}{}", outcome.text(), binaries.about());
    Ok(if outcome.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn let_last(args: &LastingArgs) -> Result<ExitCode, String> {
    let trials = lasting::select(args.only.as_deref())?;
    let verdicts = lasting::run(&trials, &args.driver, &args.profile, &say)?;
    print!("{}", verdicts.text());
    Ok(if verdicts.is_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn face_crowd(args: &CrowdArgs) -> Result<ExitCode, String> {
    let servers = args.servers.split(',').map(server::find).collect::<Result<_, _>>()?;
    let plan = crowd::Plan { servers, connections: args.connections, rate: args.rate, seconds: args.seconds };
    let binaries = Binaries::build(&args.programs.making(), &say)?;
    let rows = crowd::run(&plan, &binaries, &say)?;
    println!("{}{}", crowd::render(&plan, &rows), binaries.about());
    Ok(if rows.iter().all(crowd::Row::is_met) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn be_crowd(args: &CrowdClientArgs) -> Result<ExitCode, String> {
    idle::raise_descriptor_limit();
    let request = client::crowd::Request {
        address: args.ask.address,
        target: args.target.clone(),
        answer_bytes: args.ask.answer_bytes()?,
        connections: args.connections,
        rate: args.rate,
        duration: Duration::from_secs(args.seconds),
    };
    println!("{}", client::crowd::run(&request).map_err(|error| format!("client: {error}"))?);
    Ok(ExitCode::SUCCESS)
}

fn ask_together(args: &TogetherClientArgs) -> Result<ExitCode, String> {
    idle::raise_descriptor_limit();
    let request = client::together::Request {
        address: args.ask.address,
        target: args.target.clone(),
        answer_bytes: args.ask.answer_bytes()?,
        connections: args.connections,
        duration: Duration::from_secs(args.seconds),
    };
    println!("{}", client::together::run(&request).map_err(|error| format!("client: {error}"))?);
    Ok(ExitCode::SUCCESS)
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
        address: args.ask.address,
        scenario: *scenario::find(&args.scenario)?,
        duration: Duration::from_millis(args.millis),
        answer_bytes: args.ask.answer_bytes()?,
        connections: args.connections,
    };
    let tally = client::run(&load).map_err(|error| format!("client: {error}"))?;
    println!("{tally}");
    Ok(ExitCode::SUCCESS)
}

fn ask_beside(args: &BesideArgs) -> Result<ExitCode, String> {
    let request = Request {
        address: args.ask.address,
        target: args.target.clone(),
        answer_bytes: args.ask.answer_bytes()?,
        duration: Duration::from_millis(args.millis),
    };
    println!("{}", beside::run(&request).map_err(|error| format!("client: {error}"))?);
    Ok(ExitCode::SUCCESS)
}
