//! What a run has come to.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::Format;
use crate::limits::FAILURES_MAX;

/// What a run has come to, or has come to so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files found.
    pub files: u64,
    /// Files done with.
    pub files_done: u64,
    /// Files smaller than was asked for.
    pub too_small: u64,
    /// Files whose kind is compressed already.
    pub packed: u64,
    /// What became of the siblings, by format, in the order that was asked for.
    pub formats: Vec<PerFormat>,
    /// What failed, at most [`FAILURES_MAX`].
    pub failures: Vec<Failed>,
    /// Failures beyond that.
    pub failures_left_out: u64,
}

/// What became of the siblings of one format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerFormat {
    /// Which.
    pub format: Format,
    /// Siblings made, or that would be.
    pub made: u64,
    /// Siblings that were there, have the content of their files and are sent by a server.
    pub up_to_date: u64,
    /// Siblings that were not sent although they have the content of their files. Their times were set, or would be.
    pub refreshed: u64,
    /// Siblings of another content than their files, which are not sent, or no longer. None would be made in their place, so they were left.
    pub stale: u64,
    /// Siblings that would not have been smaller enough.
    pub not_smaller: u64,
    /// Bytes of the files whose siblings were made.
    pub bytes_before: u64,
    /// Bytes of their siblings.
    pub bytes_after: u64,
}

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What.
    pub path: PathBuf,
    /// Why.
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

    /// Everything that failed.
    #[must_use]
    pub fn failures_count(&self) -> u64 {
        self.failures.len() as u64 + self.failures_left_out
    }
}
