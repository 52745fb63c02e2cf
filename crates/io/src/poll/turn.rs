//! A turn: waits, notes what the kernel says, and gives out the turn's events in order.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use mio::event::Event as Readiness;

use super::slots::{Flags, NONE, Slot, Slots};
use super::wake::{GENERATION_MASK, Source, source};
use super::{Poll, slots};
use crate::limits::{EVENTS_PER_WAIT_MAX, SEND_BYTES_PER_TURN_ALL_MAX};
use crate::{Event, Token, os};

/// The clock as of the last `wait`.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    pub(super) now_ms: u64,
    pub(super) unix_seconds: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), now_ms: 0, unix_seconds: os::unix_seconds() }
    }

    fn read(&mut self) {
        self.now_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.unix_seconds = os::unix_seconds();
    }
}

/// Something that a verb has brought about and `next` has to say.
#[derive(Debug, Clone, Copy)]
pub(super) enum Completion {
    /// The send of this index has ended.
    Sent { token: Token, send: u32 },
    /// The connection is closed.
    Closed { token: Token },
}

/// What is left to do in this turn and the next.
///
/// `ready` and `passed_over` hold a connection at most once ([`Flags::QUEUED`]); the completions at most a `Sent` and a `Closed` each.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Connections to be served; the first is the one being served.
    ready: VecDeque<Token>,
    /// Connections whose send found the turn's bytes used up by others: the first ones of the next turn.
    passed_over: VecDeque<Token>,
    /// How many of `ready` belong to this turn. What is appended meanwhile belongs to the next.
    this_turn: usize,
    /// How often the first of `ready` has been read in this turn.
    pub(super) recvs: usize,
    /// Given out as soon as possible.
    completions: VecDeque<Completion>,
    /// Given out from the next turn on: see [`Queue::complete`].
    deferred: VecDeque<Completion>,
    /// Whether the event given last was a `Sent`.
    after_sent: bool,
    woken: bool,
    /// Whether the kernel may have had more events than the last wait took.
    pub(super) has_more: bool,
    /// Bytes that sends going on in this turn may still hand over, all connections together.
    pub(super) send_bytes_left: u64,
    /// Number of the turn, wrapping.
    pub(super) turn: u16,
}

impl Queue {
    /// Puts a connection into the queue, unless it stands there.
    pub(super) fn enqueue(&mut self, token: Token, flags: &mut Flags) {
        if !flags.has(Flags::QUEUED) {
            flags.set(Flags::QUEUED);
            self.ready.push_back(token);
        }
    }

    /// Announces the end of a send. One that was begun in answer to a `Sent` waits for the next turn: otherwise a
    /// worker with much to send and a fast peer would never come to the end of this one.
    pub(super) fn complete(&mut self, token: Token, send: u32, flags: &mut Flags) {
        let completion = Completion::Sent { token, send };
        if self.after_sent {
            flags.set(Flags::SENT_DEFERRED);
            self.deferred.push_back(completion);
        } else {
            self.completions.push_back(completion);
        }
    }

    /// Announces a send that its connection's close has cut off.
    pub(super) fn cancelled(&mut self, token: Token, send: u32) {
        self.completions.push_back(Completion::Sent { token, send });
    }

    /// Announces a close, behind the `Sent` that may still be owed.
    pub(super) fn closed(&mut self, token: Token, flags: Flags) {
        let completion = Completion::Closed { token };
        if flags.has(Flags::SENT_DEFERRED) {
            self.deferred.push_back(completion);
        } else {
            self.completions.push_back(completion);
        }
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty()
            && self.passed_over.is_empty()
            && self.completions.is_empty()
            && self.deferred.is_empty()
            && !self.woken
    }

    fn begin_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        self.completions.append(&mut self.deferred);
        self.passed_over.append(&mut self.ready);
        std::mem::swap(&mut self.passed_over, &mut self.ready);
        self.after_sent = false;
        self.recvs = 0;
        self.has_more = false;
        self.send_bytes_left = SEND_BYTES_PER_TURN_ALL_MAX;
    }

    /// The connection that is to be served now.
    fn first(&self) -> Option<Token> {
        if self.this_turn == 0 { None } else { self.ready.front().copied() }
    }

    /// Takes the first connection out; it comes again in the next turn if there is more to do.
    fn retire(&mut self, token: Token, slots: &mut Slots) {
        self.ready.pop_front();
        self.this_turn -= 1;
        self.recvs = 0;
        if let Some(slot) = slots.open_mut(token) {
            slot.flags.clear(Flags::QUEUED);
            if self.send_bytes_left == 0 && slot.flags.has(Flags::WRITABLE) && slot.turn_bytes(self.turn) == 0
            {
                slot.flags.set(Flags::QUEUED);
                self.passed_over.push_back(token);
            } else if slot.flags.wants_service() {
                self.enqueue(token, &mut slot.flags);
            }
        }
    }
}

impl Poll {
    /// One `epoll_wait`, and what it says noted in the slots.
    pub(super) fn begin_turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.lent = 0;
        let busy = !self.queue.is_empty() || self.listeners.are_ready();
        let timeout = if busy { Some(Duration::ZERO) } else { timeout };
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.clock.read();
        self.queue.begin_turn();
        self.listeners.begin_turn();
        let Self { events, queue, slots, listeners, .. } = self;
        let mut taken = 0;
        for event in events.iter() {
            taken += 1;
            match source(event.token()) {
                Source::Waker => queue.woken = true,
                Source::Listener(id) => listeners.mark_ready(id),
                Source::Connection { slot, generation } => {
                    let Some((token, slot)) = slots.open_by_bits(slot, generation, GENERATION_MASK) else {
                        continue;
                    };
                    note(slot, event);
                    if slot.flags.wants_service() {
                        queue.enqueue(token, &mut slot.flags);
                    }
                }
            }
        }
        queue.has_more = taken == EVENTS_PER_WAIT_MAX;
        queue.this_turn = queue.ready.len();
        Ok(())
    }

    /// The turn's next event: what verbs have brought about, then the connections in turn, then new ones.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.lent = 0;
        self.queue.after_sent = false;
        loop {
            if let Some(completion) = self.queue.completions.pop_front() {
                return Some(self.give(completion));
            }
            if std::mem::take(&mut self.queue.woken) {
                return Some(Event::Woken);
            }
            let Some(token) = self.queue.first() else { break };
            if let Some(event) = self.serve(token) {
                return Some(event);
            }
            self.queue.retire(token, &mut self.slots);
        }
        self.next_accept()
    }

    fn serve(&mut self, token: Token) -> Option<Event> {
        if let Some(send) = self.continue_send(token) {
            return Some(self.give(Completion::Sent { token, send }));
        }
        self.receive(token)
    }

    /// Turns a completion into its event. From here on the connection has no send, or the slot no connection.
    fn give(&mut self, completion: Completion) -> Event {
        match completion {
            Completion::Sent { token, send } => {
                self.queue.after_sent = true;
                if let Some(slot) = self.slots.open_mut(token) {
                    slot.send = slots::NONE;
                    slot.flags.clear(Flags::SENT_DEFERRED);
                    // Noted between the end of the send and this moment: there is nothing left to go on with.
                    slot.flags.clear(Flags::WRITABLE);
                }
                let (output, result) = self.sends.remove(send);
                Event::Sent { token, output, result }
            }
            Completion::Closed { token } => {
                self.slots.release(token);
                Event::Closed { token }
            }
        }
    }
}

/// Keeps what the kernel has announced: it won't say it twice.
fn note(slot: &mut Slot, event: &Readiness) {
    let broken = event.is_error() || event.is_write_closed();
    if event.is_readable() || event.is_read_closed() || broken {
        slot.flags.set(Flags::READABLE);
    }
    if event.is_read_closed() {
        slot.flags.set(Flags::PEER_ENDED);
    }
    if (event.is_writable() || broken) && slot.send != NONE {
        slot.flags.set(Flags::WRITABLE);
    }
}
