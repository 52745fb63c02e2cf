//! The clock of a driver: read once a turn.

use std::time::Instant;

use crate::os;

/// Maximum age of the time of day. Turns are shorter under load, and each reading costs a small part of a
/// request.
const UNIX_SECONDS_AGE_MS: u64 = 50;

/// The clock as of the last `wait`.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    pub(crate) now_ms: u64,
    /// Lags by up to `UNIX_SECONDS_AGE_MS` of `now_ms`, which stops while the machine sleeps.
    pub(crate) unix_seconds: u64,
    /// Time at which the time of day was read.
    read_ms: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), now_ms: 0, unix_seconds: os::unix_seconds(), read_ms: 0 }
    }

    /// Returns the time left until `due_ms`, by a fresh reading.
    #[cfg(target_os = "linux")]
    pub(crate) fn until(&self, due_ms: u64) -> std::time::Duration {
        std::time::Duration::from_millis(due_ms).saturating_sub(self.start.elapsed())
    }

    /// Reads the clock.
    #[inline]
    pub(crate) fn read(&mut self) {
        let elapsed = self.start.elapsed();
        let now_ms = elapsed.as_secs() * 1000 + u64::from(elapsed.subsec_millis());
        self.set(now_ms, os::unix_seconds);
    }

    #[inline]
    fn set(&mut self, now_ms: u64, unix_seconds: impl FnOnce() -> u64) {
        self.now_ms = now_ms;
        if now_ms - self.read_ms >= UNIX_SECONDS_AGE_MS {
            self.read_ms = now_ms;
            self.unix_seconds = unix_seconds();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, UNIX_SECONDS_AGE_MS};

    #[test]
    fn the_time_of_day_is_looked_at_when_it_is_old() {
        let mut clock = Clock::new();
        let first = clock.unix_seconds;
        clock.set(UNIX_SECONDS_AGE_MS - 1, || 7);
        assert_eq!((clock.now_ms, clock.unix_seconds), (UNIX_SECONDS_AGE_MS - 1, first));
        clock.set(UNIX_SECONDS_AGE_MS, || 7);
        assert_eq!(clock.unix_seconds, 7);
        clock.set(2 * UNIX_SECONDS_AGE_MS - 1, || 8);
        assert_eq!(clock.unix_seconds, 7);
        clock.set(3 * UNIX_SECONDS_AGE_MS, || 8);
        assert_eq!(clock.unix_seconds, 8);
    }
}
