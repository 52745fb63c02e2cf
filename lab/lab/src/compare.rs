//! Servers in turn: in each round every server has one block, in random order, so that what drifts on the machine drifts
//! for all of them. The base runs twice under two names: what these two differ by is noise.

use crate::binaries::Binaries;
use crate::block::{self, Block, Order};
use crate::dice::Dice;
use crate::identity::{self, Identity};
use crate::process::free_address;
use crate::scenario::Scenario;
use crate::server::{Place, REFERENCE, SERVERS, ServerKind};
use crate::site::{SETTLED_S, Site};
use crate::statistics::{Estimate, estimate};
use crate::validity::Fault;

/// Most blocks of one server in one run.
pub const BLOCKS_MAX: u32 = 1_000;
/// Start, probes, warm-up and end of a block, in seconds, about.
const AROUND_BLOCK_S: f64 = 0.6;
/// What marks the base's second name.
pub const AGAIN: &str = " (again)";

/// What is to be compared.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The load.
    pub scenario: &'static Scenario,
    /// The servers; the first is the base.
    pub servers: Vec<&'static ServerKind>,
    /// Rounds: blocks of each server that are to count.
    pub blocks: u32,
    /// Length of a window.
    pub seconds: u32,
    /// For orders and intervals.
    pub seed: u64,
    /// The bound on run-queue wait, in per cent of the window; none: the scenario's own.
    pub wait_percent_max: Option<f64>,
    /// Rounds in which system calls are counted.
    pub syscall_rounds: u32,
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
    /// System calls per response, by round, or why there is no count.
    pub syscalls: Vec<Result<f64, String>>,
    /// Which program it was.
    pub identity: Identity,
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

impl Plan {
    /// The bound on run-queue wait that holds, in per cent of the window.
    pub fn wait_percent(&self) -> f64 {
        self.wait_percent_max.unwrap_or_else(|| self.scenario.wait_percent_max())
    }

    /// Rounds at most: where blocks do not count, further rounds stand in for them, up to half as many again.
    pub fn rounds_max(&self) -> u32 {
        self.blocks + self.blocks / 2
    }

    /// How long it will take in seconds, about, if all blocks count.
    pub fn estimated_s(&self) -> f64 {
        let block_s = f64::from(self.seconds) + AROUND_BLOCK_S;
        let blocks = f64::from(self.blocks) * (self.servers.len() + 1) as f64;
        let counts = f64::from(self.syscall_rounds) * self.servers.len() as f64;
        let settling_s = if self.scenario.has_to_settle() { SETTLED_S as f64 } else { 0.0 };
        settling_s + blocks * block_s + counts * (1.0 + AROUND_BLOCK_S)
    }
}

impl Entry {
    /// Whether further rounds are of no use to it: enough blocks count, or none could be run at all.
    pub fn has_enough(&self, blocks: u32) -> bool {
        let failed = |block: &Block| block.faults.iter().any(|fault| matches!(fault, Fault::Failed(_)));
        self.valid().count() >= blocks as usize || self.blocks.iter().all(failed)
    }

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

    /// System calls per response.
    pub fn syscalls(&self, seed: u64) -> Option<Estimate> {
        estimate(&self.syscalls.iter().flatten().copied().collect::<Vec<_>>(), seed)
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

    /// What is to be said where connections were granted smaller receive buffers than the scenario asks for: it is another load then.
    pub fn receive_buffer_note(&self) -> Option<String> {
        let asked = u64::from(self.plan.scenario.receive_buffer_bytes?);
        let blocks = self.entries.iter().flat_map(Entry::valid);
        let granted = blocks.map(|block| block.tally.receive_buffer_bytes).min()?;
        let name = self.plan.scenario.name;
        let note = format!(
            "{name}: receive buffers: asked {asked} bytes, granted {granted}; net.core.rmem_max bounds them"
        );
        (granted < asked).then_some(note)
    }

    /// CPU time per response of one entry over that of another, round by round, where both blocks count.
    pub fn ratio(&self, over: &Entry, under: &Entry) -> Option<Estimate> {
        let rounds = over.blocks.iter().zip(&under.blocks);
        let ratios: Vec<f64> =
            rounds.filter_map(|(over, under)| Some(over.cpu_us()? / under.cpu_us()?)).collect();
        estimate(&ratios, self.plan.seed)
    }

    /// System calls per response of one entry less those of another, round by round, where both were counted.
    ///
    /// # Errors
    /// No round in which both were, and why.
    pub fn syscalls_more(&self, of: &Entry, less: &Entry) -> Result<Estimate, String> {
        let rounds = of.syscalls.iter().zip(&less.syscalls);
        let more: Vec<f64> =
            rounds.filter_map(|(of, less)| Some(of.as_ref().ok()? - less.as_ref().ok()?)).collect();
        estimate(&more, self.plan.seed).ok_or_else(|| {
            let mut reasons =
                of.syscalls.iter().chain(&less.syscalls).filter_map(|count| count.as_ref().err());
            reasons.next().cloned().unwrap_or_else(|| "not counted".to_owned())
        })
    }
}

/// Runs the comparison; progress goes to `say`.
///
/// # Errors
/// Our own server, whose answers give the null servers their length, does not run.
pub fn run(plan: Plan, binaries: &Binaries, say: &dyn Fn(&str)) -> Result<Outcome, String> {
    if let Some(server) = plan.servers.iter().find(|server| !server.serves(plan.scenario)) {
        return Err(format!("{} does not serve the scenario {}", server.name, plan.scenario.name));
    }
    let site = Site::create().map_err(|error| format!("the site's folder: {error}"))?;
    let mut bench = Bench { plan: &plan, binaries, site: &site, port: 0, null_bytes: 0 };
    bench.null_bytes = bench.reference_bytes()?;
    let mut entries = entries(&plan.servers, &|server| identity::of(server, plan.scenario, binaries));
    site.settle(plan.scenario, say)?;
    let mut dice = Dice::new(plan.seed);
    for round in 1..=plan.rounds_max() {
        if round > plan.blocks && entries.iter().all(|entry| entry.has_enough(plan.blocks)) {
            break;
        }
        let mut order: Vec<usize> = (0..entries.len()).collect();
        dice.shuffle(&mut order);
        for at in order {
            let block = bench.block(entries[at].server);
            say(&progress(round, plan.blocks, &entries[at].label, &block));
            entries[at].blocks.push(block);
        }
    }
    for _ in 0..plan.syscall_rounds {
        for entry in entries.iter_mut().filter(|entry| !entry.label.ends_with(AGAIN)) {
            entry.syscalls.push(bench.syscalls(entry.server));
        }
    }
    let null_bytes = bench.null_bytes;
    Ok(Outcome { plan, null_bytes, entries })
}

/// The base, the base again, and the others, without blocks yet.
pub fn entries(servers: &[&'static ServerKind], identify: &dyn Fn(&ServerKind) -> Identity) -> Vec<Entry> {
    let entry = |label: String, server| Entry {
        label,
        server,
        blocks: Vec::new(),
        syscalls: Vec::new(),
        identity: identify(server),
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
            wait_percent_max: self.plan.wait_percent(),
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
