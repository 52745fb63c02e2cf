//! The simulated kernel's listeners: their queues, and the state of accepting.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use super::wire::Wire;
use crate::limits::ACCEPTS_PER_TURN_MAX;
use crate::{AcceptError, Inbox, ListenerId};

/// A connection not yet accepted, or sent by an acceptor: see [`SimNet::arrive`](super::SimNet::arrive).
#[derive(Debug)]
pub struct SimArrival {
    pub(super) wire: Rc<RefCell<Wire>>,
    pub(super) address: SocketAddr,
}

/// A listener and its queue.
#[derive(Debug, Default)]
pub(super) struct SimListener {
    pub(super) queue: VecDeque<(SimArrival, ListenerId)>,
    /// Number of queued connections already taken: they come even while accepting is paused (A3).
    pub(super) taken: usize,
    pub(super) held_until_ms: u64,
    pub(super) idle_turn: u64,
    pub(super) deferred: bool,
    /// The `errno` of its failure, still to be reported.
    pub(super) death: Option<i32>,
    /// True if it has failed.
    pub(super) is_dead: bool,
    /// Accepted in this turn.
    pub(super) turn: u64,
    pub(super) accepted: usize,
}

/// State of accepting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptState {
    Open,
    Paused,
    /// Accepting what is queued (A4).
    Stopping,
    /// Stopping, but paused for lack of descriptors.
    StoppingPaused,
    Stopped,
}

/// All listeners of one kernel.
#[derive(Debug)]
pub(super) struct Listeners {
    /// The last is the inbox's, if any: connections taken from it, to be reported.
    pub(super) all: Vec<SimListener>,
    pub(super) inbox: Inbox<SimArrival>,
    pub(super) state: AcceptState,
    /// Failures requested by the test.
    pub(super) failures: VecDeque<AcceptError>,
}

impl Listeners {
    pub(super) fn new(count: u16, inbox: Inbox<SimArrival>) -> Self {
        let count = usize::from(count) + usize::from(!inbox.is_over());
        Self {
            all: (0..count).map(|_| SimListener::default()).collect(),
            inbox,
            state: AcceptState::Open,
            failures: VecDeque::new(),
        }
    }

    pub(super) fn push(&mut self, listener: ListenerId, arrival: SimArrival) {
        let SimListener { queue, is_dead, .. } = &mut self.all[usize::from(listener)];
        if self.state == AcceptState::Stopped || *is_dead {
            arrival.wire.borrow_mut().refuse();
        } else {
            queue.push_back((arrival, listener));
        }
    }

    /// Fails a listener; resets its queued connections.
    pub(super) fn kill(&mut self, listener: ListenerId, errno: i32) {
        let listener = &mut self.all[usize::from(listener)];
        (listener.death, listener.is_dead) = (Some(errno), true);
        listener.queue.drain(..).for_each(|(arrival, _)| arrival.wire.borrow_mut().refuse());
    }

    /// Returns whether no connection waits and none can come.
    pub(super) fn is_over(&self) -> bool {
        let is_empty = |listener: &SimListener| listener.queue.is_empty() && listener.death.is_none();
        self.inbox.is_over() && self.all.iter().all(is_empty)
    }

    /// Resumes taking connections from the inbox.
    pub(super) fn release_inbox(&mut self, is_full: bool) {
        if !is_full || self.all.last().is_none_or(|listener| listener.queue.is_empty()) {
            self.inbox.release(is_full);
        }
    }

    /// Ends a hold once the inbox's connections are taken, unless accepting is paused.
    pub(super) fn release_emptied_inbox(&mut self) {
        let is_open = matches!(self.state, AcceptState::Open | AcceptState::Stopping);
        if is_open && self.all.last().is_some_and(|listener| listener.queue.is_empty()) {
            self.inbox.release(false);
        }
    }

    /// Returns whether the inbox may be read, and is worth it.
    pub(super) fn is_inbox_due(&self) -> bool {
        self.inbox.is_due() && matches!(self.state, AcceptState::Open | AcceptState::Stopping)
    }

    /// Takes a turn's share of connections from the inbox.
    pub(super) fn empty_inbox(&mut self) {
        if !self.is_inbox_due() {
            return;
        }
        let Some(listener) = self.all.last_mut() else { return };
        while listener.queue.len() < ACCEPTS_PER_TURN_MAX
            && let Some(handed) = self.inbox.take()
        {
            listener.queue.push_back(handed);
        }
    }
}
