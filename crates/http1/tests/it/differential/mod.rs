//! Compares the head parser with httparse: generated requests with structural damage, and a comparison in
//! which every disagreement must be of a listed kind.

mod compare;
mod generate;
mod oracle;

pub(crate) use compare::{Comparer, OracleComparison};
pub(crate) use generate::Generator;

/// Number of occurrences of each outcome.
#[derive(Debug, Default)]
pub(crate) struct OracleTally {
    counts: std::collections::BTreeMap<OracleComparison, u64>,
}

impl OracleTally {
    pub(crate) fn add(&mut self, outcome: OracleComparison) {
        *self.counts.entry(outcome).or_default() += 1;
    }

    pub(crate) fn of(&self, outcome: OracleComparison) -> u64 {
        self.counts.get(&outcome).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for OracleTally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for outcome in OracleComparison::ALL {
            writeln!(formatter, "{:>12}  {outcome:?}: {}", self.of(*outcome), outcome.reason())?;
        }
        Ok(())
    }
}

/// Compares `inputs` generated inputs; `progress` is called with the number done so far. The error describes
/// the first input whose outcome is not listed.
pub(crate) fn run(seed: u64, inputs: u64, mut progress: impl FnMut(u64)) -> Result<OracleTally, String> {
    let mut generator = Generator::new(seed);
    let mut comparer = Comparer::new(seed);
    let mut tally = OracleTally::default();
    let mut input = Vec::new();
    for done in 0..inputs {
        input.clear();
        generator.generate(&mut input);
        let outcome = comparer
            .compare(&input)
            .map_err(|fault| format!("seed {seed}, input {done}: {fault}\n\"{}\"", input.escape_ascii()))?;
        tally.add(outcome);
        progress(done + 1);
    }
    Ok(tally)
}
