//! Parses the counters that the server logs.

use std::time::Instant;

use rustix::process::Signal;

use crate::client::PATIENCE;
use crate::process::Serving;

/// A line of counters.
pub(crate) struct Summary(String);

impl Summary {
    /// Returns the last line of counters in a log.
    #[track_caller]
    pub(crate) fn of(stderr: &str) -> Self {
        let line = stderr.lines().rfind(|line| line.contains(" requests (2xx "));
        Self(line.unwrap_or_else(|| panic!("no figures: {stderr:?}")).to_owned())
    }

    /// Requests the counters with SIGUSR1.
    pub(crate) fn so_far(serving: &mut Serving) -> Self {
        serving.signal(Signal::USR1);
        loop {
            let line = serving.hear();
            assert!(!line.is_empty(), "it has ended");
            if line.starts_with("shearwater: so far ") {
                return Self(line);
            }
        }
    }

    /// Requests the counters until a condition holds.
    #[track_caller]
    pub(crate) fn until(serving: &mut Serving, mut is_there: impl FnMut(&Self) -> bool) -> Self {
        let begun = Instant::now();
        loop {
            let summary = Self::so_far(serving);
            if is_there(&summary) {
                return summary;
            }
            assert!(begun.elapsed() < PATIENCE, "it never comes to that: {}", summary.0);
        }
    }

    /// Returns how often a limit was reached, by its name in `docs/limits.md`.
    pub(crate) fn reached(&self, limit: &str) -> u64 {
        let Some((_, limits)) = self.0.split_once("; limits reached: ") else { return 0 };
        let limits = limits.split(';').next().unwrap_or("").trim_end().split(", ");
        let found = limits.filter_map(|entry| entry.split_once(' ')).find(|(name, _)| *name == limit);
        found.map_or(0, |(_, count)| count.parse().expect("a number"))
    }

    /// Returns the number before a word, such as `open`, `reset` or `bytes received`.
    #[track_caller]
    pub(crate) fn count(&self, word: &str) -> u64 {
        let before = self.0.split(&format!(" {word}")).next().expect("a part");
        let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().expect("a part");
        digits.parse().unwrap_or_else(|_| panic!("no number of {word}: {}", self.0))
    }
}
