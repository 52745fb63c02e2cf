//! A turn: waits, records readiness, receives, and returns the turn's events in order.

use std::io;
use std::time::Duration;

use mio::event::Event as Readiness;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::source::{EventSource, GENERATION_MASK, source};
use super::{InPoll, Poll};
use crate::connections::{Connections, Flags, NONE, Pushed, Slot, ended_while_paused, read_closed};
use crate::limits::{EVENTS_PER_WAIT_MAX, RECVS_PER_TURN_MAX, bulk_recvs_per_turn_max, is_bulk};
use crate::{Event, Token};

/// Pending events of one descriptor: kqueue reports reading and writing separately.
const EVENTS_PER_SOURCE: usize = if cfg!(target_os = "linux") { 1 } else { 2 };

impl Poll {
    /// Waits once, and records readiness in the slots.
    pub(super) fn begin_turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.lent = 0;
        let timeout = self.cover(timeout);
        let was_interrupted = match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            polled => polled.is_err(),
        };
        self.clock.read();
        self.conns.begin_turn(self.clock.now_ms);
        self.reads.begin_turn();
        self.listeners.begin_turn(self.clock.now_ms);
        self.recvs = 0;
        self.bulk_recvs_left = bulk_recvs_per_turn_max(self.buffer.len());
        self.first_bulk_recvs_left = self.bulk_recvs_left;
        let Self { events, alarm, conns: Connections { work, slots, .. }, reads, listeners, .. } = self;
        let mut taken = 0;
        for event in events.iter() {
            taken += 1;
            match source(event.token()) {
                EventSource::Waker => {
                    work.woken = true;
                    listeners.inbox.note_wake();
                }
                EventSource::Alarm => alarm.note(),
                EventSource::Listener(index) => listeners.mark_ready(index),
                EventSource::Connection { slot, generation } => {
                    let Some((token, slot)) = slots.open_by_bits(slot, generation, GENERATION_MASK) else {
                        continue;
                    };
                    note(slot, event);
                    if slot.flags.wants_recv() || slot.flags.shows_end() {
                        reads.enqueue(token, &mut slot.flags);
                    }
                    if slot.flags.can_send() {
                        work.sends.enqueue(token, &mut slot.flags);
                    }
                }
            }
        }
        // A signal may have ended the wait before the kernel reported anything.
        self.left_some = taken == EVENTS_PER_WAIT_MAX || was_interrupted;
        if !self.left_some {
            self.catch_up.took_all(self.clock.now_ms);
        } else {
            let waiting_max = EVENTS_PER_SOURCE * (self.conns.slots.used() + self.listeners.len() + 2);
            self.catch_up.took(taken, waiting_max, self.clock.now_ms);
        }
        self.conns.note_fetched();
        Ok(())
    }

    /// Returns the timeout of the next wait: zero if there is work left, none if the alarm expires by then.
    pub(super) fn cover(&mut self, timeout: Option<Duration>) -> Option<Duration> {
        if self.conns.has_work() || !self.reads.is_empty() || self.listeners.are_due() {
            return Some(Duration::ZERO);
        }
        let timeout = self.listeners.bound_wait(timeout, self.clock.now_ms);
        self.alarm.cover(timeout, &self.clock)
    }

    /// Returns the turn's next event: completions of verbs, then reads, then sends by hand, then new
    /// connections.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.lent = 0;
        self.conns.work.after_sent = false;
        loop {
            if let Some(event) = self.conns.next_completion() {
                return Some(event);
            }
            if let Some(woken) = self.conns.next_woken() {
                return Some(woken);
            }
            if let Some(token) = self.reads.first() {
                if let Some(event) = self.receive(token) {
                    return Some(event);
                }
                self.retire_read(token);
                continue;
            }
            match self.conns.push_next(|| {}) {
                Some((token, Pushed::Ended(send))) => return Some(self.conns.sent_event(token, send)),
                Some(_) => {}
                None => return self.next_accept(),
            }
        }
    }
}

/// Records readiness: the kernel reports it only once.
fn note(slot: &mut Slot<InPoll>, event: &Readiness) {
    let broken = event.is_error() || event.is_write_closed();
    if event.is_readable() || event.is_read_closed() || broken {
        slot.flags.set(Flags::READABLE);
    }
    if event.is_read_closed() || event.is_priority() {
        slot.flags.set(Flags::READ_AGAIN);
    }
    if event.is_read_closed() || broken {
        slot.flags.set(Flags::END_ANNOUNCED);
    }
    if event.is_error() {
        slot.flags.set(Flags::FAILED);
    }
    if (event.is_writable() || broken) && slot.send != NONE {
        slot.flags.set(Flags::WRITABLE);
    }
}

impl Poll {
    pub(super) fn set_paused(&mut self, token: Token, paused: bool) {
        self.conns.set_paused(token, paused);
        if let Some(slot) = self.conns.slots.open_mut(token)
            && (slot.flags.wants_recv() || slot.flags.shows_end())
        {
            self.reads.enqueue(token, &mut slot.flags);
        }
    }

    /// Receives once from the connection being served, if input may be pending and its share isn't used up.
    pub(super) fn receive(&mut self, token: Token) -> Option<Event> {
        let slot = self.conns.slots.open_mut(token)?;
        if !slot.flags.wants_recv() || self.recvs == RECVS_PER_TURN_MAX {
            return end_of_paused(token, slot);
        }
        let is_first = !slot.extra.has_received;
        let bulk_recvs_left =
            if is_first { &mut self.first_bulk_recvs_left } else { &mut self.bulk_recvs_left };
        if (is_first || slot.flags.has(Flags::BULK)) && *bulk_recvs_left == 0 {
            return None;
        }
        self.recvs += 1;
        let fd = slot.fd.as_ref()?;
        match recv(fd, &mut self.buffer[..], RecvFlags::empty()) {
            Ok((_, 0)) => Some(read_closed(token, slot, None)),
            Ok((_, count)) => {
                slot.extra.has_received = true;
                if is_bulk(count, self.buffer.len()) {
                    slot.flags.set(Flags::BULK);
                    *bulk_recvs_left = bulk_recvs_left.saturating_sub(1);
                } else {
                    slot.flags.clear(Flags::BULK);
                }
                // A short read has emptied the socket, and later input is reported anew, except data after
                // urgent data, and a FIN reported together with the data.
                if count < self.buffer.len() && !slot.flags.has(Flags::READ_AGAIN) {
                    slot.flags.clear(Flags::READABLE);
                    // Most requests: nothing is left to read, and no second read is needed.
                    self.reads.retire(&mut slot.flags);
                    self.recvs = 0;
                }
                self.lent = count;
                Some(Event::Received { token })
            }
            Err(Errno::AGAIN) => {
                slot.flags.clear(Flags::READABLE);
                None
            }
            // It stays readable: the next turn retries.
            Err(Errno::INTR) => None,
            Err(errno) => Some(read_closed(token, slot, Some(errno.into()))),
        }
    }

    /// Removes the first connection from the read queue. It returns in the next turn if there is more, ahead
    /// of others if the budget left no read for it.
    pub(super) fn retire_read(&mut self, token: Token) {
        let has_waited = self.recvs == 0;
        self.recvs = 0;
        let Some(slot) = self.conns.slots.open_mut(token) else { return self.reads.remove_first() };
        self.reads.retire(&mut slot.flags);
        if slot.flags.wants_recv() {
            if has_waited {
                self.reads.pass_over(token, &mut slot.flags);
            } else {
                self.reads.enqueue(token, &mut slot.flags);
            }
        }
    }
}

/// Returns the event of a paused connection whose end was reported (R6).
fn end_of_paused(token: Token, slot: &mut Slot<InPoll>) -> Option<Event> {
    if !slot.flags.shows_end() {
        return None;
    }
    slot.flags.clear(Flags::END_ANNOUNCED);
    let has_failed = slot.flags.has(Flags::FAILED);
    ended_while_paused(token, slot, Flags::FIN_REPORTED, has_failed)
}
