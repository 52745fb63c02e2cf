//! Connections that wait for their part of a turn.

use super::slots::Flags;
use crate::Token;

/// In the place of the turn's end: nobody was served in this turn.
const OPEN: usize = usize::MAX;

/// A line of connections: each waits in it at most once, of which a flag of its slot tells.
#[derive(Debug)]
pub(crate) struct Line {
    flag: Flags,
    /// Those that were served in this turn, the one being served, those that wait.
    line: Vec<Token>,
    /// How many of `line` were served.
    served: usize,
    /// How much of `line` belongs to this turn, or `OPEN`.
    turn_end: usize,
    /// Those that found the turn's share used up by others: the first ones of the next turn.
    passed_over: Vec<Token>,
}

impl Line {
    /// An empty one, of which `flag` tells.
    pub(crate) fn new(flag: Flags) -> Self {
        Self { flag, line: Vec::new(), served: 0, turn_end: OPEN, passed_over: Vec::new() }
    }

    /// Puts a connection at the end, unless it stands in the line.
    pub(crate) fn enqueue(&mut self, token: Token, flags: &mut Flags) {
        if !flags.has(self.flag) {
            flags.set(self.flag);
            self.line.push(token);
        }
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.served == self.line.len() && self.passed_over.is_empty()
    }

    /// Makes what was for the next turn this turn's.
    pub(crate) fn begin_turn(&mut self) {
        if self.is_empty() {
            self.line.clear();
        } else {
            self.lead_with_passed_over();
        }
        self.served = 0;
        self.turn_end = OPEN;
    }

    /// Those that were passed over take the places of those that were served.
    #[inline(never)]
    fn lead_with_passed_over(&mut self) {
        self.line.splice(..self.served, self.passed_over.drain(..));
    }

    /// The connection that is to be served now.
    pub(crate) fn first(&mut self) -> Option<Token> {
        if self.turn_end == OPEN {
            self.turn_end = self.line.len();
        }
        if self.served < self.turn_end { self.line.get(self.served).copied() } else { None }
    }

    /// Takes the first out, which is no longer open. `first` has given it in this turn.
    pub(crate) fn leave(&mut self) {
        debug_assert!(
            self.served < self.turn_end && self.turn_end != OPEN,
            "one leaves for each that was first"
        );
        self.served += 1;
    }

    /// Takes the first out, of which these are the flags.
    pub(crate) fn retire(&mut self, flags: &mut Flags) {
        self.leave();
        flags.clear(self.flag);
    }

    /// The connection was taken out for want of a share: it is one of the first of the next turn.
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
