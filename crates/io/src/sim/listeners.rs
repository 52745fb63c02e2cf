//! The simulated kernel's listeners: their queues, and how accepting stands.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use super::wire::Wire;
use crate::{AcceptError, ListenerId};

/// A connection in a listener's queue.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) wire: Rc<RefCell<Wire>>,
    pub(super) address: SocketAddr,
}

/// A listener and its queue.
#[derive(Debug, Default)]
pub(super) struct Listener {
    pub(super) queue: VecDeque<Waiting>,
    /// How many of the queue's first are taken from it already: they come also while accepting is paused (A3).
    pub(super) taken: usize,
    pub(super) held_until_ms: u64,
    pub(super) idle_turn: u64,
    pub(super) hindered: bool,
    /// Accepted in this turn.
    pub(super) turn: u64,
    pub(super) accepted: usize,
}

/// How accepting stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Paused,
    /// Accepting what is queued (A4).
    Stopping,
    /// Stopping, but paused for want of descriptors.
    StoppingPaused,
    Stopped,
}

/// All listeners of one kernel.
#[derive(Debug)]
pub(super) struct Listeners {
    pub(super) all: Vec<Listener>,
    pub(super) state: State,
    /// Failures that the test has ordered.
    pub(super) failures: VecDeque<AcceptError>,
}

impl Listeners {
    pub(super) fn new(count: u16) -> Self {
        Self {
            all: (0..count).map(|_| Listener::default()).collect(),
            state: State::Open,
            failures: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state == State::Stopped
    }

    pub(super) fn waiting(&self) -> usize {
        self.all.iter().map(|listener| listener.queue.len()).sum()
    }

    pub(super) fn push(&mut self, listener: ListenerId, waiting: Waiting) {
        self.all[usize::from(listener)].queue.push_back(waiting);
    }

    pub(super) fn fail_next(&mut self, error: AcceptError) {
        self.failures.push_back(error);
    }

    /// When listeners that are held up go on.
    pub(super) fn due_ms(&self) -> impl Iterator<Item = u64> + '_ {
        self.all.iter().map(|listener| listener.held_until_ms)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.iter().all(|listener| listener.queue.is_empty())
    }
}
