//! The crate's behaviour, seen from outside.

mod corpus;
mod differential;
mod encode;
mod heads;
mod properties;
mod session;

use differential::{OracleComparison, run};

/// Inputs of a short run of the differential test; the example `differential` runs longer.
const INPUTS: u64 = 200_000;

#[test]
fn agrees_with_httparse_or_disagrees_for_a_listed_reason() {
    let seed = match std::env::var("SHEARWATER_SEED") {
        Ok(text) => text.parse().expect("SHEARWATER_SEED is a number"),
        Err(_) => 1,
    };
    println!("seed {seed}");
    let tally = run(seed, INPUTS, |_| {}).unwrap_or_else(|fault| panic!("{fault}"));
    println!("{tally}");
    for outcome in OracleComparison::ALL {
        assert!(
            tally.of(*outcome) >= INPUTS / 20_000,
            "{outcome:?} hardly occurred: the generator is too tame"
        );
    }
}
