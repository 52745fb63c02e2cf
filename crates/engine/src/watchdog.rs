//! The watchdog: reports workers that are blocked by a handler. It sleeps while all workers sleep.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::control::{Control, Notice};
use crate::heartbeat::{Heartbeats, is_at_work};
use crate::limits::{BLOCKED_REPORT_INTERVAL_MS, WATCHDOG_SLEEP_MS};

/// A running watchdog. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Watchdog {
    pub(crate) heartbeats: Arc<Heartbeats>,
    thread: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Watchdog {
    /// Starts a watchdog that checks `workers` every `every_ms` milliseconds.
    ///
    /// # Errors
    /// If the system can't create a thread.
    pub(crate) fn start(workers: usize, every_ms: u64, control: &Arc<Control>) -> io::Result<Self> {
        let heartbeats = Heartbeats::new(workers);
        let is_over = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            observed: (0..workers).map(|_| Observed::default()).collect(),
            heartbeats: Arc::clone(&heartbeats),
            // Weak, so that it doesn't keep the operator's channel open.
            control: Arc::downgrade(control),
            every_ms: every_ms.max(1),
            is_over: Arc::clone(&is_over),
        };
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(move || watch.run())?;
        Ok(Self { heartbeats, thread: Some(thread), is_over })
    }

    /// Returns the thread that a worker wakes.
    pub(crate) fn thread(&self) -> Option<Thread> {
        self.thread.as_ref().map(|thread| thread.thread().clone())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread returns nothing and can't panic.
            drop(thread.join());
        }
    }
}

struct Watch {
    heartbeats: Arc<Heartbeats>,
    control: Weak<Control>,
    every_ms: u64,
    observed: Vec<Observed>,
    is_over: Arc<AtomicBool>,
}

/// Observed state of a worker.
#[derive(Debug, Default, Clone, Copy)]
struct Observed {
    turns: u64,
    /// Minimum time that it has been in that turn, in milliseconds.
    ms: u64,
    /// Time until it may be reported again, in milliseconds.
    quiet_ms: u64,
    /// Times it was blocked since the last report.
    times: u64,
}

impl Watch {
    fn run(mut self) {
        while !self.is_over.load(Ordering::Relaxed) {
            self.sleep();
            for worker in 0..self.observed.len() {
                let turns = self.heartbeats.turns(worker);
                if let Some(notice) = self.observed[worker].check(worker, turns, self.every_ms) {
                    self.control.upgrade().map(|control| control.notify(notice));
                }
            }
        }
    }

    /// Sleeps until the next check; longer while all workers sleep.
    fn sleep(&self) {
        if !self.heartbeats.are_all_asleep() {
            return thread::park_timeout(Duration::from_millis(self.every_ms));
        }
        self.heartbeats.set_watch_asleep(true);
        if self.heartbeats.are_all_asleep() && !self.is_over.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_millis(WATCHDOG_SLEEP_MS));
        }
        self.heartbeats.set_watch_asleep(false);
    }
}

impl Observed {
    /// Checks a worker `ms` after the last check; returns the notice to send, if any.
    fn check(&mut self, worker: usize, turns: u64, ms: u64) -> Option<Notice> {
        self.quiet_ms = self.quiet_ms.saturating_sub(ms);
        let is_stuck = is_at_work(turns) && turns == self.turns;
        self.turns = turns;
        if !is_stuck {
            self.ms = 0;
            return None;
        }
        self.times += u64::from(self.ms == 0);
        self.ms += ms;
        if self.quiet_ms > 0 || self.times == 0 {
            return None;
        }
        let notice = Notice::WorkerBlocked { worker, ms: self.ms, times: self.times };
        (self.quiet_ms, self.times) = (BLOCKED_REPORT_INTERVAL_MS, 0);
        Some(notice)
    }
}

#[cfg(test)]
mod tests {
    use super::Observed;
    use crate::control::Notice;
    use crate::limits::BLOCKED_REPORT_INTERVAL_MS;

    #[test]
    fn a_turn_that_lasts_is_told_once_and_then_from_time_to_time() {
        let mut observed = Observed::default();
        let blocked = |ms, times| Some(Notice::WorkerBlocked { worker: 3, ms, times });
        for turns in [0, 0, 1, 2, 2, 3, 5, 6] {
            assert_eq!(observed.check(3, turns, 100), None, "asleep, or another turn");
        }
        assert_eq!(observed.check(3, 7, 100), None, "it may have begun just now");
        assert_eq!(observed.check(3, 7, 100), blocked(100, 1));
        assert_eq!(observed.check(3, 7, 100), None, "reported");
        for turns in [9, 9, 11, 11, 11, 12] {
            assert_eq!(observed.check(3, turns, 100), None, "not so soon again");
        }
        assert_eq!(observed.check(3, 13, BLOCKED_REPORT_INTERVAL_MS), None);
        assert_eq!(observed.check(3, 13, 100), blocked(100, 3));
    }
}
