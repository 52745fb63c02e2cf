//! What is left to do: completions to be told, connections to be served.

use std::collections::VecDeque;

use super::slots::{Flags, Slots};
use crate::Token;
use crate::limits::{
    SEND_BYTES_PER_TURN_ALL_MAX, SEND_BYTES_PER_TURN_MAX, SEND_LONG_BYTES_PER_TURN_MAX, SEND_REST_PART,
};

/// Something that a verb has brought about and `next` has to say.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completion {
    /// The send of this index has ended.
    Sent { token: Token, send: u32 },
    /// The connection is closed.
    Closed { token: Token },
}

/// What is left to do in this turn and the next.
///
/// `ready` and `passed_over` hold a connection at most once ([`Flags::QUEUED`]); the completions at most a `Sent` and a `Closed` each.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Connections to be served; the first is the one being served.
    ready: VecDeque<Token>,
    /// Connections that found the turn's bytes or receives used up by others: the first ones of the next turn.
    passed_over: VecDeque<Token>,
    /// How many of those passed over in the turn before have still to be served in this one. They stand first in `ready`.
    owed: usize,
    /// How many of `ready` belong to this turn. What is appended meanwhile belongs to the next.
    this_turn: usize,
    /// Given out as soon as possible.
    completions: VecDeque<Completion>,
    /// Given out from the next turn on: see [`Queue::complete`].
    deferred: VecDeque<Completion>,
    /// Whether the event given last was a `Sent`.
    after_sent: bool,
    /// Whether the waker was used.
    pub(crate) woken: bool,
    /// Whether the kernel may have had more events than the last wait took.
    pub(crate) has_more: bool,
    /// Bytes that sends have handed over in this turn, all connections together.
    sent_bytes: u64,
    /// Number of the turn, wrapping.
    pub(crate) turn: u16,
}

impl Queue {
    /// Puts a connection into the queue, unless it stands there.
    pub(crate) fn enqueue(&mut self, token: Token, flags: &mut Flags) {
        if !flags.has(Flags::QUEUED) {
            flags.set(Flags::QUEUED);
            self.ready.push_back(token);
        }
    }

    /// Whether the end of a send that begins now may be told in this turn: see [`Queue::complete`].
    pub(crate) fn tells_at_once(&self) -> bool {
        !self.after_sent
    }

    /// Announces the end of a send. One that was begun in answer to a `Sent` waits for the next turn: otherwise a
    /// worker with much to send and a fast peer would never come to the end of this one.
    pub(crate) fn complete(&mut self, token: Token, send: u32, flags: &mut Flags) {
        let completion = Completion::Sent { token, send };
        if self.after_sent {
            flags.set(Flags::SENT_DEFERRED);
            self.deferred.push_back(completion);
        } else {
            self.completions.push_back(completion);
        }
    }

    /// Announces a send that its connection's close has cut off.
    pub(crate) fn cancelled(&mut self, token: Token, send: u32) {
        self.completions.push_back(Completion::Sent { token, send });
    }

    /// Announces a close, behind the `Sent` that may still be owed.
    pub(crate) fn closed(&mut self, token: Token, flags: Flags) {
        let completion = Completion::Closed { token };
        if flags.has(Flags::SENT_DEFERRED) {
            self.deferred.push_back(completion);
        } else {
            self.completions.push_back(completion);
        }
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty()
            && self.passed_over.is_empty()
            && self.completions.is_empty()
            && self.deferred.is_empty()
            && !self.woken
    }

    /// Makes what was for the next turn this turn's. [`Queue::fix_turn`] follows.
    pub(crate) fn begin_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        if !self.deferred.is_empty() {
            self.completions.append(&mut self.deferred);
        }
        self.owed = self.passed_over.len();
        if self.owed > 0 {
            self.passed_over.append(&mut self.ready);
            std::mem::swap(&mut self.passed_over, &mut self.ready);
        }
        self.after_sent = false;
        self.has_more = false;
        self.sent_bytes = 0;
    }

    /// Bytes that a send with so many left may hand over as it begins: none before those who were passed over have had theirs.
    pub(crate) fn first_share(&self, bytes_left: u64) -> u64 {
        if self.owed == 0 { self.share(bytes_left) } else { 0 }
    }

    /// Bytes that a send with so many left may hand over now. What is too long for one turn anyway goes in smaller pieces.
    pub(crate) fn share(&self, bytes_left: u64) -> u64 {
        let bound = if bytes_left <= SEND_BYTES_PER_TURN_MAX {
            SEND_BYTES_PER_TURN_ALL_MAX
        } else {
            SEND_LONG_BYTES_PER_TURN_MAX
        };
        let share = bound.saturating_sub(self.sent_bytes);
        if share < bytes_left.min(bound / SEND_REST_PART) { 0 } else { share }
    }

    /// Notes bytes that a send has handed over.
    pub(crate) fn add_sent_bytes(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// Those that stand in the queue by now are this turn's.
    pub(crate) fn fix_turn(&mut self) {
        self.this_turn = self.ready.len();
    }

    /// Notes which event is given, if any.
    pub(crate) fn giving(&mut self, is_sent: bool) {
        self.after_sent = is_sent;
    }

    /// What is to be told next.
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// The connection that is to be served now.
    pub(crate) fn first(&self) -> Option<Token> {
        if self.this_turn == 0 { None } else { self.ready.front().copied() }
    }

    fn take_first(&mut self) {
        self.ready.pop_front();
        self.this_turn -= 1;
        self.owed = self.owed.saturating_sub(1);
    }

    /// Takes the first connection out, of which these are the flags: there is nothing more to do for it.
    pub(crate) fn retire_served(&mut self, flags: &mut Flags) {
        self.take_first();
        flags.clear(Flags::QUEUED);
    }

    /// Takes the first connection out; it comes again in the next turn if there is more to do. `has_waited`: it wasn't read because others
    /// were, if it was to be.
    pub(crate) fn retire<X: Default>(&mut self, token: Token, slots: &mut Slots<X>, has_waited: bool) {
        self.take_first();
        if let Some(slot) = slots.open_mut(token) {
            slot.flags.clear(Flags::QUEUED);
            let others_sent = self.sent_bytes
                > SEND_LONG_BYTES_PER_TURN_MAX - SEND_LONG_BYTES_PER_TURN_MAX / SEND_REST_PART;
            let is_owed_bytes = others_sent && slot.flags.can_send() && slot.turn_bytes(self.turn) == 0;
            if is_owed_bytes || has_waited && slot.flags.wants_recv() {
                slot.flags.set(Flags::QUEUED);
                self.passed_over.push_back(token);
            } else if slot.flags.wants_service() {
                self.enqueue(token, &mut slot.flags);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Flags, Queue, SEND_BYTES_PER_TURN_ALL_MAX, SEND_BYTES_PER_TURN_MAX, SEND_LONG_BYTES_PER_TURN_MAX,
        SEND_REST_PART, Slots,
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
        assert_eq!(
            (queue.share(1000), queue.share(1001)),
            (1000, 0),
            "all that is left of a send is no rest"
        );
    }

    #[test]
    fn nothing_begins_before_those_who_were_passed_over() {
        let (mut queue, mut slots) = (Queue::default(), Slots::<()>::new());
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let token = slots.insert(socket.into());
        let mut flags = Flags::WRITABLE;
        queue.enqueue(token, &mut flags);
        slots.open_mut(token).expect("it is open").flags = flags;
        queue.begin_turn();
        queue.fix_turn();
        queue.add_sent_bytes(SEND_BYTES_PER_TURN_ALL_MAX);
        queue.retire(token, &mut slots, false);
        assert!(queue.first_share(1) == 0 && queue.first().is_none());

        queue.begin_turn();
        queue.fix_turn();
        assert_eq!((queue.first(), queue.first_share(1)), (Some(token), 0), "it goes first");
        assert_eq!(queue.share(1), SEND_BYTES_PER_TURN_ALL_MAX, "with all that there is");
        queue.retire(token, &mut slots, false);
        assert!(queue.first_share(1) > 0);
    }
}
