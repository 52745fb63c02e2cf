//! The attackers as code: each comes in bounded waves against a server of its own, beside normal clients whose answers are
//! compared.
//!
//! `cargo xtask hostile` prints one row per attack and driver: what the normal clients felt, what the server spent, how and when
//! the attackers were put out, and what is left a minute later. Exit code 0: every bound held; 1: at least one did not; 2: an
//! attack could not be run.

mod aftermath;
mod asker;
mod attack;
mod catalogue;
mod course;
mod crowd;
mod ending;
mod latency;
mod meter;
mod modesty;
mod normal;
mod parts;
mod received;
mod row;
mod script;
mod site;
mod source;
mod template;
mod verdict;
mod visitor;

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use aftermath::Resting;
use attack::Attack;
use catalogue::ATTACKS;
use course::Course;
use row::Row;
use site::Site;

use crate::harness::common::Common;
use crate::harness::drivers::Drivers;
use crate::harness::process;
use crate::harness::trouble::{During, Outcome};

const ABOUT: &str = "\
Each attack meets a fresh server with one worker on a core of its own; attackers and normal clients share another core. \
Three times, the normal clients (64 keep-alive connections, 640 requests a second, each answer compared) are alone for \
2 s, then a wave of attackers comes. The last wave is watched until all are put out. A minute later the server is looked \
at again.

Columns: p99 of the normal clients alone and beside attackers (noise: the largest p99 alone over the smallest; own: how \
late the clients' own thread was, p99); the server's CPU, per cent of a core; its memory before, at its peak and a minute \
later; how the attackers of the last wave ended: the first answer's status, how, how many, the first and the last time \
after the connect.

Ends: served, it got what it came for; closed or reset, by the server; left, by itself, as planned; refused, it could not \
connect; held, nobody put it out.

Every bound that did not hold has a line below its row, and the exit code is 1. Other programs at work on the machine \
fail a row too: no latency is valid beside them.";

/// The arguments of `cargo xtask hostile`.
#[derive(Debug, clap::Args)]
#[command(after_help = ABOUT)]
pub(crate) struct Args {
    /// Which driver the servers use
    #[arg(long, value_enum, default_value_t = Drivers::Both)]
    driver: Drivers,
    /// Only this attack; may be given several times
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(ATTACKS.iter().map(|attack| attack.name)))]
    only: Vec<String>,
    /// Print the attacks and their bounds, and do nothing
    #[arg(long)]
    list: bool,
    /// How long the last wave of an attack is watched at most; attackers held by then fail only if their time was over
    #[arg(long, value_name = "N", default_value_t = 75, value_parser = clap::value_parser!(u64).range(4..=600))]
    seconds: u64,
    /// Write the rows into this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The server program to attack [default: target/release/shearwater, built first]
    #[arg(long, value_name = "PATH")]
    server_bin: Option<PathBuf>,
    /// The example server with the trial routes [default: target/release/examples/trial_server, built first]
    #[arg(long, value_name = "PATH")]
    example_bin: Option<PathBuf>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep the temporary folders (served files, server logs) and print where they are
    #[arg(long)]
    keep: bool,
}

/// Runs the attacks that were asked for.
pub(crate) fn run(args: Args) -> ExitCode {
    if args.list {
        list();
        return ExitCode::SUCCESS;
    }
    // On a thread of its own: what it says of cores ends with it.
    let attacks = std::thread::spawn(move || Attacks::new(args).run());
    match attacks.join() {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        Ok(Ok(false)) => ExitCode::from(1),
        Ok(Err(trouble)) => {
            eprintln!("hostile: could not be run: {trouble}");
            ExitCode::from(2)
        }
        Err(_) => ExitCode::from(2),
    }
}

fn list() {
    let mut text = String::new();
    for Attack { name, about, count, bounds, .. } in &ATTACKS {
        let ends = bounds.ends.iter().map(|(end, latest)| format!("{end} within {latest} s"));
        let ends = ends.collect::<Vec<_>>().join(", ");
        text.push_str(&format!("{name:16} {count} clients {about}\n"));
        text.push_str(&format!(
            "{:16} bounds: {} % of a core, {} MiB, after a minute {} MiB; {ends}\n",
            "", bounds.cpu_percent, bounds.peak_mib, bounds.left_mib
        ));
    }
    print(text.trim_end());
}

/// A reader that has gone needs no report.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The attacks under way, and the servers that rest after theirs.
struct Attacks {
    args: Args,
    resting: VecDeque<Resting>,
    rows: Vec<Row>,
}

impl Attacks {
    fn new(args: Args) -> Self {
        Self { args, resting: VecDeque::new(), rows: Vec::new() }
    }

    /// True if every bound of every attack held.
    fn run(mut self) -> Outcome<bool> {
        let limit = process::raise_descriptor_limit();
        let most = ATTACKS.iter().map(|attack| attack.count).max().unwrap_or(0);
        if limit < most + 200 {
            return Err(format!("{most} attackers need more than the {limit} descriptors allowed").into());
        }
        print(row::HEADING);
        for driver in self.args.driver.names() {
            for (index, attack) in ATTACKS.iter().enumerate() {
                if self.args.only.is_empty() || self.args.only.iter().any(|name| name == attack.name) {
                    self.attack(driver, index, attack)?;
                    self.look_at_rested()?;
                }
            }
        }
        while let Some(first) = self.resting.front() {
            eprintln!("hostile: waiting: {} servers rest after their attack", self.resting.len());
            std::thread::sleep(first.remaining());
            self.look_at_rested()?;
        }
        self.write_json()?;
        Ok(!self.rows.is_empty() && self.rows.iter().all(Row::passed))
    }

    fn attack(&mut self, driver: &'static str, index: usize, attack: &'static Attack) -> Outcome<()> {
        eprintln!("hostile: {driver}, {}: {} clients {}", attack.name, attack.count, attack.about);
        let site = Site::start(&self.common(driver), attack.host)?;
        let watch = Duration::from_secs(self.args.seconds);
        let observed = Course { site: &site, attack, index, seed: self.args.seed, watch }.run()?;
        self.resting.push_back(Resting::new(site, driver, attack, observed));
        Ok(())
    }

    fn common(&self, driver: &str) -> Common {
        Common {
            server_bin: self.args.server_bin.clone(),
            example_bin: self.args.example_bin.clone(),
            workers: 1,
            driver: driver.to_owned(),
            seed: self.args.seed,
            json: false,
            keep: self.args.keep,
        }
    }

    fn look_at_rested(&mut self) -> Outcome<()> {
        while self.resting.front().is_some_and(|resting| resting.remaining().is_zero()) {
            let Some(resting) = self.resting.pop_front() else { break };
            let (driver, attack) = (resting.driver, resting.attack);
            let (observed, left) = resting.look()?;
            let watch = Duration::from_secs(self.args.seconds);
            let row = Row::new(driver, attack, observed, left, watch);
            print(&row.text());
            self.rows.push(row);
        }
        Ok(())
    }

    fn write_json(&self) -> Outcome<()> {
        let Some(path) = &self.args.json else { return Ok(()) };
        let rows = self.rows.iter().map(Row::json).collect::<Vec<_>>().join(",\n");
        std::fs::write(path, format!("[{rows}]\n")).during("writing the JSON file")
    }
}
