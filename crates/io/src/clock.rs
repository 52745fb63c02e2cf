//! The clock of a driver: read once a turn.

use std::time::Instant;

use crate::os;

/// The clock as of the last `wait`.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    pub(crate) now_ms: u64,
    pub(crate) unix_seconds: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), now_ms: 0, unix_seconds: os::unix_seconds() }
    }

    /// Reads it.
    pub(crate) fn read(&mut self) {
        self.now_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.unix_seconds = os::unix_seconds();
    }
}
