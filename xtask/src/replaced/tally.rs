//! What the answers for a file came to.

use super::judge::Verdict;

/// Examples of wrong answers that are kept of one file.
const WRONG_KEPT_MAX: usize = 20;

/// Counts by outcome.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    pub(super) whole: u64,
    pub(super) parts: u64,
    pub(super) not_modified: u64,
    pub(super) missing: u64,
    pub(super) short: u64,
    pub(super) half_written: u64,
    pub(super) wrong: u64,
    pub(super) examples: Vec<String>,
}

impl Tally {
    pub(super) fn note(&mut self, verdict: Result<Verdict, String>) {
        match verdict {
            Ok(Verdict::Whole) => self.whole += 1,
            Ok(Verdict::Part) => self.parts += 1,
            Ok(Verdict::NotModified) => self.not_modified += 1,
            Ok(Verdict::Missing) => self.missing += 1,
            Ok(Verdict::Short) => self.short += 1,
            Ok(Verdict::HalfWritten) => self.half_written += 1,
            Err(what) => {
                self.wrong += 1;
                if self.examples.len() < WRONG_KEPT_MAX {
                    self.examples.push(what);
                }
            }
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.parts += other.parts;
        self.not_modified += other.not_modified;
        self.missing += other.missing;
        self.short += other.short;
        self.half_written += other.half_written;
        self.wrong += other.wrong;
        self.examples.extend(other.examples);
    }

    /// In one line.
    pub(super) fn line(&self) -> String {
        let counts = [
            (self.whole, "whole"),
            (self.parts, "parts"),
            (self.not_modified, "304"),
            (self.missing, "404"),
            (self.short, "short"),
            (self.half_written, "half written by the writer"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }
}
