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
pub(crate) struct Pulses {
    beats: Box<[Beat]>,
    /// The watchdog sleeps because all workers do: the next active worker wakes it.
    is_watch_asleep: AtomicBool,
}

impl Pulses {
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
pub(crate) struct Pulse {
    pulses: Arc<Pulses>,
    worker: usize,
    watch: Thread,
}

impl Pulse {
    pub(crate) fn new(pulses: Arc<Pulses>, worker: usize, watch: Thread) -> Self {
        Self { pulses, worker, watch }
    }

    /// Marks the worker as active. May miss that the watchdog has just fallen asleep; its sleep is bounded.
    pub(crate) fn wake(&self) {
        self.step(1);
        if self.pulses.is_watch_asleep.load(Ordering::Relaxed) {
            self.pulses.set_watch_asleep(false);
            self.watch.unpark();
        }
    }

    /// Marks the worker as asleep.
    pub(crate) fn sleep(&self) {
        self.step(0);
    }

    /// Advances to the next number of this parity.
    fn step(&self, parity: u64) {
        let turns = &self.pulses.beats[self.worker].turns;
        let now = turns.load(Ordering::Relaxed);
        if now % 2 != parity {
            turns.store(now.wrapping_add(1), Ordering::Relaxed);
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.sleep();
    }
}

#[cfg(test)]
mod tests {
    use super::{Pulse, Pulses};

    #[test]
    fn a_worker_is_at_work_or_asleep() {
        let pulses = Pulses::new(2);
        let pulse = Pulse::new(pulses.clone(), 1, std::thread::current());
        assert!(pulses.are_all_asleep());
        pulse.sleep();
        assert_eq!(pulses.turns(1), 0);
        pulse.wake();
        assert!(!pulses.are_all_asleep());
        pulse.wake();
        assert_eq!(pulses.turns(1), 1);
        pulse.sleep();
        assert!(pulses.are_all_asleep());
        assert_eq!((pulses.turns(0), pulses.turns(1)), (0, 2));
        pulse.wake();
        drop(pulse);
        assert!(pulses.are_all_asleep(), "a worker that has ended counts as asleep");
    }
}
