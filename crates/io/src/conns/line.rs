//! Connections that wait for their part of a turn.

use std::collections::VecDeque;

use super::slots::Flags;
use crate::Token;

/// A line of connections: each stands in it at most once, of which a flag of its slot tells.
#[derive(Debug)]
pub(crate) struct Line {
    flag: Flags,
    /// The first is the one being served.
    waiting: VecDeque<Token>,
    /// Those that found the turn's share used up by others: the first ones of the next turn.
    passed_over: VecDeque<Token>,
    /// How many of `waiting` belong to this turn; `None` before the first is served.
    this_turn: Option<usize>,
}

impl Line {
    /// An empty one, of which `flag` tells.
    pub(crate) fn new(flag: Flags) -> Self {
        Self { flag, waiting: VecDeque::new(), passed_over: VecDeque::new(), this_turn: None }
    }

    /// Puts a connection at the end, unless it stands in the line.
    pub(crate) fn enqueue(&mut self, token: Token, flags: &mut Flags) {
        if !flags.has(self.flag) {
            flags.set(self.flag);
            self.waiting.push_back(token);
        }
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.passed_over.is_empty()
    }

    /// Makes what was for the next turn this turn's.
    pub(crate) fn begin_turn(&mut self) {
        if !self.passed_over.is_empty() {
            self.passed_over.append(&mut self.waiting);
            std::mem::swap(&mut self.passed_over, &mut self.waiting);
        }
        self.this_turn = None;
    }

    /// The connection that is to be served now.
    pub(crate) fn first(&mut self) -> Option<Token> {
        let left = *self.this_turn.get_or_insert(self.waiting.len());
        if left == 0 { None } else { self.waiting.front().copied() }
    }

    /// Takes the first out, which is no longer open. `first` has given it in this turn.
    pub(crate) fn leave(&mut self) {
        debug_assert!(self.this_turn.is_some_and(|left| left > 0), "one leaves for each that was first");
        self.waiting.pop_front();
        self.this_turn = self.this_turn.map(|left| left - 1);
    }

    /// Takes the first out, of which these are the flags.
    pub(crate) fn retire(&mut self, flags: &mut Flags) {
        self.leave();
        flags.clear(self.flag);
    }

    /// The connection was taken out for want of a share: it is one of the first of the next turn.
    pub(crate) fn pass_over(&mut self, token: Token, flags: &mut Flags) {
        flags.set(self.flag);
        self.passed_over.push_back(token);
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
        // Its connection is closed: nobody's flags are left.
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
