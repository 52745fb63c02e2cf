//! A watchdog that reports workers blocked by a handler, by heartbeats that they store once a turn.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::limits::{BLOCKED_REPORT_INTERVAL_MS, WATCHDOG_SLEEP_MS};
use crate::server::control::Control;
use crate::server::notice::Notice;

/// Heartbeat of one worker, updated once a turn.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Beat {
    /// Turns begun; even while the worker sleeps, odd while it works.
    turns: AtomicU64,
}

/// Heartbeats of all workers, and the state of the watchdog.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    beats: Box<[Beat]>,
    /// The watchdog sleeps because all workers do: the next active worker wakes it.
    is_watch_asleep: AtomicBool,
}

impl Heartbeats {
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            beats: (0..workers).map(|_| Beat::default()).collect(),
            is_watch_asleep: AtomicBool::new(false),
        })
    }

    /// Returns the turns of a worker: odd while it is active.
    pub(crate) fn turns(&self, worker: usize) -> u64 {
        self.beats[worker].turns.load(Ordering::Relaxed)
    }

    /// Returns true if no worker is active.
    pub(crate) fn are_all_asleep(&self) -> bool {
        (0..self.beats.len()).all(|worker| !is_at_work(self.turns(worker)))
    }

    pub(crate) fn set_watch_asleep(&self, is_asleep: bool) {
        self.is_watch_asleep.store(is_asleep, Ordering::Relaxed);
    }
}

/// Returns true if a worker with so many turns is active.
pub(crate) fn is_at_work(turns: u64) -> bool {
    turns % 2 == 1
}

/// Detects workers that are stuck in one turn, for other observers than the watchdog.
#[derive(Debug)]
pub struct Progress {
    heartbeats: Arc<Heartbeats>,
    seen: Box<[u64]>,
}

impl Progress {
    pub(crate) fn of(heartbeats: &Arc<Heartbeats>) -> Self {
        Self { heartbeats: Arc::clone(heartbeats), seen: vec![0; heartbeats.beats.len()].into() }
    }

    /// Returns a worker that has been in the same turn since the last call, if there is one.
    pub fn stuck_worker(&mut self) -> Option<usize> {
        let mut stuck = None;
        for (worker, seen) in self.seen.iter_mut().enumerate().rev() {
            let turns = self.heartbeats.turns(worker);
            if is_at_work(turns) && turns == *seen {
                stuck = Some(worker);
            }
            *seen = turns;
        }
        stuck
    }
}

/// A worker's side of its heartbeat. Dropping it marks the worker as asleep.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    heartbeats: Arc<Heartbeats>,
    worker: usize,
    watch: Thread,
}

impl Heartbeat {
    pub(crate) fn new(heartbeats: Arc<Heartbeats>, worker: usize, watch: Thread) -> Self {
        Self { heartbeats, worker, watch }
    }

    /// Marks the worker as active. May miss that the watchdog has just fallen asleep; its sleep is bounded.
    pub(crate) fn wake(&self) {
        self.step(1);
        if self.heartbeats.is_watch_asleep.load(Ordering::Relaxed) {
            self.heartbeats.set_watch_asleep(false);
            self.watch.unpark();
        }
    }

    /// Marks the worker as asleep.
    pub(crate) fn sleep(&self) {
        self.step(0);
    }

    /// Advances to the next number of this parity.
    fn step(&self, parity: u64) {
        let turns = &self.heartbeats.beats[self.worker].turns;
        let now = turns.load(Ordering::Relaxed);
        if now % 2 != parity {
            turns.store(now.wrapping_add(1), Ordering::Relaxed);
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.sleep();
    }
}

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
mod heartbeat_tests {
    use super::{Heartbeat, Heartbeats, Progress};

    #[test]
    fn heartbeat_tells_active_from_sleeping_workers() {
        let heartbeats = Heartbeats::new(2);
        let heartbeat = Heartbeat::new(heartbeats.clone(), 1, std::thread::current());
        assert!(heartbeats.are_all_asleep());
        heartbeat.sleep();
        assert_eq!(heartbeats.turns(1), 0);
        heartbeat.wake();
        assert!(!heartbeats.are_all_asleep());
        heartbeat.wake();
        assert_eq!(heartbeats.turns(1), 1);
        heartbeat.sleep();
        assert!(heartbeats.are_all_asleep());
        assert_eq!((heartbeats.turns(0), heartbeats.turns(1)), (0, 2));
        heartbeat.wake();
        drop(heartbeat);
        assert!(heartbeats.are_all_asleep(), "a worker that has ended counts as asleep");
    }

    #[test]
    fn a_worker_is_stuck_if_its_turn_lasts_from_one_check_to_the_next() {
        let heartbeats = Heartbeats::new(2);
        let worker = |worker| Heartbeat::new(heartbeats.clone(), worker, std::thread::current());
        let (first, second) = (worker(0), worker(1));
        let mut progress = Progress::of(&heartbeats);
        second.wake();
        assert_eq!(progress.stuck_worker(), None, "it may have begun just now");
        assert_eq!(progress.stuck_worker(), Some(1));
        first.wake();
        assert_eq!(progress.stuck_worker(), Some(1));
        assert_eq!(progress.stuck_worker(), Some(0), "the first of two");
        second.sleep();
        second.wake();
        first.sleep();
        assert_eq!(progress.stuck_worker(), None, "another turn, and asleep");
        second.sleep();
        assert_eq!(progress.stuck_worker(), None);
    }
}

#[cfg(test)]
mod watchdog_tests {
    use super::Observed;
    use crate::limits::BLOCKED_REPORT_INTERVAL_MS;
    use crate::server::notice::Notice;

    #[test]
    fn reports_a_blocked_worker_once_and_then_at_intervals() {
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
