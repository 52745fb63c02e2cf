//! Random conversations on a rough kernel, each from one seed: ten thousand whose every response is known, and some hundreds with
//! handlers that wait, in two ways.
//!
//! `SHEARWATER_SEED=7 cargo test -p shearwater-engine seeds::random -- --nocapture` holds one and shows what happened;
//! `SHEARWATER_SEEDS=200000` holds more (best with `--release`).

mod asked;
mod leaving;
mod random;
mod responding;

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::harness::Conversation;
use crate::harness::dice::Dice;

/// Seeds of an ordinary run of the tests.
const SEEDS: u64 = 10_000;
/// Of those with handlers that wait, which take longer.
const WAITING_SEEDS: u64 = 300;
/// Seeds that a thread takes at once.
const SEEDS_AT_ONCE: u64 = 16;

fn conversation(seed: u64) -> Conversation {
    random::conversation(&mut Dice::new(seed), seed, Vec::new())
}

#[test]
fn random_conversations_end_well() {
    if let Some(seed) = number_of("SHEARWATER_SEED") {
        return replay(seed);
    }
    hold_all(SEEDS, |seed| drop(conversation(seed).run()));
}

/// Whatever clients and handlers do: nothing is left when the clients are gone.
#[test]
fn random_clients_leave_nothing_behind() {
    hold_or_replay(leaving::hold);
}

/// Whatever it takes to response: each request gets its own response, in order, until one says that it is the last.
#[test]
fn random_requests_are_responded_in_order() {
    hold_or_replay(responding::hold);
}

fn hold_or_replay(hold_one: fn(u64)) {
    match number_of("SHEARWATER_SEED") {
        Some(seed) => hold_one(seed),
        None => hold_all(WAITING_SEEDS, hold_one),
    }
}

/// Holds what each seed says, on all processors.
#[track_caller]
fn hold_all(usual: u64, hold_one: fn(u64)) {
    let seeds = number_of("SHEARWATER_SEEDS").unwrap_or(usual);
    let next = AtomicU64::new(0);
    let failed = Mutex::new(None);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| hold(hold_one, &next, seeds, &failed));
        }
    });
    let failed = failed.into_inner().expect("no thread panics while it holds the lock");
    if let Some(seed) = failed {
        panic!(
            "seed {seed} failed; replay: SHEARWATER_SEED={seed} cargo test -p shearwater-engine seeds -- --nocapture"
        );
    }
    println!("seeds 0 to {} have ended well", seeds - 1);
}

/// Holds the conversations of seeds until none is left or one has failed.
fn hold(hold_one: fn(u64), next: &AtomicU64, seeds: u64, failed: &Mutex<Option<u64>>) {
    loop {
        let first = next.fetch_add(SEEDS_AT_ONCE, Ordering::Relaxed);
        if first >= seeds {
            return;
        }
        for seed in first..seeds.min(first + SEEDS_AT_ONCE) {
            let held = panic::catch_unwind(AssertUnwindSafe(|| hold_one(seed)));
            if held.is_err() {
                failed.lock().expect("no thread panics while it holds the lock").get_or_insert(seed);
                next.store(seeds, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// Shows one conversation and holds it, twice.
fn replay(seed: u64) {
    let conversation = conversation(seed);
    println!("seed {seed}: {:#?}\nrequests: {:#?}", conversation.setting, conversation.clients);
    conversation.steps.iter().for_each(|(client, step)| println!("client {client}: {step:?}"));
    println!("ends: {:?}, {:?}", conversation.ends, conversation.trouble);
    let fingerprint = conversation.run().net.fingerprint();
    let world = conversation.run();
    for operation in world.net.trace() {
        println!("{operation:?}");
    }
    assert_eq!(world.net.fingerprint(), fingerprint, "the same seed gives the same run");
}

#[test]
fn a_seed_replays() {
    let fingerprints = |seed| conversation(seed).run().net.fingerprint();
    for seed in 0..20 {
        assert_eq!(fingerprints(seed), fingerprints(seed), "seed {seed}");
    }
    assert_ne!(fingerprints(0), fingerprints(1));
}

fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}
