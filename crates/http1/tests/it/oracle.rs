//! A short run of the differential test; the example `differential` runs longer.

use crate::differential::{Outcome, run};

const INPUTS: u64 = 200_000;

#[test]
fn httparse_agrees_or_the_disagreement_is_of_a_listed_kind() {
    let seed = match std::env::var("SHEARWATER_SEED") {
        Ok(text) => text.parse().expect("SHEARWATER_SEED is a number"),
        Err(_) => 1,
    };
    println!("seed {seed}");
    let tally = run(seed, INPUTS, |_| {}).unwrap_or_else(|fault| panic!("{fault}"));
    println!("{tally}");
    for outcome in Outcome::ALL {
        assert!(
            tally.of(*outcome) >= INPUTS / 20_000,
            "{outcome:?} hardly occurred: the generator has lost its teeth"
        );
    }
}
