//! First in, first out against last in, first out: handlers that wait many turns each, so many at once that a turn of the worker has
//! hundreds of them to call. Blocks of both in turn, in random order, and the first one twice: what its two names differ by is noise.

use std::net::SocketAddr;

use crate::binaries::Binaries;
use crate::client::together::Together;
use crate::counts::Counts;
use crate::dice::Dice;
use crate::probe;
use crate::process::{Launch, Server, free_address};
use crate::report::{align, show};
use crate::schedstat;
use crate::site::Site;
use crate::statistics::{Estimate, estimate};
use crate::validity::{WAIT_PERCENT_MAX, percent};

/// What is asked for: a handler that lets the others have their turn many times.
const TARGET: &str = "/manyturns";
/// Where the server says what it has counted, and how that line begins.
const COUNTS: &str = "/counts";
const COUNTS_MARK: &str = "kinds";
/// With fewer ready in a turn there is nothing to be put in order: the block is void.
pub const READY_MIN: f64 = 100.0;

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Requests under way at once, each on a connection of its own.
    pub connections: u32,
    /// Rounds; each order has one block in each.
    pub blocks: u32,
    /// Length of a block.
    pub seconds: u32,
    /// For the order of blocks and the intervals.
    pub seed: u64,
    /// A block is void if its server waited for its core longer, in per cent of the window.
    pub wait_percent_max: Option<f64>,
}

/// The orders by the name that the server knows each by; the first one again.
const ENTRIES: [&str; 3] = ["fifo", "fifo", "lifo"];
const FIFO: usize = 0;
const AGAIN: usize = 1;
const LIFO: usize = 2;

/// What a block has shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Answers in a second.
    pub per_second: f64,
    /// Half of them came within, in milliseconds.
    pub p50_ms: f64,
    /// 999 of 1,000.
    pub p999_ms: f64,
    /// CPU time of the server per answer, in microseconds.
    pub cpu_us: f64,
    /// Tasks ready in a turn, on average.
    pub ready: f64,
}

/// Title and value of each figure.
type Figure = (&'static str, fn(&Figures) -> f64);
const FIGURES: [Figure; 5] = [
    ("answers a second", |figures| figures.per_second),
    ("p50 ms", |figures| figures.p50_ms),
    ("p99.9 ms", |figures| figures.p999_ms),
    ("µs CPU an answer", |figures| figures.cpu_us),
    ("tasks ready a turn", |figures| figures.ready),
];

/// All blocks, by round.
#[derive(Debug, Clone)]
pub struct Outcome {
    plan: Plan,
    rounds: Vec<[Result<Figures, String>; 3]>,
}

/// Runs all blocks.
///
/// # Errors
/// The run's folder can't be made. What goes wrong with a block is in it.
pub fn run(plan: Plan, binaries: &Binaries, say: &dyn Fn(&str)) -> Result<Outcome, String> {
    crate::idle::raise_descriptor_limit();
    let site = Site::create().map_err(|error| format!("creating the site: {error}"))?;
    let mut dice = Dice::new(plan.seed);
    let mut port = 0;
    let mut rounds = Vec::new();
    for round in 1..=plan.blocks {
        let mut turns = [FIFO, AGAIN, LIFO];
        dice.shuffle(&mut turns);
        let mut blocks = [const { Err(String::new()) }; 3];
        for at in turns {
            blocks[at] = free_address(&mut port).and_then(|address| {
                let block = Block { plan: &plan, order: ENTRIES[at], address };
                block.run(binaries, &site)
            });
            let text = match &blocks[at] {
                Ok(figures) => format!("{:.0} a second, {:.0} ready", figures.per_second, figures.ready),
                Err(reason) => format!("VOID: {reason}"),
            };
            say(&format!("{round}/{} {}: {text}", plan.blocks, ENTRIES[at]));
        }
        rounds.push(blocks);
    }
    Ok(Outcome { plan, rounds })
}

struct Block<'a> {
    plan: &'a Plan,
    order: &'static str,
    address: SocketAddr,
}

impl Block<'_> {
    fn run(&self, binaries: &Binaries, site: &Site) -> Result<Figures, String> {
        let mut server =
            Server::start(&self.launch(binaries), self.address, &site.folder().join("server.log"))?;
        let answer = probe::get(self.address, TARGET)?;
        if answer.status != 200 || answer.body != crate::scenario::PLAINTEXT.as_bytes() {
            return Err(format!("probe: a {} with {} bytes", answer.status, answer.body.len()));
        }
        server.find_processes();
        let (turns_before, ready_before) = self.counts()?;
        let before = schedstat::of_processes(server.ids())?;
        let counted = self.client(answer.bytes)?.counts(Together::parse)?;
        let spent = schedstat::of_processes(server.ids())?.since(&before)?;
        let (turns, ready) = self.counts()?;
        let ready = (ready - ready_before) as f64 / (turns - turns_before).max(1) as f64;
        let waited_percent = percent(spent.wait_ns, counted.duration_us * 1000);
        self.judge(counted, ready, waited_percent)?;
        Ok(Figures {
            per_second: counted.answers as f64 / (counted.duration_us as f64 / 1e6),
            p50_ms: counted.p50_us as f64 / 1e3,
            p999_ms: counted.p999_us as f64 / 1e3,
            cpu_us: spent.cpu_ns as f64 / 1e3 / counted.answers as f64,
            ready,
        })
    }

    /// Whether it counts.
    fn judge(&self, counted: Together, ready: f64, waited_percent: f64) -> Result<(), String> {
        let waited_max = self.plan.wait_percent_max.unwrap_or(WAIT_PERCENT_MAX);
        match counted {
            _ if counted.errors > 0 => Err(format!("{} errors: {counted}", counted.errors)),
            _ if counted.answers == 0 => Err("no answers".to_owned()),
            _ if ready < READY_MIN => {
                Err(format!("{ready:.0} tasks ready in a turn, {READY_MIN:.0} have to be"))
            }
            _ if waited_percent > waited_max => {
                Err(format!("waited for its CPU {waited_percent:.1} % of the time"))
            }
            _ => Ok(()),
        }
    }

    fn launch(&self, binaries: &Binaries) -> Launch {
        let environment = vec![
            ("SHEARWATER_LISTEN", self.address.to_string()),
            ("SHEARWATER_DRIVER", "epoll".to_owned()),
            ("SHEARWATER_WORKERS", "1".to_owned()),
            ("SHEARWATER_ORDER", self.order.to_owned()),
        ];
        Launch { program: binaries.kinds(), arguments: Vec::new(), environment }
    }

    /// Turns with tasks so far, and tasks that were ready in them.
    fn counts(&self) -> Result<(u64, u64), String> {
        let said = String::from_utf8_lossy(&probe::get(self.address, COUNTS)?.body).into_owned();
        let counts = Counts::find(&said, COUNTS_MARK);
        let both = counts.and_then(|counts| Some((counts.count("turns")?, counts.count("ready")?)));
        both.ok_or_else(|| format!("{COUNTS} says {said:?}"))
    }

    fn client(&self, bytes: u64) -> Result<Launch, String> {
        let (address, Plan { connections, seconds, .. }) = (self.address, self.plan);
        Launch::of_client(&format!(
            "together-client --address {address} --target {TARGET} --bytes {bytes} --connections {connections} \
             --seconds {seconds}"
        ))
    }
}

impl Outcome {
    fn values(&self, entry: usize, value: fn(&Figures) -> f64) -> Option<Estimate> {
        let blocks = self.rounds.iter().filter_map(|round| round[entry].as_ref().ok());
        estimate(&blocks.map(value).collect::<Vec<_>>(), self.plan.seed)
    }

    /// One entry's figure over that of the first, round by round where both blocks count.
    fn ratio(&self, entry: usize, value: fn(&Figures) -> f64) -> Option<Estimate> {
        let ratios = self
            .rounds
            .iter()
            .filter_map(|round| Some(value(round[entry].as_ref().ok()?) / value(round[FIFO].as_ref().ok()?)));
        estimate(&ratios.collect::<Vec<_>>(), self.plan.seed)
    }

    /// Whether half of the rounds at least have all their blocks.
    pub fn is_whole(&self) -> bool {
        let whole = self.rounds.iter().filter(|round| round.iter().all(Result::is_ok)).count();
        whole > 0 && whole * 2 >= self.rounds.len()
    }

    /// The table.
    pub fn text(&self) -> String {
        let titles = ["figure", "fifo", "lifo", "lifo ÷ fifo", "fifo again ÷ fifo (noise)"];
        let mut rows = vec![titles.map(str::to_owned)];
        let shown = |figure: Option<Estimate>| figure.map_or_else(|| "-".to_owned(), show);
        for (name, value) in FIGURES {
            let (fifo, lifo) = (self.values(FIFO, value), self.values(LIFO, value));
            let ratios = (self.ratio(LIFO, value), self.ratio(AGAIN, value));
            rows.push([name.to_owned(), shown(fifo), shown(lifo), shown(ratios.0), shown(ratios.1)]);
        }
        let void = |entry: usize| self.rounds.iter().filter(|round| round[entry].is_err()).count();
        format!(
            "{} connections, each with a request for {TARGET} under way; {} rounds of {} s, seed {}\n\n{}\nMedians, [bootstrap 95 % \
             interval]; ratios round by round. Void blocks: {} of fifo, {} of fifo again, {} of lifo.\n",
            self.plan.connections,
            self.plan.blocks,
            self.plan.seconds,
            self.plan.seed,
            align(&rows),
            void(FIFO),
            void(AGAIN),
            void(LIFO)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Figures, Outcome, Plan, READY_MIN};
    use crate::client::together::Together;

    const PLAN: Plan = Plan { connections: 1000, blocks: 4, seconds: 1, seed: 1, wait_percent_max: None };

    fn figures(per_second: f64) -> Result<Figures, String> {
        Ok(Figures { per_second, p50_ms: 1.0, p999_ms: 2.0, cpu_us: 3.0, ready: 400.0 })
    }

    #[test]
    fn a_block_with_too_little_to_order_is_void() {
        let block = Block { plan: &PLAN, order: "fifo", address: ([127, 0, 0, 1], 1).into() };
        let counted = Together { answers: 10, duration_us: 5, ..Together::default() };
        assert_eq!(block.judge(counted, READY_MIN, 0.5), Ok(()));
        assert!(block.judge(counted, READY_MIN - 1.0, 0.5).is_err());
        assert!(block.judge(counted, READY_MIN, 1.5).is_err());
        assert!(block.judge(Together { errors: 1, ..counted }, READY_MIN, 0.5).is_err());
        assert!(block.judge(Together { answers: 0, ..counted }, READY_MIN, 0.5).is_err());
    }

    #[test]
    fn ratios_are_of_rounds_in_which_both_count() {
        let void = || Err("planted".to_owned());
        let rounds = vec![
            [figures(100.0), figures(101.0), figures(110.0)],
            [figures(200.0), void(), figures(220.0)],
            [void(), figures(1.0), figures(999.0)],
            [figures(300.0), figures(303.0), figures(330.0)],
        ];
        let outcome = Outcome { plan: PLAN, rounds };
        let ratio = outcome.ratio(super::LIFO, |figures| figures.per_second).expect("three rounds");
        assert!((ratio.median - 1.1).abs() < 1e-9 && ratio.values == 3, "{ratio:?}");
        assert!(outcome.is_whole(), "two of four");
        assert!(outcome.text().contains("1 of fifo, 1 of fifo again, 0 of lifo"), "{}", outcome.text());
        let rounds = vec![[figures(1.0), void(), figures(1.0)]; 2];
        assert!(!Outcome { plan: PLAN, rounds }.is_whole());
    }
}
