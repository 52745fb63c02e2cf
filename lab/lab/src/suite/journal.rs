//! Rounds of an unfinished step, written one by one under their names, so that a suite that was killed loses none.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Error, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::bench::MeasuredRound;

#[derive(Debug)]
pub(crate) struct Journal {
    /// Rounds of an earlier run.
    rounds: HashMap<String, MeasuredRound>,
    file: Mutex<File>,
}

impl Journal {
    /// Opens a journal with the rounds that it has. A line that was cut off is no round.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let failed = |error: Error| format!("{}: {error}", path.display());
        let mut file = File::options().append(true).create(true).open(path).map_err(failed)?;
        let bytes = fs::read(path).map_err(failed)?;
        if bytes.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        let lines = bytes.split(|byte| *byte == b'\n');
        let rounds = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Ok(Self { rounds, file: Mutex::new(file) })
    }

    /// Returns the number of rounds that need not be measured again.
    pub(super) fn len(&self) -> usize {
        self.rounds.len()
    }

    /// Returns the recorded round of this name, or measures and records it.
    pub(crate) fn round(&self, name: &str, measure: impl FnOnce() -> MeasuredRound) -> MeasuredRound {
        if let Some(round) = self.rounds.get(name) {
            return round.clone();
        }
        let round = measure();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let line = serde_json::to_string(&(name, &round)).map_err(Error::from);
        if let Err(why) = line.and_then(|line| file.write_all((line + "\n").as_bytes())) {
            crate::progress(&format!("this round will be measured again after a resume: {why}"));
        }
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_step_measures_only_rounds_that_are_missing() {
        let folder = testkit::TestFolder::new();
        let path = folder.at("a.rounds");
        let round = |value: f64| -> MeasuredRound { Ok([("cpu_us", value)].into()).into() };
        let first = Journal::open(&path).expect("a journal");
        first.round("a 1", || round(1.5));
        first.round("b 1", || Err("planted".to_owned()).into());
        first.round("c 1", || round(f64::NAN));
        // Killed while it wrote.
        let cut = fs::read_to_string(&path).expect("it was written") + "[\"a 2\",{\"rou";
        fs::write(&path, cut).expect("a file");

        let second = Journal::open(&path).expect("a journal");
        let unmeasured = || -> MeasuredRound { panic!("it is recorded") };
        assert_eq!(second.round("other", || round(9.0)).figure("cpu_us"), Some(9.0));
        // Whatever was asked for before, recorded rounds are used.
        assert_eq!(second.round("b 1", unmeasured).faults, ["planted"]);
        assert_eq!(second.round("a 1", unmeasured).figure("cpu_us"), Some(1.5));
        assert!(second.round("c 1", unmeasured).figures.is_empty(), "no number is no figure");
        second.round("a 2", || round(2.5));
        let third = Journal::open(&path).expect("a journal");
        assert_eq!((third.len(), third.round("a 2", unmeasured).figure("cpu_us")), (5, Some(2.5)));
    }
}
