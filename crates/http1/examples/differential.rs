//! Compares the head parser with httparse on many generated inputs:
//! `cargo run --release -p shearwater-http1 --example differential -- --inputs 10000000 --seed 1`.
//! Exits with status 1 and the input at the first disagreement of an unlisted kind.

#[path = "../tests/it/differential/mod.rs"]
mod differential;

use std::process::ExitCode;
use std::time::Instant;

const INPUTS_DEFAULT: u64 = 1_000_000;
const SEED_DEFAULT: u64 = 1;
/// Inputs between two lines of progress.
const PROGRESS_INPUTS: u64 = 1_000_000;

fn main() -> ExitCode {
    let (mut inputs, mut seed) = (INPUTS_DEFAULT, SEED_DEFAULT);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|text| text.parse().ok());
        match (name.as_str(), value) {
            ("--inputs", Some(value)) => inputs = value,
            ("--seed", Some(value)) => seed = value,
            _ => {
                eprintln!("usage: differential [--inputs NUMBER] [--seed NUMBER]");
                return ExitCode::from(2);
            }
        }
    }
    let started = Instant::now();
    let progress = |done: u64| {
        if done.is_multiple_of(PROGRESS_INPUTS) {
            eprintln!("{done} of {inputs} inputs, {:.0} s", started.elapsed().as_secs_f64());
        }
    };
    match differential::run(seed, inputs, progress) {
        Ok(tally) => {
            print!("seed {seed}, {inputs} inputs, every disagreement of a listed kind\n{tally}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
