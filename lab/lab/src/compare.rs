//! Servers in turn: in each round every server has one block, in random order, so that drift of the machine affects all of
//! them alike. The base runs twice under two names: their difference is noise.

use serde::Serialize;

use crate::block::{Block, Order, length};
use crate::folder::Folder;
use crate::machine;
use crate::peers;
use crate::process::free_address;
use crate::programs::{Programs, root};
use crate::scenario::Scenario;
use crate::server::{Kind, Place, REFERENCE, ServerKind};
use crate::statistics::{Estimate, estimate};
use crate::validity::{WAIT_PERCENT_MAX, WAIT_PERCENT_MAX_CHURN};

/// Seconds of start, probes, warm-up and end of a block.
const AROUND_BLOCK_S: f64 = 0.6;
/// Mark of the base's second name.
const AGAIN: &str = " (again)";

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) scenario: &'static Scenario,
    /// The servers; the first is the base.
    pub(crate) servers: Vec<&'static ServerKind>,
    /// Blocks of each server that should count.
    pub(crate) blocks: u32,
    pub(crate) seconds: u32,
    /// Seed of block orders and intervals.
    pub(crate) seed: u64,
    /// Bound on run-queue wait, in per cent of the window; none: the scenario's own.
    pub(crate) wait_percent_max: Option<f64>,
    /// Rounds in which system calls are counted.
    pub(crate) syscall_rounds: u32,
}

/// One name in the comparison.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) label: String,
    pub(crate) server: &'static ServerKind,
    /// Its blocks, by round.
    pub(crate) blocks: Vec<Block>,
    /// System calls per response, by round.
    pub(crate) syscalls: Vec<Result<f64, String>>,
    pub(crate) identity: Identity,
}

/// A server's program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Identity {
    /// Version that it prints; for ours the checkout's commit.
    pub(crate) version: String,
    pub(crate) released: Option<&'static str>,
    pub(crate) file_written_days_ago: Option<u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) plan: Plan,
    /// Length of the null servers' responses.
    pub(crate) null_bytes: u64,
    /// The base, the base again, and the others.
    pub(crate) entries: Vec<Entry>,
}

/// A figure of a valid block.
pub(crate) type Figure = fn(&Block) -> Option<f64>;

impl Plan {
    pub(crate) fn wait_percent(&self) -> f64 {
        let has_churn = self.scenario.requests_per_connection > 0;
        self.wait_percent_max.unwrap_or(if has_churn { WAIT_PERCENT_MAX_CHURN } else { WAIT_PERCENT_MAX })
    }

    /// Returns the most rounds: further ones replace invalid blocks, up to half as many again.
    fn rounds_max(&self) -> u32 {
        self.blocks + self.blocks / 2
    }

    /// Returns the seconds that it takes if all blocks count.
    pub(crate) fn estimated_s(&self) -> f64 {
        let blocks = f64::from(self.blocks) * (self.servers.len() + 1) as f64;
        let counts = f64::from(self.syscall_rounds) * self.servers.len() as f64;
        self.scenario.settled_s() as f64
            + blocks * (f64::from(self.seconds) + AROUND_BLOCK_S)
            + counts * (1.0 + AROUND_BLOCK_S)
    }
}

impl Identity {
    fn of(server: &ServerKind, scenario: &Scenario, programs: &Programs) -> Self {
        let program = server.program(scenario, programs);
        let version = match server.kind {
            _ if server.is_ours() && programs.guided.is_some() => {
                format!("{}, guided by {}", machine::commit(&root()), programs.guidance)
            }
            Kind::Null | Kind::ShearwaterPlain | Kind::ShearwaterAxum => machine::commit(&root()),
            _ if server.is_ours() => machine::commit(&root()),
            Kind::Hyper | Kind::Axum | Kind::ServeDir(_) => peers::locked(),
            _ => peers::version(&program),
        };
        Self {
            released: peers::released(&version),
            file_written_days_ago: machine::age_days(&program),
            version,
        }
    }

    /// Returns version and age in one line.
    pub(crate) fn text(&self) -> String {
        match (self.released, self.file_written_days_ago) {
            (Some(day), _) => format!("{} (released {day})", self.version),
            (None, Some(days)) => format!("{} (built {days} days ago)", self.version),
            (None, None) => self.version.clone(),
        }
    }
}

impl Entry {
    /// Returns true if further rounds are of no use: enough blocks count, or none can be run at all.
    fn has_enough(&self, blocks: u32) -> bool {
        self.valid().count() >= blocks as usize || self.blocks.iter().all(Block::has_failed)
    }

    pub(crate) fn is_control(&self) -> bool {
        self.label.ends_with(AGAIN)
    }

    pub(crate) fn valid(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.is_valid())
    }

    /// Estimates a figure over the blocks that count.
    pub(crate) fn figure(&self, figure: Figure, seed: u64) -> Option<Estimate> {
        estimate(&self.valid().filter_map(figure).collect::<Vec<_>>(), seed)
    }

    /// Estimates responses per second; none if the client was the limit in any block.
    pub(crate) fn rps(&self, seed: u64) -> Option<Estimate> {
        let rps: Option<Vec<f64>> = self.valid().map(Block::rps).collect();
        estimate(&rps?, seed)
    }

    pub(crate) fn syscalls(&self, seed: u64) -> Option<Estimate> {
        estimate(&self.syscalls.iter().flatten().copied().collect::<Vec<_>>(), seed)
    }
}

impl Outcome {
    /// Returns true if every server has a block that counts.
    pub(crate) fn is_whole(&self) -> bool {
        self.entries.iter().all(|entry| entry.valid().next().is_some())
    }

    pub(crate) fn entry(&self, label: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.label == label)
    }

    /// Returns a warning where connections were granted smaller receive buffers than the scenario requests.
    pub(crate) fn receive_buffer_note(&self) -> Option<String> {
        let asked = u64::from(self.plan.scenario.receive_buffer_bytes?);
        let blocks = self.entries.iter().flat_map(Entry::valid);
        let granted = blocks.map(|block| block.tally.receive_buffer_bytes).min()?;
        let name = self.plan.scenario.name;
        (granted < asked).then(|| {
            format!("{name}: receive buffers: asked {asked} bytes, granted {granted}; net.core.rmem_max bounds them")
        })
    }

    /// Estimates the ratio of a figure of two entries, round by round, where both blocks count.
    pub(crate) fn ratio_of(&self, figure: Figure, over: &Entry, under: &Entry) -> Option<Estimate> {
        let rounds = over.blocks.iter().zip(&under.blocks);
        let rounds = rounds.filter(|(over, under)| over.is_valid() && under.is_valid());
        let ratios: Vec<f64> =
            rounds.filter_map(|(over, under)| Some(figure(over)? / figure(under)?)).collect();
        estimate(&ratios, self.plan.seed)
    }

    /// Estimates the ratio of CPU time per response.
    pub(crate) fn ratio(&self, over: &Entry, under: &Entry) -> Option<Estimate> {
        self.ratio_of(Block::cpu_us, over, under)
    }

    /// Estimates system calls per response of one entry minus those of another, round by round, where both were counted.
    pub(crate) fn syscalls_more(&self, of: &Entry, less: &Entry) -> Result<Estimate, String> {
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

/// Runs the comparison. Errors are those of our own server, whose responses give the null servers their length.
pub(crate) fn run(plan: Plan, programs: &Programs) -> Result<Outcome, String> {
    if let Some(server) = plan.servers.iter().find(|server| !server.serves(plan.scenario)) {
        return Err(format!("{} does not serve the scenario {}", server.name, plan.scenario.name));
    }
    let folder = Folder::create()?;
    // First of all: the validators of a new file are longer, and so is its response.
    folder.settle(plan.scenario)?;
    let mut bench = Bench { plan: &plan, programs, folder: &folder, null_bytes: 0 };
    if plan.servers.iter().any(|server| server.kind == Kind::Null) {
        bench.null_bytes = bench.reference_bytes()?;
    }
    let mut entries = entries(&plan.servers, |server| Identity::of(server, plan.scenario, programs));
    let mut random = fastrand::Rng::with_seed(plan.seed);
    for round in 1..=plan.rounds_max() {
        if round > plan.blocks && entries.iter().all(|entry| entry.has_enough(plan.blocks)) {
            break;
        }
        let mut order: Vec<usize> = (0..entries.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            let entry = &mut entries[at];
            let block = bench.order(entry.server).map_or_else(Block::failed, |order| order.run());
            let result = match block.cpu_us() {
                Some(cpu_us) => format!("{cpu_us:.3} µs CPU per response"),
                None => format!("INVALID: {}", block.reasons()),
            };
            crate::progress(&format!("{round}/{} {}: {result}", plan.blocks, entry.label));
            entry.blocks.push(block);
        }
    }
    for _ in 0..plan.syscall_rounds {
        for entry in entries.iter_mut().filter(|entry| !entry.is_control()) {
            entry.syscalls.push(bench.order(entry.server).and_then(|order| order.syscalls_per_response()));
        }
    }
    let null_bytes = bench.null_bytes;
    Ok(Outcome { plan, null_bytes, entries })
}

/// Returns the base, the base again, and the others, without blocks yet.
fn entries(servers: &[&'static ServerKind], identify: impl Fn(&ServerKind) -> Identity) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (number, server) in servers.iter().copied().enumerate() {
        for mark in if number == 0 { ["", AGAIN].as_slice() } else { &[""] } {
            let (label, identity) = (format!("{}{mark}", server.name), identify(server));
            entries.push(Entry { label, server, blocks: Vec::new(), syscalls: Vec::new(), identity });
        }
    }
    entries
}

struct Bench<'a> {
    plan: &'a Plan,
    programs: &'a Programs,
    folder: &'a Folder,
    null_bytes: u64,
}

impl Bench<'_> {
    fn order<'a>(&'a self, server: &'a ServerKind) -> Result<Order<'a>, String> {
        let address = free_address()?;
        let (programs, folder, null_bytes) = (self.programs, self.folder, self.null_bytes);
        Ok(Order {
            server,
            scenario: self.plan.scenario,
            place: Place { programs, folder, address, null_bytes, workers: 1 },
            seconds: self.plan.seconds,
            wait_percent_max: self.plan.wait_percent(),
        })
    }

    fn reference_bytes(&self) -> Result<u64, String> {
        let order = self.order(&REFERENCE)?;
        let _server = order.start()?;
        Ok(length(&order.probe()?))
    }
}

/// Parses a list of servers.
pub(crate) fn servers(names: &str) -> Result<Vec<&'static ServerKind>, String> {
    let servers = names.split(',').map(crate::server::find).collect::<Result<Vec<_>, _>>()?;
    let is_twice = |(at, server)| servers[..at].contains(server);
    match servers.iter().enumerate().find(|entry| is_twice(*entry)) {
        Some((_, server)) => Err(format!("`{}` is named twice; the base runs twice by itself", server.name)),
        None => Ok(servers),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::Tally;
    use crate::report;
    use crate::scenario;
    use crate::validity::{CLIENT_BUSY_PERCENT_MAX, Fault};

    /// Returns a block that costs so many microseconds per response.
    pub(crate) fn block(cpu_us: f64) -> Block {
        Block {
            tally: Tally { responses: 1_000, duration_us: 1_000_000, ..Tally::default() },
            server_cpu_ns: (cpu_us * 1e6) as u64,
            ..Block::default()
        }
    }

    pub(crate) fn failed() -> Block {
        Block::failed("planted".to_owned())
    }

    /// Returns a comparison with these blocks.
    pub(crate) fn outcome(base: Vec<Block>, other: Vec<Block>) -> Outcome {
        let servers = servers("null-epoll,shearwater-epoll").expect("servers");
        let mut entries = entries(&servers, |_| Identity::default());
        entries[0].blocks = base.clone();
        entries[1].blocks = base;
        entries[2].blocks = other;
        let scenario = scenario::find("plaintext").expect("a scenario");
        let (blocks, seconds, seed) = (3, 1, 1);
        let plan =
            Plan { scenario, servers, blocks, seconds, seed, wait_percent_max: None, syscall_rounds: 0 };
        Outcome { plan, null_bytes: 150, entries }
    }

    #[test]
    fn the_base_goes_first_and_runs_twice() {
        let labels: Vec<String> =
            outcome(vec![], vec![]).entries.into_iter().map(|entry| entry.label).collect();
        assert_eq!(labels, ["null-epoll", "null-epoll (again)", "shearwater-epoll"]);
        for wrong in ["nginx,nginx", "apache", ""] {
            assert!(servers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_without_a_valid_block_leaves_no_whole_comparison() {
        assert!(!outcome(vec![block(4.0)], vec![failed(); 3]).is_whole());
    }

    #[test]
    fn ratios_are_of_rounds_in_which_both_blocks_count() {
        let base = vec![block(4.0), failed(), block(8.0), block(100.0)];
        let outcome = outcome(base, vec![block(6.0), block(900.0), block(12.0), failed()]);
        let ratio = outcome.ratio(&outcome.entries[2], &outcome.entries[0]).expect("two rounds count");
        assert!((ratio.median - 1.5).abs() < 1e-9 && ratio.values == 2, "{ratio:?}");
    }

    #[test]
    fn an_invalid_block_is_shown_and_enters_no_figure() {
        let outcome = outcome(vec![block(4.0); 3], vec![block(5.0), failed(), block(5.0)]);
        assert_eq!(outcome.entries[2].figure(Block::cpu_us, 1).expect("two count").values, 2);
        let text = report::render(&outcome);
        assert!(text.contains("not counted: plaintext shearwater-epoll: 1 of 3: planted"), "{text}");
        assert!(text.contains("2/3"), "{text}");
        assert!(outcome.is_whole());
    }

    #[test]
    fn smaller_receive_buffers_than_requested_are_reported() {
        let of = |name: &str, granted: &[u64]| {
            let block = |bytes: &u64| {
                let mut block = block(4.0);
                block.tally.receive_buffer_bytes = *bytes;
                block
            };
            let blocks: Vec<Block> = granted.iter().map(block).collect();
            let mut outcome = outcome(blocks.clone(), blocks);
            outcome.plan.scenario = scenario::find(name).expect("a scenario");
            outcome
        };
        let note = "1m: receive buffers: asked 4000000 bytes, granted 212992; net.core.rmem_max bounds them";
        assert!(report::render(&of("1m", &[4_000_000, 212_992])).contains(note));
        assert_eq!(of("1m", &[4_000_000; 3]).receive_buffer_note(), None);
        assert_eq!(of("1m-auto", &[0; 3]).receive_buffer_note(), None);
    }

    #[test]
    fn further_rounds_replace_invalid_blocks_within_a_bound() {
        let disturbed = Block { faults: vec![Fault::Waited { percent: 9.0 }], ..block(4.0) };
        let outcome = outcome(vec![block(4.0), disturbed.clone(), block(4.0)], vec![failed(), failed()]);
        assert!(outcome.entries[0].has_enough(2) && !outcome.entries[0].has_enough(3));
        assert!(outcome.entries[2].has_enough(3), "a server that can't run is not retried");
        assert!(!Entry { blocks: vec![disturbed], ..outcome.entries[0].clone() }.has_enough(1));
        let plan = |blocks| Plan { blocks, ..outcome.plan.clone() };
        assert_eq!([1, 3, 16].map(|blocks| plan(blocks).rounds_max()), [1, 4, 24]);
    }

    #[test]
    fn a_busy_client_voids_requests_per_second_but_not_cpu_per_response() {
        let bound = Block { client_busy_percent: CLIENT_BUSY_PERCENT_MAX, ..block(5.0) };
        let outcome = outcome(vec![block(4.0)], vec![bound]);
        assert!(outcome.entries[0].rps(1).is_some() && outcome.entries[2].rps(1).is_none());
        assert!(outcome.entries[2].figure(Block::cpu_us, 1).is_some());
        assert!(report::render(&outcome).contains("client-bound"));
    }

    #[test]
    fn only_churn_may_keep_a_server_waiting() {
        let outcome = outcome(vec![], vec![]);
        let wait = |name| {
            Plan { scenario: scenario::find(name).expect("one"), ..outcome.plan.clone() }.wait_percent()
        };
        assert!(wait("1k-churn") > wait("1k"));
    }
}
