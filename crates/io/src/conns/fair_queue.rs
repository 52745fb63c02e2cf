//! Connections that wait for their share of a turn.

use super::slots::Flags;
use crate::Token;

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
    pub(crate) fn first(&mut self) -> Option<Token> {
        if self.turn_end == OPEN {
            self.turn_end = self.queue.len();
        }
        if self.served < self.turn_end { self.queue.get(self.served).copied() } else { None }
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
    use super::{FairQueue, Flags};
    use crate::Token;

    #[test]
    fn who_comes_when_somebody_was_served_waits_for_the_next_turn() {
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
