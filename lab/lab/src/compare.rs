//! Servers in turn: in each round every server has one block, in random order, so that what drifts on the machine drifts
//! for all of them. The base runs twice under two names: what these two differ by is noise.

use crate::binaries::Binaries;
use crate::block::{self, Block, Order};
use crate::dice::Dice;
use crate::process::free_address;
use crate::scenario::Scenario;
use crate::server::{Place, REFERENCE, SERVERS, ServerKind};
use crate::site::Site;
use crate::statistics::{Estimate, estimate};

/// Most blocks of one server in one run.
pub const BLOCKS_MAX: u32 = 1_000;
/// What marks the base's second name.
pub const AGAIN: &str = " (again)";

/// What is to be compared.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The load.
    pub scenario: &'static Scenario,
    /// The servers; the first is the base.
    pub servers: Vec<&'static ServerKind>,
    /// Rounds.
    pub blocks: u32,
    /// Length of a window.
    pub seconds: u32,
    /// For orders and intervals.
    pub seed: u64,
    /// The bound on run-queue wait, in per cent of the window.
    pub wait_percent_max: f64,
}

/// One name in the comparison.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The server's name; the base's second one is marked.
    pub label: String,
    /// The server.
    pub server: &'static ServerKind,
    /// Its blocks, by round.
    pub blocks: Vec<Block>,
    /// System calls per response, or why there is no count.
    pub syscalls: Result<f64, String>,
}

/// All that a comparison has measured.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What was asked.
    pub plan: Plan,
    /// Length of the null servers' answers.
    pub null_bytes: u64,
    /// The base, the base again, and the others.
    pub entries: Vec<Entry>,
}

impl Entry {
    /// Its blocks that count.
    pub fn valid(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.is_valid())
    }

    /// CPU time per response in microseconds.
    pub fn cpu_us(&self, seed: u64) -> Option<Estimate> {
        estimate(&self.valid().filter_map(Block::cpu_us).collect::<Vec<_>>(), seed)
    }

    /// Responses per second; none if the client was the limit in any block.
    pub fn rps(&self, seed: u64) -> Option<Estimate> {
        let rps: Option<Vec<f64>> = self.valid().map(Block::rps).collect();
        estimate(&rps?, seed)
    }
}

impl Outcome {
    /// Whether every server has a block that counts.
    pub fn is_whole(&self) -> bool {
        self.entries.iter().all(|entry| entry.valid().next().is_some())
    }

    /// The entry of this label.
    pub fn entry(&self, label: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.label == label)
    }

    /// CPU time per response of one entry over that of another, round by round, where both blocks count.
    pub fn ratio(&self, over: &Entry, under: &Entry) -> Option<Estimate> {
        let rounds = over.blocks.iter().zip(&under.blocks);
        let ratios: Vec<f64> =
            rounds.filter_map(|(over, under)| Some(over.cpu_us()? / under.cpu_us()?)).collect();
        estimate(&ratios, self.plan.seed)
    }
}

/// Runs the comparison; progress goes to `say`.
///
/// # Errors
/// Our own server, whose answers give the null servers their length, does not run.
pub fn run(plan: Plan, binaries: &Binaries, say: &dyn Fn(&str)) -> Result<Outcome, String> {
    let site = Site::create().map_err(|error| format!("the site's folder: {error}"))?;
    let mut bench = Bench { plan: &plan, binaries, site: &site, port: 0, null_bytes: 0 };
    bench.null_bytes = bench.reference_bytes()?;
    let mut entries = entries(&plan.servers);
    let mut dice = Dice::new(plan.seed);
    for round in 1..=plan.blocks {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        dice.shuffle(&mut order);
        for at in order {
            let block = bench.block(entries[at].server);
            say(&progress(round, plan.blocks, &entries[at].label, &block));
            entries[at].blocks.push(block);
        }
    }
    for entry in entries.iter_mut().filter(|entry| !entry.label.ends_with(AGAIN)) {
        entry.syscalls = bench.syscalls(entry.server);
    }
    let null_bytes = bench.null_bytes;
    Ok(Outcome { plan, null_bytes, entries })
}

/// The base, the base again, and the others, without blocks yet.
pub fn entries(servers: &[&'static ServerKind]) -> Vec<Entry> {
    let entry = |label: String, server| Entry {
        label,
        server,
        blocks: Vec::new(),
        syscalls: Err("counted once, for its first name".to_owned()),
    };
    let again = servers.first().map(|base| entry(format!("{}{AGAIN}", base.name), *base));
    let mut entries: Vec<Entry> =
        servers.iter().map(|server| entry(server.name.to_owned(), server)).collect();
    entries.splice(entries.len().min(1)..entries.len().min(1), again);
    entries
}

fn progress(round: u32, rounds: u32, label: &str, block: &Block) -> String {
    let result = match block.cpu_us() {
        Some(cpu_us) => format!("{cpu_us:.3} µs CPU per response"),
        None => {
            let faults: Vec<String> = block.faults.iter().map(ToString::to_string).collect();
            format!("INVALID: {}", faults.join("; "))
        }
    };
    format!("{round}/{rounds} {label}: {result}")
}

struct Bench<'a> {
    plan: &'a Plan,
    binaries: &'a Binaries,
    site: &'a Site,
    port: u16,
    null_bytes: u64,
}

impl Bench<'_> {
    fn order<'a>(&'a mut self, server: &'a ServerKind) -> Result<Order<'a>, String> {
        let address = free_address(&mut self.port)?;
        let (binaries, site, null_bytes) = (self.binaries, self.site, self.null_bytes);
        Ok(Order {
            server,
            scenario: self.plan.scenario,
            place: Place { binaries, site, address, null_bytes, workers: 1 },
            seconds: self.plan.seconds,
            wait_percent_max: self.plan.wait_percent_max,
        })
    }

    fn reference_bytes(&mut self) -> Result<u64, String> {
        let order = self.order(&REFERENCE)?;
        let _server = block::start(&order)?;
        Ok(block::checked_probe(&order)?.bytes)
    }

    fn block(&mut self, server: &ServerKind) -> Block {
        self.order(server).map_or_else(Block::failed, |order| block::run(&order))
    }

    fn syscalls(&mut self, server: &ServerKind) -> Result<f64, String> {
        block::syscalls_per_response(&self.order(server)?)
    }
}

/// Reads a list of servers; the base goes first.
///
/// # Errors
/// A name that there is none of, a name twice, or none at all.
pub fn servers(names: &str, base: Option<&str>) -> Result<Vec<&'static ServerKind>, String> {
    let mut servers = Vec::with_capacity(SERVERS.len());
    for name in base.into_iter().chain(names.split(',').filter(|name| Some(*name) != base)) {
        let server = crate::server::find(name)?;
        if servers.contains(&server) {
            return Err(format!("{name} is named twice; the base runs twice by itself"));
        }
        servers.push(server);
    }
    Ok(servers)
}
