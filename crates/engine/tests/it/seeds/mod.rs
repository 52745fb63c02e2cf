//! Random conversations on a rough kernel, each from one seed: ten thousand whose responses are all known, some of
//! them with TLS and over HTTP/2 too, and some hundreds with deferred handlers.
//!
//! `SHEARWATER_SEED=7 cargo test -p shearwater-engine seeds::random -- --nocapture` runs one and prints it;
//! `SHEARWATER_SEEDS=200000` runs more (best with `--release`).

mod random;
mod requests;

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use shearwater_engine::io::sim::Sim;

use crate::harness::{Choices, Conversation, SecureSim};
use crate::http2::scripted;

/// Seeds of an ordinary run of the tests.
const SEEDS: u64 = 10_000;
/// Seeds of the same conversations with TLS.
const SECURE_SEEDS: u64 = 2000;
/// Seeds of the same conversations over HTTP/2.
const HTTP2_SEEDS: u64 = 2000;
/// Seeds with deferred handlers, which take longer.
pub(crate) const DEFERRED_SEEDS: u64 = 300;
/// Seeds that a thread takes at once.
const SEEDS_AT_ONCE: u64 = 16;

fn conversation(seed: u64) -> Conversation {
    random::conversation(&mut Choices::new(seed), seed, Vec::new())
}

#[test]
fn random_conversations_end_well() {
    match number_of("SHEARWATER_SEED") {
        Some(seed) => replay(seed),
        None => run_all(SEEDS, |seed| drop(conversation(seed).run())),
    }
}

/// Records change nothing of what a client sees.
#[test]
fn random_conversations_with_tls_end_well() {
    run_or_replay(SECURE_SEEDS, |seed| drop(conversation(seed).run_on::<SecureSim>()));
}

/// Seed 25 has a FIN in the turn in which a handler responds, and a send that is short.
#[test]
fn random_conversations_over_http2_end_well() {
    run_or_replay(HTTP2_SEEDS, |seed| drop(scripted::run(&conversation(seed))));
}

/// Nothing is left when the clients are gone.
#[test]
fn random_clients_leave_nothing_behind() {
    run_or_replay(DEFERRED_SEEDS, requests::leave_nothing::<Sim>);
}

#[test]
fn random_clients_with_tls_leave_nothing_behind() {
    run_or_replay(DEFERRED_SEEDS, requests::leave_nothing::<SecureSim>);
}

/// Each request gets its own response, in order, until one says that it is the last.
#[test]
fn random_requests_get_their_responses_in_order() {
    run_or_replay(DEFERRED_SEEDS, requests::expect_responses::<Sim>);
}

#[test]
fn random_requests_with_tls_get_their_responses_in_order() {
    run_or_replay(DEFERRED_SEEDS, requests::expect_responses::<SecureSim>);
}

pub(crate) fn run_or_replay(usual: u64, run_one: fn(u64)) {
    match number_of("SHEARWATER_SEED") {
        Some(seed) => run_one(seed),
        None => run_all(usual, run_one),
    }
}

/// Runs `run_one` with seeds on all processors, until none is left or one has failed.
#[track_caller]
fn run_all(usual: u64, run_one: fn(u64)) {
    let seeds = number_of("SHEARWATER_SEEDS").unwrap_or(usual);
    let next = AtomicU64::new(0);
    let failed = Mutex::new(None);
    let run = || {
        loop {
            let first = next.fetch_add(SEEDS_AT_ONCE, Ordering::Relaxed);
            for seed in first..seeds.min(first + SEEDS_AT_ONCE) {
                if panic::catch_unwind(AssertUnwindSafe(|| run_one(seed))).is_err() {
                    failed.lock().expect("no thread panics while it holds the lock").get_or_insert(seed);
                    next.store(seeds, Ordering::Relaxed);
                    return;
                }
            }
            if first >= seeds {
                return;
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run))));
    if let Some(seed) = failed.into_inner().expect("no thread panics while it holds the lock") {
        panic!(
            "seed {seed} failed; replay: SHEARWATER_SEED={seed} cargo test -p shearwater-engine seeds -- --nocapture"
        );
    }
    println!("seeds 0 to {} have ended well", seeds - 1);
}

/// Prints one conversation and runs it, twice.
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
