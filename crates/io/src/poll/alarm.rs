//! A timer that stays armed over many turns. A timeout of the wait itself, which the kernel arms and cancels
//! whenever a worker sleeps, costs a hundredth of a small response (`docs/decisions/0007-hot-path.md`).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::clock::Clock;

/// A worker's alarm.
#[derive(Debug)]
pub(super) struct Alarm {
    /// `None` if the kernel has no timer left: then each wait has its timeout.
    timer: Option<OwnedFd>,
    /// Expiry by the driver's clock, while armed.
    due_ms: Option<u64>,
}

impl Alarm {
    /// Creates an alarm whose events have this token.
    pub(super) fn new(registry: &Registry, name: mio::Token) -> Self {
        Self { timer: timer(registry, name).ok(), due_ms: None }
    }

    /// Records that it has expired.
    pub(super) fn note(&mut self) {
        self.due_ms = None;
    }

    /// Returns the timeout of the next wait: none if the alarm expires by then. The alarm may expire early,
    /// for a cancelled deadline: it is never disarmed.
    #[inline]
    pub(super) fn cover(&mut self, timeout: Option<Duration>, clock: &Clock) -> Option<Duration> {
        let timeout = timeout?;
        let Some(due_ms) = clock.alarm_ms(timeout) else { return Some(timeout) };
        if self.due_ms.is_some_and(|set_ms| set_ms <= due_ms) || self.set(due_ms, clock) {
            return None;
        }
        Some(timeout)
    }

    /// Arms it; returns whether that succeeded. Reads the clock again: later turns rely on it, and this one
    /// may have been long.
    #[cold]
    fn set(&mut self, due_ms: u64, clock: &Clock) -> bool {
        // Zero would disarm it.
        let after = clock.until(due_ms).max(Duration::from_nanos(1));
        let (Some(timer), Ok(after)) = (&self.timer, Timespec::try_from(after)) else { return false };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval: never, it_value: after };
        let is_set = timerfd_settime(timer, TimerfdTimerFlags::empty(), &once).is_ok();
        if is_set {
            self.due_ms = Some(due_ms);
        }
        is_set
    }
}

/// Creates the timer. Edge-triggered, so its expiry count needn't be read.
fn timer(registry: &Registry, name: mio::Token) -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    registry.register(&mut SourceFd(&timer.as_raw_fd()), name, Interest::READABLE)?;
    Ok(timer)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::time::timerfd_gettime;

    use super::{Alarm, Clock};
    use crate::limits::ALARM_TIMEOUT_MS_MIN;

    fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    fn alarm() -> (mio::Poll, Alarm) {
        let poll = mio::Poll::new().expect("a poll");
        let alarm = Alarm::new(poll.registry(), mio::Token(7));
        (poll, alarm)
    }

    /// Returns the started minutes left until expiry; 0 if it isn't armed.
    fn left_min(alarm: &Alarm) -> i64 {
        let left =
            timerfd_gettime(alarm.timer.as_ref().expect("a timer")).expect("the system reports it").it_value;
        (left.tv_sec + i64::from(left.tv_nsec > 0) + 59) / 60
    }

    /// Returns a clock that reads `now_ms`, though it was just created.
    fn at(now_ms: u64) -> Clock {
        let mut clock = Clock::new();
        clock.now_ms = now_ms;
        clock
    }

    /// Each row: timeouts with the driver's time, when the alarm is due then, and the minutes left of it. The
    /// clock was just created, so later rows have an old reading.
    #[test]
    fn is_set_for_the_earliest_deadline() {
        const MIN: u64 = ALARM_TIMEOUT_MS_MIN;
        for (what, timeouts, due_ms, minutes) in [
            ("once for later deadlines", &[(300_000, 0), (300_000, 1), (299_900, 100)][..], 300_000, 5),
            ("again for an earlier one", &[(900_000, 0), (170_000, 1)], 170_001, 3),
            ("in time after a long turn", &[(180_000, 420_000)], 600_000, 10),
            ("for the shortest", &[(MIN, 0)], MIN, 1),
        ] {
            let (_poll, mut alarm) = alarm();
            for (timeout_ms, now_ms) in timeouts {
                assert_eq!(alarm.cover(ms(*timeout_ms), &at(*now_ms)), None, "{what}");
            }
            assert_eq!(alarm.cover(None, &at(0)), None);
            assert_eq!((alarm.due_ms, left_min(&alarm)), (Some(due_ms), minutes), "{what}");
            alarm.note();
            assert_eq!(alarm.cover(ms(900_000), &at(0)), None);
            assert_eq!((alarm.due_ms, left_min(&alarm)), (Some(900_000), 15), "again after it has expired");
        }
    }

    #[test]
    fn short_timeouts_are_passed_to_the_wait() {
        let (_poll, mut alarm) = alarm();
        let near = Some(Duration::from_millis(ALARM_TIMEOUT_MS_MIN) - Duration::from_nanos(1));
        assert_eq!(alarm.cover(near, &at(0)), near);
        assert_eq!((alarm.due_ms, left_min(&alarm)), (None, 0));
        let mut none = Alarm { timer: None, due_ms: None };
        assert_eq!((none.cover(ms(1000), &at(0)), none.due_ms), (ms(1000), None), "and all without a timer");
    }

    #[test]
    fn accepts_any_timeout() {
        let (_poll, mut alarm) = alarm();
        assert_eq!(alarm.cover(Some(Duration::MAX), &at(7)), None);
        assert!(left_min(&alarm) > 60 * 24 * 365);
        assert_eq!(alarm.cover(ms(170_000), &at(7)), None);
        assert_eq!(left_min(&alarm), 3);
    }

    #[test]
    fn a_passed_deadline_expires_at_once() {
        let (mut poll, mut alarm) = alarm();
        let clock = at(0);
        while !clock.until(ALARM_TIMEOUT_MS_MIN).is_zero() {
            std::thread::yield_now();
        }
        assert_eq!(alarm.cover(ms(ALARM_TIMEOUT_MS_MIN), &clock), None);
        let mut events = mio::Events::with_capacity(4);
        poll.poll(&mut events, Some(Duration::from_secs(20))).expect("it waits");
        assert!(!events.is_empty());
    }

    #[test]
    fn reports_each_expiry_without_a_read() {
        let (mut poll, mut alarm) = alarm();
        let (mut events, mut clock) = (mio::Events::with_capacity(4), at(0));
        for _ in 0..2 {
            clock.read();
            assert_eq!(alarm.cover(ms(ALARM_TIMEOUT_MS_MIN), &clock), None);
            poll.poll(&mut events, Some(Duration::from_secs(20))).expect("it waits");
            let names: Vec<_> = events.iter().map(|event| event.token().0).collect();
            assert_eq!(names, [7]);
            alarm.note();
            poll.poll(&mut events, Some(Duration::ZERO)).expect("it looks");
            assert!(events.is_empty(), "reported once");
        }
    }
}
