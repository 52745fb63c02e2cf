//! The clock of a driver, read once a turn, and the time up to which it has caught up with the kernel (T4).

use std::collections::VecDeque;
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

    /// Returns the time at which a timeout ends; `None` if it is too short for an alarm.
    #[cfg(target_os = "linux")]
    #[inline]
    pub(crate) fn alarm_ms(&self, timeout: std::time::Duration) -> Option<u64> {
        let timeout_ms =
            timeout.as_secs().saturating_mul(1000).saturating_add(timeout.subsec_millis().into());
        let due_ms = self.now_ms.saturating_add(timeout_ms);
        (timeout_ms >= crate::limits::ALARM_TIMEOUT_MS_MIN).then_some(due_ms)
    }

    /// Returns microseconds of the same clock, by a fresh reading.
    pub(crate) fn read_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
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

/// Pending moments: the more, the closer the time is to the clock.
const MOMENTS_MAX: usize = 8;

/// Time by which everything that had arrived was fetched, under any load.
///
/// A wait takes a bounded number of events, in the order in which they came. Once as many were taken as could
/// be pending at some moment, everything pending at that moment has been taken.
#[derive(Debug, Default)]
pub(crate) struct CatchUp {
    ms: u64,
    /// Events taken since a wait last took everything.
    taken: usize,
    /// Later moments, each with the value of `taken` at which its events are fetched.
    moments: VecDeque<(u64, usize)>,
}

impl CatchUp {
    /// Returns the time.
    pub(crate) fn ms(&self) -> u64 {
        self.ms
    }

    /// Records a wait at `now_ms` that took everything.
    #[inline]
    pub(crate) fn took_all(&mut self, now_ms: u64) {
        self.ms = now_ms;
        if !self.moments.is_empty() {
            self.taken = 0;
            self.moments.clear();
        }
    }

    /// Records a wait that took `taken` events and left at most `waiting_max`.
    pub(crate) fn took(&mut self, taken: usize, waiting_max: usize, now_ms: u64) {
        self.taken = self.taken.saturating_add(taken);
        while let Some((ms, _)) = self.moments.front().filter(|(_, until)| *until <= self.taken) {
            self.ms = *ms;
            self.moments.pop_front();
        }
        let until = self.taken.saturating_add(waiting_max);
        let latest = self.moments.back().map_or(0, |(_, until)| *until);
        if self.moments.is_empty() || until >= latest.saturating_add(waiting_max / MOMENTS_MAX) {
            self.moments.push_back((now_ms, until));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CatchUp, Clock, MOMENTS_MAX, UNIX_SECONDS_AGE_MS};

    #[test]
    fn reads_the_time_of_day_when_it_is_old() {
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

    #[test]
    fn catches_up_when_all_pending_events_are_taken() {
        let mut catch_up = CatchUp::default();
        catch_up.took_all(10);
        assert_eq!(catch_up.ms(), 10);
        let times = (20..26).map(|now_ms| {
            catch_up.took(100, 250, now_ms);
            catch_up.ms()
        });
        // 250 may be pending at 20: the third wait after that takes the last of them.
        assert_eq!(times.collect::<Vec<_>>(), [10, 10, 10, 20, 21, 22]);
        catch_up.took_all(30);
        assert_eq!(catch_up.ms(), 30);
        catch_up.took(100, 0, 31);
        catch_up.took(100, 0, 32);
        assert_eq!(catch_up.ms(), 31);
    }

    #[test]
    fn keeps_a_bounded_number_of_moments_close_to_the_clock() {
        let mut catch_up = CatchUp::default();
        for now_ms in 0..10_000 {
            catch_up.took(20, 20_000, now_ms);
            assert!(catch_up.moments.len() <= MOMENTS_MAX + 1);
            assert!(now_ms < 2000 || now_ms - catch_up.ms() <= 1000 + 1000 / MOMENTS_MAX as u64);
        }
    }
}
