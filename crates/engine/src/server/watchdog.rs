//! A watchdog that reports workers blocked by a handler, by heartbeats that they store once a turn.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::limits::{BLOCKED_REPORT_INTERVAL_MS, WATCHDOG_SLEEP_MS};
use crate::server::control::Control;
use crate::server::notice::Notice;

/// Heartbeat of one worker, updated once a turn.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Beat {
    /// Turns begun; even while the worker sleeps, odd while it works.
    turns: AtomicU64,
    /// Value of `turns` in which the watchdog has found the worker blocked, for the handler that did it to be named; else 0.
    blocked_in: AtomicU64,
}

impl Beat {
    /// Returns true if a block was reported that no handler was named for.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked_in.load(Ordering::Relaxed) != 0
    }

    /// Takes that report; returns true if it is of the present turn.
    pub(crate) fn take_block(&self) -> bool {
        self.blocked_in.swap(0, Ordering::Relaxed) == self.turns.load(Ordering::Relaxed)
    }
}

/// Heartbeats of all workers, and the state of the watchdog.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    beats: Box<[Arc<Beat>]>,
    /// The watchdog sleeps because all workers do: the next active worker wakes it.
    is_watch_asleep: AtomicBool,
}

impl Heartbeats {
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            beats: (0..workers).map(|_| Arc::default()).collect(),
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

/// A worker's turn as an observer sees it, who may look at any time: a sleep can end early.
#[derive(Debug, Default, Clone, Copy)]
struct SeenTurn {
    turns: u64,
    /// Time of the first look at it.
    since: Duration,
}

impl SeenTurn {
    /// Looks at a worker; returns the minimum time that it has been in its turn, which is zero while it sleeps.
    fn look(&mut self, turns: u64, now: Duration) -> Duration {
        if turns != self.turns || !is_at_work(turns) {
            *self = Self { turns, since: now };
        }
        now.saturating_sub(self.since)
    }
}

/// Detects workers that are stuck in one turn, for other observers than the watchdog.
#[derive(Debug)]
pub struct Progress {
    heartbeats: Arc<Heartbeats>,
    seen: Box<[SeenTurn]>,
    start: Instant,
}

impl Progress {
    pub(crate) fn of(heartbeats: &Arc<Heartbeats>) -> Self {
        let seen = vec![SeenTurn::default(); heartbeats.beats.len()].into();
        Self { heartbeats: Arc::clone(heartbeats), seen, start: Instant::now() }
    }

    /// Returns a worker that earlier calls saw in the same turn, the first of them at least `after` ago.
    pub fn stuck_worker(&mut self, after: Duration) -> Option<usize> {
        self.stuck_at(self.start.elapsed(), after)
    }

    fn stuck_at(&mut self, now: Duration, after: Duration) -> Option<usize> {
        let mut stuck = None;
        for (worker, seen) in self.seen.iter_mut().enumerate().rev() {
            let time = seen.look(self.heartbeats.turns(worker), now);
            if time >= after && !time.is_zero() {
                stuck = Some(worker);
            }
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

    /// Returns what the worker shares with the watchdog.
    pub(crate) fn beat(&self) -> Arc<Beat> {
        Arc::clone(&self.heartbeats.beats[self.worker])
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
    turn: SeenTurn,
    /// Counted in `times`.
    is_blocked: bool,
    /// Time from which on it may be reported again.
    quiet_until: Duration,
    /// Times it was blocked since the last report.
    times: u64,
}

impl Watch {
    fn run(mut self) {
        let (start, every) = (Instant::now(), Duration::from_millis(self.every_ms));
        while !self.is_over.load(Ordering::Relaxed) {
            self.sleep();
            for worker in 0..self.observed.len() {
                let turns = self.heartbeats.turns(worker);
                if let Some(notice) = self.observed[worker].check(worker, turns, start.elapsed(), every) {
                    self.control.upgrade().map(|control| control.notify(notice));
                    self.heartbeats.beats[worker].blocked_in.store(turns, Ordering::Relaxed);
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
    /// Checks a worker, which is blocked after a time of `every` in one turn; returns the notice to send, if any.
    fn check(&mut self, worker: usize, turns: u64, now: Duration, every: Duration) -> Option<Notice> {
        let time = self.turn.look(turns, now);
        let was_blocked = std::mem::replace(&mut self.is_blocked, time >= every);
        if !self.is_blocked {
            return None;
        }
        self.times += u64::from(!was_blocked);
        if now < self.quiet_until || self.times == 0 {
            return None;
        }
        let notice = Notice::WorkerBlocked { worker, ms: time.as_millis() as u64, times: self.times };
        self.quiet_until = now + Duration::from_millis(BLOCKED_REPORT_INTERVAL_MS);
        self.times = 0;
        Some(notice)
    }
}

#[cfg(test)]
mod heartbeat_tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

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
    fn a_block_is_of_the_turn_that_it_was_found_in() {
        let heartbeats = Heartbeats::new(1);
        let heartbeat = Heartbeat::new(heartbeats.clone(), 0, std::thread::current());
        let (beat, found_in) =
            (heartbeat.beat(), |turns| heartbeats.beats[0].blocked_in.store(turns, Relaxed));
        heartbeat.wake();
        assert!(!beat.is_blocked());
        found_in(heartbeats.turns(0));
        assert!(beat.is_blocked());
        assert_eq!([beat.take_block(), beat.is_blocked()], [true, false]);
        found_in(heartbeats.turns(0));
        heartbeat.sleep();
        heartbeat.wake();
        assert_eq!([beat.take_block(), beat.is_blocked()], [false, false], "the next turn is innocent");
    }

    #[test]
    fn a_worker_is_stuck_if_its_turn_lasts_from_one_check_to_the_next() {
        let heartbeats = Heartbeats::new(2);
        let worker = |worker| Heartbeat::new(heartbeats.clone(), worker, std::thread::current());
        let (first, second) = (worker(0), worker(1));
        let mut progress = Progress::of(&heartbeats);
        let mut stuck = |ms| progress.stuck_at(Duration::from_millis(ms), Duration::from_millis(100));
        second.wake();
        assert_eq!(stuck(1000), None, "it may have begun just now");
        assert_eq!([stuck(1000), stuck(1099)], [None; 2], "calls may follow each other at once");
        assert_eq!(stuck(1100), Some(1));
        first.wake();
        assert_eq!(stuck(1200), Some(1));
        assert_eq!(stuck(1300), Some(0), "the first of two");
        second.sleep();
        second.wake();
        first.sleep();
        assert_eq!(stuck(1400), None, "another turn, and asleep");
        second.sleep();
        assert_eq!(stuck(1500), None);
    }
}

#[cfg(test)]
mod watchdog_tests {
    use std::time::Duration;

    use super::Observed;
    use crate::limits::BLOCKED_REPORT_INTERVAL_MS;
    use crate::server::notice::Notice;

    const EVERY_MS: u64 = 100;

    /// A worker and the driven time of its watchdog.
    #[derive(Default)]
    struct Watched {
        observed: Observed,
        now: Duration,
    }

    impl Watched {
        /// Looks at the worker this long after the last look.
        fn after(&mut self, pause: Duration, turns: u64) -> Option<Notice> {
            self.now += pause;
            self.observed.check(3, turns, self.now, Duration::from_millis(EVERY_MS))
        }

        fn after_ms(&mut self, ms: u64, turns: u64) -> Option<Notice> {
            self.after(Duration::from_millis(ms), turns)
        }
    }

    fn blocked(ms: u64, times: u64) -> Option<Notice> {
        Some(Notice::WorkerBlocked { worker: 3, ms, times })
    }

    #[test]
    fn reports_a_blocked_worker_once_and_then_at_intervals() {
        let mut watched = Watched::default();
        for turns in [0, 0, 1, 2, 2, 3, 5, 6] {
            assert_eq!(watched.after_ms(EVERY_MS, turns), None, "asleep, or another turn");
        }
        assert_eq!(watched.after_ms(EVERY_MS, 7), None, "it may have begun just now");
        assert_eq!(watched.after_ms(EVERY_MS, 7), blocked(100, 1));
        assert_eq!(watched.after_ms(EVERY_MS, 7), None, "reported");
        for turns in [9, 9, 11, 11, 11, 12] {
            assert_eq!(watched.after_ms(EVERY_MS, turns), None, "not so soon again");
        }
        assert_eq!(watched.after_ms(BLOCKED_REPORT_INTERVAL_MS, 13), None);
        assert_eq!(watched.after_ms(EVERY_MS, 13), blocked(100, 3));
    }

    /// A sleep may end early: by an `unpark` of an earlier turn, or for no reason.
    #[test]
    fn looks_that_follow_each_other_at_once_report_nothing() {
        let mut watched = Watched::default();
        for turns in (1..2000).step_by(2) {
            assert_eq!(watched.after_ms(EVERY_MS, turns), None);
            for _ in 0..3 {
                assert_eq!(
                    watched.after(Duration::from_micros(5), turns),
                    None,
                    "it has worked for microseconds"
                );
            }
        }
        // The time counts, not the number of looks.
        let looks: Vec<_> = (0..=EVERY_MS).map(|_| watched.after_ms(1, 2001)).collect();
        assert!(looks[..EVERY_MS as usize].iter().all(Option::is_none), "{looks:?}");
        assert_eq!(looks[EVERY_MS as usize], blocked(EVERY_MS, 1));
    }
}
