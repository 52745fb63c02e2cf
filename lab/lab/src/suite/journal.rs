//! Rounds of an unfinished step, written one by one, so that a suite that was killed loses none. Orders come from a seed and rates
//! from rounds, so a resumed step asks for the same rounds again, in the same order.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::bench::MeasuredRound;

#[derive(Debug)]
pub(crate) struct Journal {
    /// Rounds of an earlier run that have not been asked for, and the file.
    state: Mutex<(VecDeque<JournalLine>, File)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct JournalLine {
    name: String,
    round: MeasuredRound,
}

impl Journal {
    /// Opens a journal with the rounds that it has. A line that was cut off is dropped with everything after it.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let failed = |error| format!("{}: {error}", path.display());
        let bytes = match fs::read(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            bytes => bytes.unwrap_or_default(),
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines: VecDeque<JournalLine> =
            text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
        let kept: String = text.split_inclusive('\n').take(lines.len()).collect();
        let end = if kept.is_empty() || kept.ends_with('\n') { "" } else { "\n" };
        // Renamed into place: a kill here loses nothing.
        let draft = path.with_extension("rounds-draft");
        fs::write(&draft, kept + end).and_then(|()| fs::rename(&draft, path)).map_err(failed)?;
        let file = File::options().append(true).open(path).map_err(failed)?;
        Ok(Self { state: Mutex::new((lines, file)) })
    }

    /// Returns the number of rounds that need not be measured again.
    pub(super) fn len(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.len()
    }

    /// Returns the recorded round of this name, or measures and records it.
    pub(crate) fn round(&self, name: &str, measure: impl FnOnce() -> MeasuredRound) -> MeasuredRound {
        let lock = || self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let next = lock().0.pop_front();
        if let Some(line) = next.filter(|line| line.name == name) {
            return line.round;
        }
        // Rounds after another one are of another order.
        lock().0.clear();
        let line = JournalLine { name: name.to_owned(), round: measure() };
        let written = serde_json::to_string(&line).map_err(|error| error.to_string());
        let written =
            written.and_then(|text| writeln!(lock().1, "{text}").map_err(|error| error.to_string()));
        if let Err(why) = written {
            crate::progress(&format!("this round will be measured again after a resume: {why}"));
        }
        line.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(value: f64) -> MeasuredRound {
        Ok([("cpu_us", value)].into()).into()
    }

    #[test]
    fn a_resumed_step_measures_only_rounds_that_are_missing() {
        let folder = std::env::temp_dir().join(format!("lab-journal-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("rounds.jsonl");
        let first = Journal::open(&path).expect("a journal");
        first.round("a 1", || round(1.5));
        first.round("b 1", || Err("planted".to_owned()).into());
        first.round("c 1", || round(f64::NAN));
        drop(first);
        // Killed while it wrote.
        let cut = fs::read_to_string(&path).expect("it was written") + "{\"name\":\"a 2\",\"rou";
        fs::write(&path, cut).expect("a file");

        let second = Journal::open(&path).expect("a journal");
        assert_eq!(second.len(), 3);
        let unmeasured = || -> MeasuredRound { panic!("it is recorded") };
        assert_eq!(second.round("a 1", unmeasured).figure("cpu_us"), Some(1.5));
        assert_eq!(second.round("b 1", unmeasured).faults, ["planted"]);
        assert!(second.round("c 1", unmeasured).figures.is_empty(), "no number is no figure");
        assert_eq!(second.round("a 2", || round(2.5)).figure("cpu_us"), Some(2.5));
        assert_eq!(Journal::open(&path).expect("a journal").len(), 4);

        // Another order: nothing that was recorded is used.
        let third = Journal::open(&path).expect("a journal");
        assert_eq!(third.round("b 1", || round(9.0)).figure("cpu_us"), Some(9.0));
        assert_eq!(third.len(), 0);
        fs::remove_dir_all(&folder).expect("it was there");
    }
}
