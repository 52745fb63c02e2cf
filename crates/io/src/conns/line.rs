//! Connections that wait for their share of a turn.

use super::slots::Flags;
use crate::Token;

/// Value of `turn_end` before the turn's first connection was served.
const OPEN: usize = usize::MAX;

/// A queue of connections, each at most once, which a flag of its slot marks.
#[derive(Debug)]
pub(crate) struct Line {
    flag: Flags,
    /// Connections served in this turn, the one being served, then those waiting.
    line: Vec<Token>,
    /// Number of connections in `line` that were served.
    served: usize,
    /// Number of connections in `line` that belong to this turn, or `OPEN`.
    turn_end: usize,
    /// Connections that found the turn's share used up: the first ones of the next turn.
    passed_over: Vec<Token>,
}

impl Line {
    /// Creates an empty queue that marks its members with `flag`.
    pub(crate) fn new(flag: Flags) -> Self {
        Self { flag, line: Vec::new(), served: 0, turn_end: OPEN, passed_over: Vec::new() }
    }

    /// Appends a connection unless it is queued.
    pub(crate) fn enqueue(&mut self, token: Token, flags: &mut Flags) {
        if !flags.has(self.flag) {
            flags.set(self.flag);
            self.line.push(token);
        }
    }

    /// Returns whether no connection waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.served == self.line.len() && self.passed_over.is_empty()
    }

    /// Moves connections deferred to the next turn into this one.
    pub(crate) fn begin_turn(&mut self) {
        if self.is_empty() {
            self.line.clear();
        } else {
            self.lead_with_passed_over();
        }
        self.served = 0;
        self.turn_end = OPEN;
    }

    /// Replaces the served connections by those that found no share left.
    #[inline(never)]
    fn lead_with_passed_over(&mut self) {
        self.line.splice(..self.served, self.passed_over.drain(..));
    }

    /// Returns the connection to serve now.
    pub(crate) fn first(&mut self) -> Option<Token> {
        if self.turn_end == OPEN {
            self.turn_end = self.line.len();
        }
        if self.served < self.turn_end { self.line.get(self.served).copied() } else { None }
    }

    /// Removes the first connection, which is closed. `first` has returned it in this turn.
    pub(crate) fn leave(&mut self) {
        debug_assert!(
            self.served < self.turn_end && self.turn_end != OPEN,
            "one leaves for each that was first"
        );
        self.served += 1;
    }

    /// Removes the first connection, whose flags these are.
    pub(crate) fn retire(&mut self, flags: &mut Flags) {
        self.leave();
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
    use super::{Flags, Line};
    use crate::Token;

    #[test]
    fn who_comes_when_somebody_was_served_waits_for_the_next_turn() {
        let mut line = Line::new(Flags::QUEUED);
        let [first, second, late] = [1, 2, 3].map(|slot| Token::new(slot, 0));
        let mut flags = [Flags::default(); 3];
        line.enqueue(first, &mut flags[0]);
        line.enqueue(first, &mut flags[0]);
        line.begin_turn();
        line.enqueue(second, &mut flags[1]);
        assert_eq!(line.first(), Some(first));
        line.enqueue(late, &mut flags[2]);
        // Its connection is closed, so it has no flags.
        line.leave();
        assert_eq!(line.first(), Some(second));
        line.retire(&mut flags[1]);
        assert!(!flags[1].has(Flags::QUEUED));
        line.pass_over(second, &mut flags[1]);
        assert!(line.first().is_none() && !line.is_empty());
        line.begin_turn();
        assert_eq!(line.first(), Some(second), "before the others");
        line.retire(&mut flags[1]);
        assert_eq!(line.first(), Some(late));
        line.retire(&mut flags[2]);
        assert!(line.first().is_none() && line.is_empty());
    }
}
