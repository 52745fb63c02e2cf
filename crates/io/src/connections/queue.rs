//! Pending work: completions to report, sends to resume, connections to read.

use std::collections::VecDeque;

use super::slots::Flags;
use crate::Token;
use crate::limits::{SEND_BYTES_PER_TURN_MAX, SEND_QUANTUM_BYTES};

/// Fraction of a turn or a quantum below which a remainder is left, unless it ends a send: a smaller one gains
/// little for its call.
const SHARE_PART: u64 = 4;

/// An event caused by a verb, for `next` to return.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion {
    /// The send with this index has ended.
    Sent { token: Token, send: u32 },
    /// The connection is closed.
    Closed { token: Token },
}

/// Pending work of this turn and the next: at most one `Sent` and one `Closed` per connection.
///
/// Sends take turns: round-robin, by a turn's budget. Each gets what is left of it; one that no turn can send
/// whole, what is left of the turn's first quantum. One for which too little is left is passed over, and
/// precedes the others in the next turn.
#[derive(Debug)]
pub(crate) struct Work {
    /// Connections with a send to begin or to resume by hand. They are served after all other work, so that
    /// short work doesn't wait for long.
    pub(crate) sends: FairQueue,
    /// Reported as soon as possible.
    pub(super) completions: VecDeque<Completion>,
    /// Reported from the next turn on: see [`Work::complete`].
    deferred: VecDeque<Completion>,
    /// True if the last event was a `Sent`: then a send that begins completes in the next turn.
    pub(crate) after_sent: bool,
    /// True if the waker was used.
    pub(crate) woken: bool,
    /// Bytes that sends at once have passed on in this turn. They have a budget of their own: neither kind
    /// starves the other.
    at_once_bytes: u64,
    /// Cost of the queued sends of this turn, in bytes.
    pub(super) cost: u64,
    /// Turn number, wrapping.
    pub(crate) turn: u8,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            sends: FairQueue::new(Flags::QUEUED),
            completions: VecDeque::new(),
            deferred: VecDeque::new(),
            after_sent: false,
            woken: false,
            at_once_bytes: 0,
            cost: 0,
            turn: 0,
        }
    }
}

impl Work {
    /// Queues the completion of a send. One begun after a `Sent` is deferred to the next turn: otherwise a
    /// worker with much to send and a fast peer would never end this one.
    pub(crate) fn complete(&mut self, token: Token, send: u32, flags: &mut Flags) {
        let completion = Completion::Sent { token, send };
        if self.after_sent {
            flags.set(Flags::SENT_DEFERRED);
            self.deferred.push_back(completion);
        } else {
            self.completions.push_back(completion);
        }
    }

    /// Queues the completion of a send that its connection's close has cancelled.
    pub(crate) fn cancelled(&mut self, token: Token, send: u32) {
        self.completions.push_back(Completion::Sent { token, send });
    }

    /// Queues a close, after the `Sent` that may still be due.
    pub(crate) fn closed(&mut self, token: Token, flags: Flags) {
        let completion = Completion::Closed { token };
        if flags.has(Flags::SENT_DEFERRED) {
            self.deferred.push_back(completion);
        } else {
            self.completions.push_back(completion);
        }
    }

    /// Returns whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.completions.is_empty() && self.deferred.is_empty() && !self.woken
    }

    /// Moves work deferred to the next turn into this one.
    pub(crate) fn begin_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        if !self.deferred.is_empty() {
            self.completions.append(&mut self.deferred);
        }
        self.sends.begin_turn();
        self.after_sent = false;
        (self.at_once_bytes, self.cost) = (0, 0);
    }

    /// Returns whether a send of `len` bytes in memory may pass all of them on at once, and counts it.
    pub(crate) fn takes_at_once(&mut self, len: u64) -> bool {
        let fits = len <= SEND_QUANTUM_BYTES && self.at_once_bytes + len <= SEND_BYTES_PER_TURN_MAX;
        self.at_once_bytes += if fits { len } else { 0 };
        fits
    }

    /// Returns whether the turn's budget of queued sends is used up.
    pub(super) fn is_spent(&self) -> bool {
        self.cost >= SEND_BYTES_PER_TURN_MAX
    }

    /// Returns the cost up to which a queued send with `left` bytes to go may pass bytes on now.
    pub(crate) fn share(&self, left: u64) -> u64 {
        let bound =
            if left <= SEND_BYTES_PER_TURN_MAX { SEND_BYTES_PER_TURN_MAX } else { SEND_QUANTUM_BYTES };
        let share = bound.saturating_sub(self.cost);
        if share < left.min(bound / SHARE_PART) { 0 } else { share }
    }
}

/// Value of `turn_end` before the turn's first connection was served.
const OPEN: usize = usize::MAX;

/// A queue of connections, each at most once, which a flag of its slot marks.
#[derive(Debug)]
pub(crate) struct FairQueue {
    flag: Flags,
    /// Connections served in this turn, the one being served, then those waiting.
    queue: Vec<Token>,
    /// Number of connections in `queue` that were served.
    served: usize,
    /// Number of connections in `queue` that belong to this turn, or `OPEN`.
    turn_end: usize,
    /// Connections that found the turn's share used up: the first ones of the next turn.
    passed_over: Vec<Token>,
}

impl FairQueue {
    /// Creates an empty queue that marks its members with `flag`.
    pub(crate) fn new(flag: Flags) -> Self {
        Self { flag, queue: Vec::new(), served: 0, turn_end: OPEN, passed_over: Vec::new() }
    }

    /// Appends a connection unless it is queued.
    pub(crate) fn enqueue(&mut self, token: Token, flags: &mut Flags) {
        if !flags.has(self.flag) {
            flags.set(self.flag);
            self.queue.push(token);
        }
    }

    /// Returns whether no connection waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.served == self.queue.len() && self.passed_over.is_empty()
    }

    /// Moves connections deferred to the next turn into this one.
    pub(crate) fn begin_turn(&mut self) {
        if self.is_empty() {
            self.queue.clear();
        } else {
            self.requeue_passed_over();
        }
        self.served = 0;
        self.turn_end = OPEN;
    }

    /// Replaces the served connections by those that found no share left.
    #[inline(never)]
    fn requeue_passed_over(&mut self) {
        self.queue.splice(..self.served, self.passed_over.drain(..));
    }

    /// Returns the connection to serve now.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<Token> {
        if self.turn_end == OPEN {
            self.turn_end = self.queue.len();
        }
        if self.served < self.turn_end { self.queue.get(self.served).copied() } else { None }
    }

    /// Leaves the connections that aren't served yet to the next turn.
    pub(crate) fn end_turn(&mut self) {
        self.turn_end = self.served;
    }

    /// Removes the first connection, which is closed. `first` has returned it in this turn.
    pub(crate) fn remove_first(&mut self) {
        debug_assert!(self.served < self.turn_end && self.turn_end != OPEN, "`first` precedes each removal");
        self.served += 1;
    }

    /// Removes the first connection, whose flags these are.
    pub(crate) fn retire(&mut self, flags: &mut Flags) {
        self.remove_first();
        flags.clear(self.flag);
    }

    /// Queues a connection that found no share left at the head of the next turn.
    pub(crate) fn pass_over(&mut self, token: Token, flags: &mut Flags) {
        flags.set(self.flag);
        self.passed_over.push(token);
    }
}

#[cfg(test)]
mod tests {
    use super::{FairQueue, Flags, SEND_BYTES_PER_TURN_MAX, SEND_QUANTUM_BYTES, SHARE_PART, Work};
    use crate::Token;

    #[test]
    fn shares_of_a_turn() {
        const TURN: u64 = SEND_BYTES_PER_TURN_MAX;
        const LONG: u64 = TURN + 1;
        const TURN_PART: u64 = TURN / SHARE_PART;
        const QUANTUM_PART: u64 = SEND_QUANTUM_BYTES / SHARE_PART;
        for (what, cost, left, share) in [
            ("the last bytes of a turn", TURN - 1000, 1000, 1000),
            ("more than is left of the turn waits", TURN - 1000, 1001, 0),
            ("unless a good part of it is left", TURN - TURN_PART, TURN, TURN_PART),
            ("and no less", TURN - TURN_PART + 1, TURN, 0),
            ("a whole turn", 0, TURN, TURN),
            ("a quantum of a long send", 0, LONG, SEND_QUANTUM_BYTES),
            ("a useful part of the quantum", SEND_QUANTUM_BYTES - QUANTUM_PART, LONG, QUANTUM_PART),
            ("a smaller part waits", SEND_QUANTUM_BYTES - QUANTUM_PART + 1, LONG, 0),
            (
                "after a long send there is room for short ones",
                SEND_QUANTUM_BYTES,
                1,
                TURN - SEND_QUANTUM_BYTES,
            ),
            ("more was spent than there was", TURN + 7, 1, 0),
        ] {
            let work = Work { cost, ..Work::default() };
            assert_eq!(work.share(left), share, "{what}");
        }
    }

    /// Sends at once go first in any number; a queued send still finds its budget.
    #[test]
    fn sends_at_once_and_queued_sends_have_separate_budgets() {
        let mut work = Work::default();
        while work.takes_at_once(SEND_QUANTUM_BYTES) {}
        assert_eq!(work.share(1), SEND_BYTES_PER_TURN_MAX);
        work.begin_turn();
        work.cost = SEND_BYTES_PER_TURN_MAX;
        assert!(work.takes_at_once(SEND_QUANTUM_BYTES) && work.share(1) == 0);
        assert!(!work.takes_at_once(SEND_QUANTUM_BYTES + 1), "a long send is queued");
        work.begin_turn();
        assert_eq!(work.share(1), SEND_BYTES_PER_TURN_MAX);
    }

    #[test]
    fn a_send_without_budget_is_first_in_the_next_turn() {
        let mut work = Work::default();
        let [served, waiting] = [1, 2].map(|slot| Token::new(slot, 0));
        let mut flags = [Flags::default(); 2];
        work.sends.enqueue(served, &mut flags[0]);
        work.sends.enqueue(waiting, &mut flags[1]);
        assert_eq!(work.sends.first(), Some(served));
        work.sends.retire(&mut flags[0]);
        work.sends.enqueue(served, &mut flags[0]);
        assert_eq!(work.sends.first(), Some(waiting));
        work.sends.end_turn();
        assert!(work.sends.first().is_none() && !work.is_empty());
        work.begin_turn();
        assert_eq!(work.sends.first(), Some(waiting));
        work.sends.remove_first();
        assert_eq!(work.sends.first(), Some(served));
    }

    #[test]
    fn connections_queued_after_the_first_was_served_wait_for_the_next_turn() {
        let mut queue = FairQueue::new(Flags::QUEUED);
        let [first, second, late] = [1, 2, 3].map(|slot| Token::new(slot, 0));
        let mut flags = [Flags::default(); 3];
        queue.enqueue(first, &mut flags[0]);
        queue.enqueue(first, &mut flags[0]);
        queue.begin_turn();
        queue.enqueue(second, &mut flags[1]);
        assert_eq!(queue.first(), Some(first));
        queue.enqueue(late, &mut flags[2]);
        // Its connection is closed, so it has no flags.
        queue.remove_first();
        assert_eq!(queue.first(), Some(second));
        queue.retire(&mut flags[1]);
        assert!(!flags[1].has(Flags::QUEUED));
        queue.pass_over(second, &mut flags[1]);
        assert!(queue.first().is_none() && !queue.is_empty());
        queue.begin_turn();
        assert_eq!(queue.first(), Some(second), "before the others");
        queue.retire(&mut flags[1]);
        assert_eq!(queue.first(), Some(late));
        queue.retire(&mut flags[2]);
        assert!(queue.first().is_none() && queue.is_empty());
    }
}
