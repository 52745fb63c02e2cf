//! A turn: waits, notes what the kernel says, and gives out the turn's events in order.

use std::io;
use std::time::Duration;

use mio::event::Event as Readiness;

use super::Poll;
use super::wake::{GENERATION_MASK, Source, source};
use crate::conns::{Conns, Flags, NONE, Pushed, Slot};
use crate::limits::{EVENTS_PER_WAIT_MAX, bulk_recvs_per_turn_max};
use crate::{Event, Token};

impl Poll {
    /// One `epoll_wait`, and what it says noted in the slots.
    pub(super) fn begin_turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.lent = 0;
        let busy = self.conns.has_work() || self.listeners.are_ready();
        let timeout = if busy { Some(Duration::ZERO) } else { timeout };
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.clock.read();
        self.conns.begin_turn(self.clock.now_ms);
        self.listeners.begin_turn();
        self.recvs = 0;
        self.bulk_recvs_left = bulk_recvs_per_turn_max(self.buffer.len());
        let Self { events, conns: Conns { queue, slots, .. }, listeners, .. } = self;
        let mut taken = 0;
        for event in events.iter() {
            taken += 1;
            match source(event.token()) {
                Source::Waker => {
                    queue.woken = true;
                    listeners.inbox.note_wake();
                }
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
        self.conns.note_fetched();
        self.conns.queue.fix_turn();
        Ok(())
    }

    /// The turn's next event: what verbs have brought about, then the connections in turn, then new ones.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.lent = 0;
        self.conns.queue.giving(false);
        loop {
            if let Some(event) = self.conns.next_told() {
                return Some(event);
            }
            let Some(token) = self.conns.queue.first() else { break };
            if let Some(event) = self.serve(token) {
                return Some(event);
            }
            let has_waited = self.recvs == 0 && self.bulk_recvs_left == 0;
            self.conns.queue.retire(token, &mut self.conns.slots, has_waited);
            self.recvs = 0;
        }
        self.next_accept()
    }

    fn serve(&mut self, token: Token) -> Option<Event> {
        let goes_on = self.conns.slots.open(token)?.flags.has(Flags::WRITABLE);
        if goes_on && let Some(Pushed::Ended(send)) = self.conns.push_more(token) {
            return Some(self.conns.give_sent(token, send));
        }
        self.receive(token)
    }
}

/// Keeps what the kernel has announced: it won't say it twice.
fn note(slot: &mut Slot<()>, event: &Readiness) {
    let broken = event.is_error() || event.is_write_closed();
    if event.is_readable() || event.is_read_closed() || broken {
        slot.flags.set(Flags::READABLE);
    }
    if event.is_read_closed() || event.is_priority() {
        slot.flags.set(Flags::READS_ON);
    }
    if (event.is_writable() || broken) && slot.send != NONE {
        slot.flags.set(Flags::WRITABLE);
    }
}
