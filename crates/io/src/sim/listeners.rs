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
    /// Its number.
    pub(super) id: ListenerId,
    /// True during a removal: closed when its queue is empty (A8).
    pub(super) is_leaving: bool,
    /// True after a removal.
    pub(super) is_gone: bool,
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
    /// Those of the start, then the inbox's, then those added.
    pub(super) all: Vec<SimListener>,
    /// Index of the inbox's, if any: connections taken from it, to be reported.
    inbox_at: Option<usize>,
    pub(super) inbox: Inbox<SimArrival>,
    pub(super) state: AcceptState,
    /// Failures requested by the test.
    pub(super) failures: VecDeque<AcceptError>,
}

impl Listeners {
    pub(super) fn new(count: u16, inbox: Inbox<SimArrival>) -> Self {
        let mut all: Vec<_> = (0..count).map(|id| SimListener { id, ..SimListener::default() }).collect();
        let inbox_at = (!inbox.is_over()).then_some(all.len());
        all.extend(inbox_at.map(|_| SimListener::default()));
        Self { all, inbox_at, inbox, state: AcceptState::Open, failures: VecDeque::new() }
    }

    /// Adds a listener.
    pub(super) fn add(&mut self, id: ListenerId) {
        if matches!(self.state, AcceptState::Open | AcceptState::Paused) {
            self.all.push(SimListener { id, ..SimListener::default() });
        }
    }

    /// Begins to remove a listener.
    pub(super) fn remove(&mut self, id: ListenerId) -> bool {
        let is_serving = matches!(self.state, AcceptState::Open | AcceptState::Paused);
        let Some(index) = self.position(id).filter(|_| is_serving) else { return false };
        !std::mem::replace(&mut self.all[index].is_leaving, true)
    }

    /// Returns the index of the latest listener with this number.
    fn position(&self, id: ListenerId) -> Option<usize> {
        (0..self.all.len()).rev().find(|index| {
            let listener = &self.all[*index];
            listener.id == id && !listener.is_gone && Some(*index) != self.inbox_at
        })
    }

    /// Returns the inbox's listener.
    fn of_inbox(&mut self) -> Option<&mut SimListener> {
        self.all.get_mut(self.inbox_at?)
    }

    fn is_inbox_emptied(&mut self) -> bool {
        self.of_inbox().is_none_or(|listener| listener.queue.is_empty())
    }

    pub(super) fn push(&mut self, listener: ListenerId, arrival: SimArrival) {
        let is_stopped = self.state == AcceptState::Stopped;
        let found = self.position(listener).map(|index| &mut self.all[index]);
        match found.filter(|found| !is_stopped && !found.is_dead) {
            Some(found) => found.queue.push_back((arrival, listener)),
            None => arrival.wire.borrow_mut().refuse(),
        }
    }

    /// Fails a listener; resets its queued connections.
    pub(super) fn kill(&mut self, listener: ListenerId, errno: i32) {
        let index = self.position(listener).expect("the test has made it");
        let listener = &mut self.all[index];
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
        if !is_full || self.is_inbox_emptied() {
            self.inbox.release(is_full);
        }
    }

    /// Ends a hold once the inbox's connections are taken, unless accepting is paused.
    pub(super) fn release_emptied_inbox(&mut self) {
        let is_open = matches!(self.state, AcceptState::Open | AcceptState::Stopping);
        if is_open && self.is_inbox_emptied() {
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
        let Some(listener) = self.inbox_at.and_then(|index| self.all.get_mut(index)) else { return };
        while listener.queue.len() < ACCEPTS_PER_TURN_MAX
            && let Some(handed) = self.inbox.take()
        {
            listener.queue.push_back(handed);
        }
    }
}
