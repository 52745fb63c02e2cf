//! Time up to which a driver has caught up with the kernel (T4).

use std::collections::VecDeque;

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
    use super::{CatchUp, MOMENTS_MAX};

    #[test]
    fn catches_up_when_all_that_can_have_waited_was_taken() {
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
    fn waits_for_a_bounded_number_of_moments_and_stays_close_to_the_clock() {
        let mut catch_up = CatchUp::default();
        for now_ms in 0..10_000 {
            catch_up.took(20, 20_000, now_ms);
            assert!(catch_up.moments.len() <= MOMENTS_MAX + 1);
            assert!(now_ms < 2000 || now_ms - catch_up.ms() <= 1000 + 1000 / MOMENTS_MAX as u64);
        }
    }
}
