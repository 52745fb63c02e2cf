//! Summary of a run.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::Format;
use crate::limits::FAILURES_MAX;

/// Counts of a run, final or so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files found.
    pub files: u64,
    /// Files processed.
    pub files_done: u64,
    /// Files below the minimum size.
    pub too_small: u64,
    /// Files in compressed formats.
    pub packed: u64,
    /// Counts by format, in the order of the options.
    pub formats: Vec<PerFormat>,
    /// Failures, at most [`FAILURES_MAX`].
    pub failures: Vec<Failed>,
    /// Failures beyond that.
    pub failures_left_out: u64,
}

/// Counts of siblings in one format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerFormat {
    /// The format.
    pub format: Format,
    /// Siblings made; in a dry run, siblings to make.
    pub made: u64,
    /// Siblings that are current and have the content of their files.
    pub up_to_date: u64,
    /// Unused siblings with the content of their files, whose times were set; in a dry run, to set.
    pub refreshed: u64,
    /// Unused siblings with other content that are not replaced, because a new one would save too little.
    pub stale: u64,
    /// Siblings not made because they would save too little.
    pub not_smaller: u64,
    /// Bytes of the files whose siblings were made.
    pub bytes_before: u64,
    /// Bytes of their siblings.
    pub bytes_after: u64,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The file or folder.
    pub path: PathBuf,
    /// The error.
    pub why: String,
}

impl Summary {
    pub(crate) fn of(formats: impl Iterator<Item = Format>) -> Self {
        let none = |format| PerFormat {
            format,
            made: 0,
            up_to_date: 0,
            refreshed: 0,
            stale: 0,
            not_smaller: 0,
            bytes_before: 0,
            bytes_after: 0,
        };
        Self { formats: formats.map(none).collect(), ..Self::default() }
    }

    pub(crate) fn failed(&mut self, path: &Path, error: &io::Error) {
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(Failed { path: path.to_owned(), why: error.to_string() });
        } else {
            self.failures_left_out += 1;
        }
    }

    /// Returns the number of all failures.
    #[must_use]
    pub fn failures_count(&self) -> u64 {
        self.failures.len() as u64 + self.failures_left_out
    }
}
