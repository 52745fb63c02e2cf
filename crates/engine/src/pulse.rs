//! A worker's sign of life, for a watchdog on another thread. The worker only stores; nothing here waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

/// What a worker says of itself, once a turn.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Beat {
    /// Turns begun; even while it sleeps, odd while it works.
    turns: AtomicU64,
}

/// The beats of all workers, and the watchdog that listens.
#[derive(Debug)]
pub(crate) struct Pulses {
    beats: Box<[Beat]>,
    /// The watchdog sleeps because all workers do: who works wakes it.
    is_watch_asleep: AtomicBool,
}

impl Pulses {
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            beats: (0..workers).map(|_| Beat::default()).collect(),
            is_watch_asleep: AtomicBool::new(false),
        })
    }

    /// Turns of a worker: odd while it is at work.
    pub(crate) fn turns(&self, worker: usize) -> u64 {
        self.beats[worker].turns.load(Ordering::Relaxed)
    }

    /// Whether no worker is at work.
    pub(crate) fn are_all_asleep(&self) -> bool {
        (0..self.beats.len()).all(|worker| !is_at_work(self.turns(worker)))
    }

    pub(crate) fn set_watch_asleep(&self, is_asleep: bool) {
        self.is_watch_asleep.store(is_asleep, Ordering::Relaxed);
    }
}

/// Whether a worker with so many turns is at work.
pub(crate) fn is_at_work(turns: u64) -> bool {
    turns % 2 == 1
}

/// A worker's side. One that is gone is asleep.
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

    /// The worker begins to work. That the watchdog has just fallen asleep may be missed: it looks again by itself.
    pub(crate) fn wake(&self) {
        self.step(1);
        if self.pulses.is_watch_asleep.load(Ordering::Relaxed) {
            self.pulses.set_watch_asleep(false);
            self.watch.unpark();
        }
    }

    /// The worker is about to wait.
    pub(crate) fn sleep(&self) {
        self.step(0);
    }

    /// To the next number that is odd or even.
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
        assert!(pulses.are_all_asleep(), "a worker that has ended keeps nobody waiting");
    }
}
