//! Many connections at once: `cargo lab connections` opens them from client processes, holds them, and watches the server's memory
//! and CPU time until all are gone. docs/million.md explains what a machine needs for it.

mod fleet;
mod plan;
mod reading;
mod report;
mod run;

use std::fs;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, value_parser};
use serde_json::json;
use testkit::Response;

use crate::bench::{Bench, RunSettings, ServerSetup, StartedServer};
use crate::client::{HeldConnections, Load, Pacing};
use crate::file_set::FileContent;
use crate::folder::RunFolder;
use crate::namespace;
use crate::process::{CLIENT_CORE, SERVER_CORE, free_address, output, under};
use crate::programs::{OurPrograms, build_one, root};
use crate::report::unix_seconds;
use crate::scenario::{self, Scenario};
use crate::server::{self, ServerSpec};
use crate::{machine, print, progress};
use fleet::{Fleet, Task};
use plan::{MachineLimits, Plan, buckets_wanted};
use report::Bounds;
use run::{Findings, Run};

pub(crate) use fleet::hold;
pub(crate) use reading::ProgressLine;

/// Requested on every connection.
const SCENARIO: &str = "1k";
/// Our program; others keep their own timeouts.
const OURS: &str = "shearwater";
/// Length of a null server's response.
const NULL_BYTES: u64 = 1_300;
/// Timeout of idle connections where none should expire, besides the time they are held.
const KEEP_ALIVE: u32 = 3_600;
/// Time besides connecting, holding and asking until the first connection expires.
const KEEP_ALIVE_SPARE: u32 = 60;
/// Longest timeout that our server can be configured with.
const KEEP_ALIVE_MAX: u32 = 86_400;
/// Connections without a response, all processes together: fewer than any server's accept queue has.
const PENDING_MAX: u64 = 256;
/// Connections that the server must allow besides those held.
const OTHER_CONNECTIONS: u32 = 1_000;
/// Lines of the server's log that are shown.
const LOG_LINES_MAX: usize = 20;

/// A run's connections and phases.
#[derive(Debug, Args)]
pub(crate) struct ConnectionsArgs {
    /// Connections, each with one verified response before it is held
    #[arg(long, value_parser = value_parser!(u32).range(1..=3_500_000))]
    count: u32,
    /// Server, as `list` names them
    #[arg(long, default_value = "shearwater-uring")]
    server: String,
    /// Seconds for which they are held while some of them ask again
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u32).range(0..=86_400))]
    hold: u32,
    /// Connections opened per second, at most
    #[arg(long, default_value_t = 20_000, value_parser = value_parser!(u32).range(1..))]
    rate: u32,
    /// Requests per second while they are held, on random connections
    #[arg(long, default_value_t = 1_000)]
    trickle: u32,
    /// Busy connections, measured alone and beside the idle ones
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u32).range(0..=10_000))]
    busy: u32,
    /// Requests per second on the busy connections [default: as many as they can]
    #[arg(long)]
    busy_rate: Option<u32>,
    /// Connections that time out while the others are held; our server only
    #[arg(long, default_value_t = 0)]
    expire: u32,
    /// Descriptor limit of the server [default: this process's]
    #[arg(long)]
    server_descriptors: Option<u32>,
    /// Print the plan and run nothing
    #[arg(long)]
    plan: bool,
}

impl ConnectionsArgs {
    /// Returns the seconds until an idle connection expires: after all of the run, or just after the other phases.
    fn keep_alive_s(&self) -> u32 {
        let connecting = 2 * (self.count / self.rate + 1);
        let own = if self.expire > 0 { KEEP_ALIVE_SPARE } else { KEEP_ALIVE };
        (own + connecting + self.hold).min(KEEP_ALIVE_MAX)
    }

    fn check(&self, spec: &ServerSpec) -> Result<(), String> {
        if self.expire > self.count {
            return Err(format!("--expire {}: there are only {} connections", self.expire, self.count));
        }
        if spec.program != OURS && self.expire > 0 {
            return Err(format!("--expire: the timeouts of {} are its own", spec.name));
        }
        Ok(())
    }
}

/// Enters a namespace whose table has room for so many connections, if the system permits it.
pub(crate) fn try_namespace(connections: u32) -> Result<(), String> {
    namespace::enter("reno", Some(buckets_wanted(connections)))
}

/// Runs all phases and prints the figures; returns false if a connection failed or a bound was missed.
pub(crate) fn run(args: &ConnectionsArgs) -> Result<bool, String> {
    let scenario = scenario::find(SCENARIO)?;
    let spec = server::find(&args.server, scenario)?;
    args.check(spec)?;
    // Before the namespace, in which nothing can be downloaded.
    let is_built = args.plan || spec.is_foreign();
    let programs = if is_built { OurPrograms::default() } else { build_one(spec)? };
    let has_namespace = enter_namespace(args.count)?;
    let plan = Plan::of(args.count, MachineLimits::read()?)?;
    if args.plan {
        return print(&format!("{:#}\n", json!(plan)));
    }
    let bounds = Bounds::of(args.count, spec.program == OURS, has_namespace);
    let findings = measure(args, scenario, spec, &programs, &plan, bounds)?;
    let figures = report::figures(args, &findings, &bounds);
    let is_met = report::is_met(&findings, &figures);
    let record = json!({
        "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        "commit": machine::commit(),
        "unix_seconds": unix_seconds(),
        "machine": machine::describe(),
        "plan": plan,
        "figures": figures,
        "met": is_met,
        "findings": findings,
    });
    progress(&format!("written to {}", crate::report::write("connections", &record)?.display()));
    print(&report::text(&findings, &figures))?;
    Ok(is_met)
}

/// Enters a network namespace with a table for all connections; returns false and says why if the system permits none.
fn enter_namespace(connections: u32) -> Result<bool, String> {
    // A thread may have moved halfway when it fails, so another process tries first.
    let mut command = Command::new(std::env::current_exe().map_err(|error| format!("own path: {error}"))?);
    command.args(["try-namespace", &connections.to_string()]).stdin(Stdio::null());
    if let Err(why) = output(command) {
        progress(&format!("the present network namespace, whose settings are the machine's: {why}"));
        return Ok(false);
    }
    try_namespace(connections)?;
    progress("a network namespace of its own: reno, its own connection table");
    Ok(true)
}

/// Starts the server and the client processes, and runs all phases.
fn measure(
    args: &ConnectionsArgs,
    scenario: &'static Scenario,
    spec: &'static ServerSpec,
    programs: &OurPrograms,
    plan: &Plan,
    bounds: Bounds,
) -> Result<Findings, String> {
    let folder = RunFolder::create()?;
    // The validators of a new file change while it becomes older.
    folder.settle(scenario);
    let bench = Bench { programs, folder: &folder, settings: RunSettings::default(), journal: None };
    let spec = if spec.program == OURS { configured(args, spec) } else { spec };
    let address = free_address()?;
    let setup = ServerSetup { bench: &bench, spec, scenario, address, workers: 1, null_bytes: NULL_BYTES };
    let server = start(args, &setup)?;
    progress(&format!("server: {}", server.line));
    show_log(&folder);
    let response = setup.probe()?;
    let (cores, openers) = client_cores();
    let fleet = Fleet::new(&tasks(args, &setup, &server, &response, plan, openers), &cores)?;
    let run = Run {
        args,
        setup,
        server,
        fleet,
        keep_alive: Duration::from_secs(args.keep_alive_s().into()),
        bounds,
        openers,
        progress: ProgressLine::new(),
        findings: Findings::default(),
    };
    let found = run.run();
    if !found.as_ref().is_ok_and(|findings| findings.ended_cleanly && findings.counts.failed() == 0) {
        show_log(&folder);
    }
    found
}

/// Divides connections and requests among the client processes. Every response must be the first one's, but for its date.
fn tasks(
    args: &ConnectionsArgs,
    setup: &ServerSetup<'_>,
    server: &StartedServer,
    response: &Response,
    plan: &Plan,
    openers: usize,
) -> Vec<Task> {
    let mut expected = server.expected.clone();
    expected.body = Some(FileContent::of(&response.body));
    let load = setup.scenario.load(setup.address, &expected, 0);
    let task = |(number, (source, ports)): (u32, (Ipv4Addr, Range<u16>))| {
        let (each, more) = (args.trickle / plan.processes, args.trickle % plan.processes);
        let per_second = each + u32::from(number < more);
        let pacing = Pacing::Rate(per_second);
        let load = Load { connections: 0, pacing, latencies: true, seed: number.into(), ..load.clone() };
        let held = HeldConnections {
            source,
            ports,
            opened_per_s: (args.rate / openers as u32).max(1),
            pending_max: (PENDING_MAX / openers as u64).max(1),
            keep_alive_ms: u64::from(args.keep_alive_s()) * 1_000,
        };
        Task { load, held }
    };
    (0..).zip(plan.shares()).map(task).collect()
}

/// Returns our server with a configuration of its own.
fn configured(args: &ConnectionsArgs, spec: &ServerSpec) -> &'static ServerSpec {
    let connections_max = args.count + args.count / 8 + args.busy + OTHER_CONNECTIONS;
    let mut spec = spec.clone();
    "--config {config}".clone_into(&mut spec.arguments);
    spec.config = Some(root().join("lab/lab/servers/connections.toml").display().to_string());
    spec.values.insert("connections_max".to_owned(), connections_max.to_string());
    spec.values.insert("keep_alive_s".to_owned(), args.keep_alive_s().to_string());
    // Once per process.
    Box::leak(Box::new(spec))
}

/// Starts the server with the descriptors asked for.
fn start(args: &ConnectionsArgs, setup: &ServerSetup<'_>) -> Result<StartedServer, String> {
    let mut command = setup.command()?;
    if let Some(limit) = args.server_descriptors {
        command = under("prlimit", &[&format!("--nofile={limit}:{limit}")], &command);
    }
    setup.start_as(&command)
}

/// Returns the cores of the client processes, and how many there are.
fn client_cores() -> (String, usize) {
    match machine::cores() {
        1 => (SERVER_CORE.to_string(), 1),
        cores => (format!("{CLIENT_CORE}-{}", cores - 1), cores - 1),
    }
}

/// Shows the last lines of the server's log.
fn show_log(folder: &RunFolder) {
    let log = fs::read_to_string(folder.path().join("server.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    for line in &lines[lines.len().saturating_sub(LOG_LINES_MAX)..] {
        eprintln!("server: {line}");
    }
}
