//! A worker's heartbeat for the watchdog on another thread. The worker only stores; nothing here waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

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

#[cfg(test)]
mod tests {
    use super::{Heartbeat, Heartbeats};

    #[test]
    fn a_worker_is_at_work_or_asleep() {
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
}
