//! The clock of a driver: read once a turn.

use std::time::Instant;

use crate::os;

/// How old the time of day may be. Turns are shorter than that under load, and each look costs as much as a small part of a request.
const UNIX_SECONDS_AGE_MS: u64 = 50;

/// The clock as of the last `wait`.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    pub(crate) now_ms: u64,
    /// Lags by up to `UNIX_SECONDS_AGE_MS`.
    pub(crate) unix_seconds: u64,
    /// When the time of day was looked at.
    looked_ms: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), now_ms: 0, unix_seconds: os::unix_seconds(), looked_ms: 0 }
    }

    /// Reads it.
    #[inline]
    pub(crate) fn read(&mut self) {
        self.now_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        if self.now_ms - self.looked_ms >= UNIX_SECONDS_AGE_MS {
            self.looked_ms = self.now_ms;
            self.unix_seconds = os::unix_seconds();
        }
    }
}
