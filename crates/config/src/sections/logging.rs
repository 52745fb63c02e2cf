//! `[logging]`: what the program says on standard error.

use crate::fields::{Fields, Visit};
use crate::rules::{Choice, Choices};

/// What the program says on standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logging {
    /// The least that is said.
    pub level: Level,
}

/// How grave something has to be to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is said.
    Off,
    /// What has failed.
    Error,
    /// And what is not as it should be.
    Warn,
    /// And what the program does.
    Info,
    /// And everything else.
    Debug,
}

impl Choices for Level {
    const ALL: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];
}

impl Default for Logging {
    fn default() -> Self {
        Self { level: Level::Info }
    }
}

impl Fields for Logging {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "level",
            "What the program says on standard error while it serves: nothing, what has failed, and what is not as it should \
             be, and what it does, and everything. What it says at its start, on standard output, warnings about what is hardly \
             meant, and why it could not start, it says always.",
            Choice,
            &mut self.level,
        );
    }
}
