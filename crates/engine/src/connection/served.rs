//! Requests by connection, for their limit.

use shearwater_io::{SlotArray, Token};

/// Request counts by slot.
pub(crate) struct Served {
    counts: SlotArray<u32>,
    /// Limit; 0: unlimited.
    requests_max: u32,
    /// A request may be the last of its connection.
    may_end: bool,
}

impl Served {
    pub(crate) fn new(requests_max: u32) -> Self {
        Self { counts: SlotArray::new(), requests_max, may_end: requests_max > 0 }
    }

    /// Notes whether connections of removed listeners are open.
    pub(crate) fn check_leaving(&mut self, has_leaving: bool) {
        self.may_end = has_leaving || self.requests_max > 0;
    }

    /// Returns whether a request may be the last of its connection.
    #[inline]
    pub(crate) fn may_end(&self) -> bool {
        self.may_end
    }

    /// Resets the count of a slot for a new connection.
    pub(crate) fn open(&mut self, token: Token) {
        if self.requests_max > 0 {
            self.counts.grow_to(token.slot());
            self.counts[token.slot()] = 0;
        }
    }

    /// Frees the counts of slots from `slots` on.
    pub(crate) fn trim(&mut self, slots: usize) {
        self.counts.truncate(slots);
    }

    /// Counts a request; returns true if it is the last that its connection may send.
    #[inline]
    pub(crate) fn is_last(&mut self, token: Token) -> bool {
        self.requests_max > 0 && self.count(token)
    }

    fn count(&mut self, token: Token) -> bool {
        let count = &mut self.counts[token.slot()];
        *count = count.saturating_add(1);
        *count >= self.requests_max
    }
}

#[cfg(test)]
mod tests {
    use super::{Served, Token};

    #[test]
    fn counts_requests_of_each_connection_from_0() {
        let mut served = Served::new(2);
        let (one, other) = (Token::new(0, 0), Token::new(1, 0));
        served.open(one);
        served.open(other);
        assert_eq!([one, other, one, other].map(|token| served.is_last(token)), [false, false, true, true]);
        served.open(Token::new(0, 1));
        assert!(!served.is_last(Token::new(0, 1)), "a new connection in the slot");
    }

    #[test]
    fn counts_nothing_without_a_limit() {
        let mut served = Served::new(0);
        let token = Token::new(7, 0);
        served.open(token);
        assert!((0..100_000).all(|_| !served.is_last(token)));
        assert!(served.counts.get(7).is_none());
    }
}
