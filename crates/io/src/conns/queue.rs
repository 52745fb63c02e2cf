//! What is left to do: completions to be told, sends to go on with.

use std::collections::VecDeque;

use super::line::Line;
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

/// What is left to do in this turn and the next: the completions hold at most a `Sent` and a `Closed` of each connection.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Connections with a send to begin or to go on with by hand. They come behind everything else of a turn: what is short doesn't wait for
    /// what is long.
    sends: Line,
    /// Given out as soon as possible.
    completions: VecDeque<Completion>,
    /// Given out from the next turn on: see [`Queue::complete`].
    deferred: VecDeque<Completion>,
    /// Whether the event given last was a `Sent`.
    after_sent: bool,
    /// Whether the waker was used.
    pub(crate) woken: bool,
    /// Bytes that sends have handed over in this turn as they began, all connections together.
    first_bytes: u64,
    /// Bytes that sends have handed over in this turn from the line. What is short takes nothing from what is long, nor the other way round.
    sent_bytes: u64,
    /// Number of the turn, wrapping.
    pub(crate) turn: u16,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            sends: Line::new(Flags::QUEUED),
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
    /// Puts a connection with a send into the line, unless it stands there.
    pub(crate) fn enqueue(&mut self, token: Token, flags: &mut Flags) {
        self.sends.enqueue(token, flags);
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
        self.sends.is_empty() && self.completions.is_empty() && self.deferred.is_empty() && !self.woken
    }

    /// Makes what was for the next turn this turn's.
    pub(crate) fn begin_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        if !self.deferred.is_empty() {
            self.completions.append(&mut self.deferred);
        }
        self.sends.begin_turn();
        self.after_sent = false;
        (self.first_bytes, self.sent_bytes) = (0, 0);
    }

    /// Bytes that a send with so many left may hand over as it begins, where it needn't stand in the line.
    pub(crate) fn first_share(&self, bytes_left: u64) -> u64 {
        let share = SEND_BYTES_PER_TURN_ALL_MAX.saturating_sub(self.first_bytes);
        if share < bytes_left { 0 } else { share }
    }

    /// Notes bytes that a send has handed over as it began.
    pub(crate) fn add_first_bytes(&mut self, bytes: u64) {
        self.first_bytes += bytes;
    }

    /// Bytes that a send with so many left may hand over now that its place in the line has come. What is too long for one turn anyway goes in
    /// smaller pieces.
    pub(crate) fn share(&self, bytes_left: u64) -> u64 {
        let bound = if bytes_left <= SEND_BYTES_PER_TURN_MAX {
            SEND_BYTES_PER_TURN_ALL_MAX
        } else {
            SEND_LONG_BYTES_PER_TURN_MAX
        };
        let share = bound.saturating_sub(self.sent_bytes);
        if share < bytes_left.min(bound / SEND_REST_PART) { 0 } else { share }
    }

    /// Notes bytes that a send has handed over from the line.
    pub(crate) fn add_sent_bytes(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// Notes which event is given, if any.
    pub(crate) fn giving(&mut self, is_sent: bool) {
        self.after_sent = is_sent;
    }

    /// What is to be told next.
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// The connection that goes on sending now. With the first of a turn those that stand in the line by then are this turn's.
    pub(crate) fn first(&mut self) -> Option<Token> {
        self.sends.first()
    }

    /// Takes the first connection out; it comes again in the next turn if its send is to go on, before others if it has found nothing left.
    pub(crate) fn retire<X: Default>(&mut self, token: Token, slots: &mut Slots<X>) {
        let Some(slot) = slots.open_mut(token) else { return self.sends.leave() };
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::{
        Flags, Queue, SEND_BYTES_PER_TURN_ALL_MAX, SEND_BYTES_PER_TURN_MAX, SEND_LONG_BYTES_PER_TURN_MAX,
        SEND_REST_PART, Slots, Token,
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

    /// What is short goes before, and may come in any number; what begins behind the line finds room however much went from it.
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
        slots.open_mut(served).expect("it is open").add_turn_bytes(turn, SEND_BYTES_PER_TURN_ALL_MAX);
        queue.retire(served, &mut slots);
        assert_eq!(queue.first(), Some(owed));
        queue.retire(owed, &mut slots);
        assert!(queue.first().is_none() && !queue.is_empty());
        queue.begin_turn();
        assert_eq!(queue.first(), Some(owed));
        queue.retire(owed, &mut slots);
        assert_eq!(queue.first(), Some(served));
    }

    /// A connection with a send to go on with, in the line; its peer.
    fn waiting(queue: &mut Queue, slots: &mut Slots<()>) -> (Token, UnixStream) {
        let (socket, peer) = UnixStream::pair().expect("a pair");
        let token = slots.insert(socket.into());
        let slot = slots.open_mut(token).expect("it is open");
        slot.flags.set(Flags::WRITABLE);
        queue.enqueue(token, &mut slot.flags);
        (token, peer)
    }
}
