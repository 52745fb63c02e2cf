//! A timeout entry that stays set over many turns. A timeout of the wait itself, which the kernel arms and cancels
//! whenever a worker sleeps, costs a hundredth of a small response (`docs/decisions/0007-hot-path.md`).

use std::time::Duration;

use super::ring::Ring;
use crate::clock::Clock;

/// A worker's alarm.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// Expiry by the driver's clock, while it is set.
    due_ms: Option<u64>,
}

impl Alarm {
    /// Records that it has expired.
    pub(super) fn note(&mut self) {
        self.due_ms = None;
    }

    /// Returns the timeout of the next wait: none if the alarm expires by then. The alarm may expire early, for a
    /// cancelled deadline: it is only moved to an earlier time.
    #[inline]
    pub(super) fn cover(
        &mut self,
        timeout: Option<Duration>,
        clock: &Clock,
        ring: &mut Ring,
    ) -> Option<Duration> {
        let timeout = timeout?;
        let Some(due_ms) = clock.alarm_ms(timeout) else { return Some(timeout) };
        if self.due_ms.is_none_or(|set_ms| due_ms < set_ms) {
            // If it expires before it is moved, its completion ends this wait, and the next one sets it again. If the
            // kernel doesn't take the entry now, the wait ends at once.
            ring.set_alarm(clock.until(due_ms), self.due_ms.is_some());
            self.due_ms = Some(due_ms);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ALARM_TIMEOUT_MS_MIN;
    use crate::uring::entry::Purpose;

    const MIN: u64 = ALARM_TIMEOUT_MS_MIN;

    fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    fn ring() -> Option<Ring> {
        Ring::new(8, 8, false).map_err(|why| println!("skipped: {why}")).ok()
    }

    #[test]
    fn short_timeouts_are_passed_to_the_wait() {
        let Some(mut ring) = ring() else { return };
        let (mut alarm, clock) = (Alarm::default(), Clock::new());
        assert_eq!(alarm.cover(ms(MIN - 1), &clock, &mut ring), ms(MIN - 1));
        assert_eq!(alarm.cover(None, &clock, &mut ring), None);
        assert_eq!(alarm.due_ms, None);
    }

    #[test]
    fn accepts_any_timeout() {
        let Some(mut ring) = ring() else { return };
        let (mut alarm, clock) = (Alarm::default(), Clock::new());
        for timeout in [Duration::MAX, Duration::from_millis(MIN)] {
            assert_eq!(alarm.cover(Some(timeout), &clock, &mut ring), None);
            ring.enter(Some(Duration::ZERO)).expect("it is set");
        }
        ring.enter(None).expect("it expires");
        assert_eq!(ring.take().map(|done| done.purpose()), Some(Purpose::Alarm));
    }

    /// Set late, moved to an earlier time, not moved to a later one, and set again after it has expired.
    #[test]
    fn expires_at_the_earliest_deadline_once() {
        let Some(mut ring) = ring() else { return };
        let (mut alarm, mut clock) = (Alarm::default(), Clock::new());
        for round in 0..2 {
            clock.read();
            let start_ms = clock.now_ms;
            for timeout_ms in [900_000, MIN, 500_000] {
                assert_eq!(alarm.cover(ms(timeout_ms), &clock, &mut ring), None);
                ring.enter(Some(Duration::ZERO)).expect("entries are submitted");
            }
            assert_eq!(alarm.due_ms, Some(start_ms + MIN));
            ring.enter(None).expect("it expires");
            clock.read();
            assert!(clock.now_ms >= start_ms + MIN, "not early");
            let done = ring.take().expect("it has expired");
            assert_eq!((round, done.purpose()), (round, Purpose::Alarm));
            alarm.note();
            assert!(ring.take().is_none(), "once");
        }
    }

    /// The kernel may report the expiry while the alarm is being moved.
    #[test]
    fn may_expire_before_it_is_moved() {
        let Some(mut ring) = ring() else { return };
        let (mut alarm, clock) = (Alarm::default(), Clock::new());
        ring.set_alarm(Duration::from_nanos(1), false);
        alarm.due_ms = Some(900_000);
        ring.enter(Some(Duration::from_millis(20_000))).expect("it expires");
        assert_eq!(alarm.cover(ms(MIN), &clock, &mut ring), None);
        ring.enter(None).expect("it has expired");
        assert_eq!(ring.take().map(|done| done.purpose()), Some(Purpose::Alarm));
        ring.enter(Some(Duration::ZERO)).expect("entries are submitted");
        assert!(ring.take().is_none(), "the move has failed silently");
    }
}
