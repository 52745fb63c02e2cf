//! Determinism, and equal results on rough kernels.

use shearwater_io::sim::SimOptions;

use super::echo::{converse, said};

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        let options = || SimOptions { resets: 0.01, accept_errors: 0.1, ..SimOptions::rough(seed) };
        assert_eq!(converse(options()), converse(options()), "seed {seed}");
    }
}

#[test]
fn another_seed_gives_another_run() {
    let mut fingerprints: Vec<u64> =
        (0..50).map(|seed| converse(SimOptions::rough(seed)).fingerprint).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 50);
}

#[test]
fn no_rough_kernel_changes_what_is_said() {
    for seed in 0..500 {
        for echoed in converse(SimOptions::rough(seed)).echoed {
            assert_eq!(echoed, said(), "seed {seed}");
        }
    }
}

#[test]
fn certain_hindrance_does_not_stop_a_conversation() {
    let options = SimOptions {
        short_reads: 1.0,
        short_writes: 1.0,
        eagain: 1.0,
        delays: 1.0,
        reorder_within_turn: 1.0,
        late_completions: 1.0,
        data_after_pause: 1.0,
        fin_with_data: 0.0,
        ..SimOptions::default()
    };
    for echoed in converse(options).echoed {
        assert_eq!(echoed, said());
    }
}

#[test]
fn broken_connections_leave_nothing_behind() {
    let mut complete = 0;
    for seed in 0..300 {
        let options = SimOptions { resets: 0.02, accept_errors: 0.2, ..SimOptions::rough(seed) };
        for echoed in converse(options).echoed {
            assert!(said().starts_with(&echoed), "seed {seed}: echoed bytes that were not sent");
            complete += usize::from(echoed == said());
        }
    }
    assert!((1..900).contains(&complete), "some conversations break, some don't: {complete} of 900 complete");
}
