//! The threads that visit: each has some connections side by side, until enough requests and connections were made.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::kind::{KINDS, Kind, draw, index};
use super::script::{Host, Script, Writer};
use super::site::Site;
use super::slow;
use super::tally::Tally;
use super::visit::{Buffer, Visit};
use crate::harness::answer::Fault;
use crate::harness::random::Random;

/// Connections that a thread has side by side.
const SIDE_BY_SIDE: usize = 16;
/// A thread gives up after so many wrong visits: the soak has failed and shows examples.
const WRONG_MAX: usize = 100;
/// Where requests lag behind connections, one visit in so many is a long one.
const LONG_ONE_IN: u64 = 16;
/// How often the progress is told.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// How often the threads are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How much is to be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    /// Answers to get.
    pub(super) requests: u64,
    /// Connections to open.
    pub(super) connections: u64,
    /// At the latest then it ends, done or not.
    pub(super) seconds_max: u64,
    /// Threads that visit, beside the one with the slow clients.
    pub(super) threads: u64,
    /// Seed of everything random.
    pub(super) seed: u64,
}

/// What all threads have done together.
#[derive(Debug, Default)]
struct Done {
    requests: AtomicU64,
    connections: AtomicU64,
    stop: AtomicBool,
}

/// Visits both servers until `amount` is done. `name` stands before the progress.
pub(super) fn visit_all(site: &Site, amount: &Amount, name: &str) -> (Tally, Duration) {
    let done = Done::default();
    let begun = Instant::now();
    let tally = std::thread::scope(|scope| {
        let done = &done;
        let mut threads: Vec<_> =
            (1..=amount.threads).map(|part| scope.spawn(move || work(site, amount, done, part))).collect();
        let slow = scope.spawn(move || slow::work(site, Random::stream(amount.seed, 0), &done.stop));
        watch(&threads, amount, done, name);
        done.stop.store(true, Ordering::Relaxed);
        threads.push(slow);
        let mut total = Tally::default();
        for thread in threads {
            match thread.join() {
                Ok(tally) => total.add(tally),
                Err(_) => total.wrong.push("a client thread panicked".to_owned()),
            }
        }
        total
    });
    (tally, begun.elapsed())
}

/// Tells the progress until the threads have ended or the time is over.
fn watch<T>(threads: &[std::thread::ScopedJoinHandle<'_, T>], amount: &Amount, done: &Done, name: &str) {
    let begun = Instant::now();
    let mut told = begun;
    while !threads.iter().all(|thread| thread.is_finished()) {
        if begun.elapsed() >= Duration::from_secs(amount.seconds_max) {
            return;
        }
        if told.elapsed() >= PROGRESS_EVERY {
            told = Instant::now();
            let (requests, connections) = done.now();
            eprintln!(
                "{name}: {:.0} s, {requests} of {} requests, {connections} of {} connections",
                begun.elapsed().as_secs_f64(),
                amount.requests,
                amount.connections,
            );
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

impl Done {
    fn now(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.connections.load(Ordering::Relaxed))
    }

    fn add(&self, before: (u64, u64), tally: &Tally) {
        self.requests.fetch_add(tally.right - before.0, Ordering::Relaxed);
        self.connections.fetch_add(tally.connections - before.1, Ordering::Relaxed);
    }
}

/// One thread of many.
struct Worker<'a> {
    writer: Writer<'a>,
    random: Random,
    buffer: Buffer,
    addresses: [SocketAddr; 2],
    tally: Tally,
}

fn work(site: &Site, amount: &Amount, done: &Done, part: u64) -> Tally {
    let random = Random::stream(amount.seed, 2 * part);
    let mut worker = Worker {
        writer: Writer {
            catalogue: &site.catalogue,
            bad: site.bad(),
            random: Random::stream(amount.seed, 2 * part + 1),
        },
        random,
        buffer: Buffer::new(),
        addresses: site.addresses(),
        tally: Tally::default(),
    };
    while !done.stop.load(Ordering::Relaxed) && worker.tally.wrong.len() < WRONG_MAX {
        let so_far = done.now();
        if so_far.0 >= amount.requests && so_far.1 >= amount.connections {
            break;
        }
        let before = (worker.tally.right, worker.tally.connections);
        worker.visit_some(amount, so_far);
        done.add(before, &worker.tally);
    }
    worker.tally
}

impl<'a> Worker<'a> {
    /// A kind that brings both counts to their ends together.
    fn choose(&mut self, amount: &Amount, so_far: (u64, u64)) -> Kind {
        let lags = so_far.0.saturating_mul(amount.connections) < so_far.1.saturating_mul(amount.requests);
        let few_left = so_far.1 >= amount.connections;
        if few_left || (lags && self.random.below(LONG_ONE_IN) == 0) {
            Kind::KeptLong
        } else {
            draw(&mut self.random)
        }
    }

    /// Opens some connections, and goes on with all of them round by round.
    fn visit_some(&mut self, amount: &Amount, so_far: (u64, u64)) {
        let mut visits: Vec<Option<(Kind, Visit<'a>)>> = Vec::with_capacity(SIDE_BY_SIDE);
        for _ in 0..SIDE_BY_SIDE {
            let kind = self.choose(amount, so_far);
            visits.push(self.open(kind).map(|visit| (kind, visit)));
        }
        let rounds = visits.iter().flatten().map(|(_, visit)| visit.rounds()).max().unwrap_or(0);
        for round in 0..rounds {
            let (tally, buffer) = (&mut self.tally, &mut self.buffer);
            for place in &mut visits {
                step(place, round, tally, |visit, tally| visit.send(round, tally));
            }
            for place in &mut visits {
                step(place, round, tally, |visit, tally| visit.read(buffer, tally));
            }
        }
        for (kind, visit) in visits.into_iter().flatten() {
            let ended = visit.end(&mut self.buffer, &mut self.tally);
            note(&mut self.tally, kind, ended);
        }
    }

    fn open(&mut self, kind: Kind) -> Option<Visit<'a>> {
        let script: Script<'a> = self.writer.write(kind);
        let [program, example] = self.addresses;
        let address = if script.host == Host::Program { program } else { example };
        match Visit::open(address, script) {
            Ok(visit) => {
                self.tally.connections += 1;
                self.tally.kinds[index(kind)] += 1;
                Some(visit)
            }
            Err(fault) => {
                note(&mut self.tally, kind, Err(fault));
                None
            }
        }
    }
}

/// Does something with the visit in `place` if it has this round; a visit that fails leaves its place.
fn step<'a>(
    place: &mut Option<(Kind, Visit<'a>)>,
    round: usize,
    tally: &mut Tally,
    mut act: impl FnMut(&mut Visit<'a>, &mut Tally) -> Result<(), Fault>,
) {
    let Some((kind, visit)) = place else { return };
    if round >= visit.rounds() {
        return;
    }
    let kind = *kind;
    let acted = act(visit, tally);
    if acted.is_err() {
        note(tally, kind, acted);
        *place = None;
    }
}

fn note(tally: &mut Tally, kind: Kind, outcome: Result<(), Fault>) {
    if let Err(fault) = outcome {
        tally.wrong.push(format!("{}: {fault}", KINDS[index(kind)].1));
    }
}
