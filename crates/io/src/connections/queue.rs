//! Pending work: completions to report, sends to resume, connections to read.

use std::collections::VecDeque;

use super::slots::{Flags, Slots};
use crate::Token;
use crate::limits::{
    SEND_BYTES_PER_TURN_ALL_MAX, SEND_BYTES_PER_TURN_MAX, SEND_LONG_BYTES_PER_TURN_MAX, SEND_REST_PART,
};

/// An event caused by a verb, for `next` to return.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion {
    /// The send with this index has ended.
    Sent { token: Token, send: u32 },
    /// The connection is closed.
    Closed { token: Token },
}

/// Pending work of this turn and the next: at most one `Sent` and one `Closed` per connection.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Connections with a send to begin or to resume by hand. They are served after all other work, so that
    /// short work doesn't wait for long.
    sends: FairQueue,
    /// Reported as soon as possible.
    completions: VecDeque<Completion>,
    /// Reported from the next turn on: see [`Queue::complete`].
    deferred: VecDeque<Completion>,
    /// True if the last event was a `Sent`.
    after_sent: bool,
    /// True if the waker was used.
    pub(crate) woken: bool,
    /// Bytes that new sends have passed on in this turn, over all connections.
    first_bytes: u64,
    /// Bytes that queued sends have passed on in this turn. New and queued sends have separate budgets.
    sent_bytes: u64,
    /// Turn number, wrapping.
    pub(crate) turn: u16,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            sends: FairQueue::new(Flags::QUEUED),
            completions: VecDeque::new(),
            deferred: VecDeque::new(),
            after_sent: false,
            woken: false,
            first_bytes: 0,
            sent_bytes: 0,
            turn: 0,
        }
    }
}

impl Queue {
    /// Queues a connection with a send unless it is queued.
    pub(crate) fn enqueue(&mut self, token: Token, flags: &mut Flags) {
        self.sends.enqueue(token, flags);
    }

    /// Returns whether a send that begins now may complete in this turn: see [`Queue::complete`].
    pub(crate) fn may_complete_now(&self) -> bool {
        !self.after_sent
    }

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
        (self.first_bytes, self.sent_bytes) = (0, 0);
    }

    /// Returns the bytes that a new send with `bytes_left` may pass on without being queued.
    pub(crate) fn first_share(&self, bytes_left: u64) -> u64 {
        let share = SEND_BYTES_PER_TURN_ALL_MAX.saturating_sub(self.first_bytes);
        if share < bytes_left { 0 } else { share }
    }

    /// Counts bytes that a new send has passed on.
    pub(crate) fn add_first_bytes(&mut self, bytes: u64) {
        self.first_bytes += bytes;
    }

    /// Returns the bytes that a queued send with `bytes_left` may pass on now. One that is too long for a
    /// turn anyway gets smaller shares.
    pub(crate) fn share(&self, bytes_left: u64) -> u64 {
        let bound = if bytes_left <= SEND_BYTES_PER_TURN_MAX {
            SEND_BYTES_PER_TURN_ALL_MAX
        } else {
            SEND_LONG_BYTES_PER_TURN_MAX
        };
        let share = bound.saturating_sub(self.sent_bytes);
        if share < bytes_left.min(bound / SEND_REST_PART) { 0 } else { share }
    }

    /// Counts bytes that a queued send has passed on.
    pub(crate) fn add_sent_bytes(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// Records whether the next event is a `Sent`.
    pub(crate) fn note_event(&mut self, is_sent: bool) {
        self.after_sent = is_sent;
    }

    /// Returns the next completion to report.
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// Returns the connection to resume sending now. The first call of a turn fixes the connections of the
    /// turn.
    pub(crate) fn first(&mut self) -> Option<Token> {
        self.sends.first()
    }

    /// Removes the first connection. It returns in the next turn if its send continues, ahead of others if it
    /// found no budget left.
    pub(crate) fn retire<X: Default>(&mut self, token: Token, slots: &mut Slots<X>) {
        let Some(slot) = slots.open_mut(token) else { return self.sends.remove_first() };
        self.sends.retire(&mut slot.flags);
        if slot.flags.can_send() {
            let others_sent = self.sent_bytes
                > SEND_LONG_BYTES_PER_TURN_MAX - SEND_LONG_BYTES_PER_TURN_MAX / SEND_REST_PART;
            if others_sent && slot.turn_bytes(self.turn) == 0 {
                self.sends.pass_over(token, &mut slot.flags);
            } else {
                self.sends.enqueue(token, &mut slot.flags);
            }
        }
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
    use std::os::unix::net::UnixStream;

    use super::{
        FairQueue, Flags, Queue, SEND_BYTES_PER_TURN_ALL_MAX, SEND_BYTES_PER_TURN_MAX,
        SEND_LONG_BYTES_PER_TURN_MAX, SEND_REST_PART, Slots, Token,
    };

    #[test]
    fn a_small_rest_of_a_turn_is_left() {
        let lengths = [
            (SEND_BYTES_PER_TURN_MAX, SEND_BYTES_PER_TURN_ALL_MAX),
            (SEND_BYTES_PER_TURN_MAX + 1, SEND_LONG_BYTES_PER_TURN_MAX),
        ];
        for (len, bound) in lengths {
            let mut queue = Queue::default();
            let rest = bound / SEND_REST_PART;
            queue.add_sent_bytes(bound - rest);
            assert_eq!(queue.share(len), rest);
            queue.add_sent_bytes(1);
            assert_eq!(queue.share(len), 0);
        }
        let mut queue = Queue::default();
        queue.add_sent_bytes(SEND_BYTES_PER_TURN_ALL_MAX - 1000);
        assert_eq!((queue.share(1000), queue.share(1001)), (1000, 0), "the end of a send isn't deferred");
    }

    /// Short sends go first in any number; a queued send still finds budget, however much was sent from the
    /// queue.
    #[test]
    fn what_begins_and_what_stands_in_line_take_nothing_from_each_other() {
        let mut queue = Queue::default();
        queue.add_first_bytes(SEND_BYTES_PER_TURN_ALL_MAX);
        assert_eq!((queue.first_share(1), queue.share(1)), (0, SEND_BYTES_PER_TURN_ALL_MAX));
        queue.begin_turn();
        queue.add_sent_bytes(SEND_BYTES_PER_TURN_ALL_MAX);
        assert_eq!((queue.first_share(1), queue.share(1)), (SEND_BYTES_PER_TURN_ALL_MAX, 0));
        queue.begin_turn();
        assert_eq!(queue.first_share(1), queue.share(1));
    }

    #[test]
    fn who_finds_nothing_left_is_first_in_the_next_turn() {
        let (mut queue, mut slots) = (Queue::default(), Slots::<()>::new());
        let (served, _peer) = waiting(&mut queue, &mut slots);
        let (owed, _peer) = waiting(&mut queue, &mut slots);
        queue.begin_turn();
        assert_eq!(queue.first(), Some(served));
        queue.add_sent_bytes(SEND_BYTES_PER_TURN_ALL_MAX);
        let turn = queue.turn;
        slots.open_mut(served).expect("the slot is open").add_turn_bytes(turn, SEND_BYTES_PER_TURN_ALL_MAX);
        queue.retire(served, &mut slots);
        assert_eq!(queue.first(), Some(owed));
        queue.retire(owed, &mut slots);
        assert!(queue.first().is_none() && !queue.is_empty());
        queue.begin_turn();
        assert_eq!(queue.first(), Some(owed));
        queue.retire(owed, &mut slots);
        assert_eq!(queue.first(), Some(served));
    }

    /// Returns a queued connection with a send in flight, and its peer.
    fn waiting(queue: &mut Queue, slots: &mut Slots<()>) -> (Token, UnixStream) {
        let (socket, peer) = UnixStream::pair().expect("a pair");
        let token = slots.insert(socket.into());
        let slot = slots.open_mut(token).expect("the slot is open");
        slot.flags.set(Flags::WRITABLE);
        queue.enqueue(token, &mut slot.flags);
        (token, peer)
    }

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
