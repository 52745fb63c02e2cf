//! Receives into provided buffers, by an entry that continues up to its credit of bytes.

use std::collections::VecDeque;
use std::io;

use rustix::io::Errno;

use super::entry::{Done, Name, Operation, Purpose};
use super::turn::{pend, settle};
use super::{RingState, Uring};
use crate::connections::{DETACHING, Flags, SILENT, Slot, ended_while_paused, read_closed};
use crate::limits::{FULL_RECVS_OF_BULK, RECVS_PER_TURN_MAX, bulk_recvs_per_turn_max};
use crate::{Event, Token};

pub(super) fn name(token: Token) -> Name {
    Name::new(Purpose::Recv, token)
}

fn end_name(token: Token) -> Name {
    Name::new(Purpose::PeerEnd, token)
}

impl Uring {
    pub(super) fn arm_recv(&mut self, token: Token) {
        self.arm_recvs(token, RECVS_PER_TURN_MAX);
    }

    /// Arms a connection for `recvs` receives.
    fn arm_recvs(&mut self, token: Token, recvs: usize) {
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        if slot.flags.has(Flags::ARMED.and(Flags::READ_CLOSED)) {
            return;
        }
        if slot.flags.has(Flags::PAUSED) {
            return self.watch_end(token);
        }
        let Some(fd) = pend(slot, Flags::ARMED) else { return self.arm_with_descriptor(token, recvs) };
        // The receive that reaches the credit may fill its buffer: together they fill as many as a turn may
        // deliver. That is at most RECV_AFTER_PAUSE_MAX (see `RECV_BUFFER_BYTES_MAX`).
        let credit = (self.ring.buffers().bytes() * (recvs - 1) + 1) as u32;
        let operation =
            if self.multishot { Operation::recv_until_used_up(fd, credit) } else { Operation::recv(fd) };
        self.ring.push(operation, name(token));
    }

    /// Arms a connection once it has a descriptor, perhaps in a later turn.
    #[cold]
    fn arm_with_descriptor(&mut self, token: Token, recvs: usize) {
        if self.open_descriptor(token) {
            self.arm_recvs(token, recvs);
        } else if let Some(slot) = self.conns.slots.open_mut(token) {
            rearm_later(&mut self.rearm, token, slot);
        }
    }

    /// Arms connections whose entry has ended, in order: no more than there are buffers, and bulk ones within
    /// a turn's share.
    pub(super) fn rearm_recvs(&mut self) {
        for _ in 0..self.ring.buffers().count() {
            let Some(token) = self.rearm.pop_front() else { break };
            self.arm_queued(token, RECVS_PER_TURN_MAX);
        }
        let recvs = bulk_recvs_per_turn_max(self.ring.buffers().bytes());
        let each = recvs.min(RECVS_PER_TURN_MAX);
        for _ in 0..recvs / each {
            let Some(token) = self.rearm_bulk.pop_front() else { break };
            self.arm_queued(token, each);
        }
    }

    /// Arms a connection that was in a queue.
    fn arm_queued(&mut self, token: Token, recvs: usize) {
        if let Some(slot) = self.conns.slots.open_mut(token) {
            slot.extra.counts &= !RingState::IN_REARM;
            self.arm_recvs(token, recvs);
        }
    }

    pub(super) fn disarm_recv(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.held_mut(token) else { return };
        if slot.flags.has(Flags::ARMED) && !slot.flags.has(Flags::CANCELLING) {
            slot.flags.set(Flags::CANCELLING);
            self.ring.cancel(name(token));
        }
    }

    /// Cancels the receive of a completion that isn't its last: an earlier cancel may have found nothing
    /// while the kernel was running the entry.
    pub(super) fn disarm_recv_again(&mut self, token: Token) {
        if let Some(slot) = self.conns.slots.held_mut(token) {
            slot.flags.clear(Flags::CANCELLING);
        }
        self.disarm_recv(token);
    }

    pub(super) fn resume_recv(&mut self, token: Token) {
        self.conns.set_paused(token, false);
        self.arm_recv(token);
    }

    /// Watches for the end of the peer of a paused connection that isn't armed (R6). The entry stays after a
    /// resume: it ends with the peer's side, or with the connection.
    fn watch_end(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        if slot.flags.has(Flags::END_WATCHED.and(Flags::FIN_DELIVERED)) {
            return;
        }
        let Some(fd) = pend(slot, Flags::END_WATCHED) else {
            return self.arm_with_descriptor(token, RECVS_PER_TURN_MAX);
        };
        self.ring.push(Operation::poll(fd, libc::POLLRDHUP), end_name(token));
    }

    /// Cancels the entry that watches for the peer's end, if any.
    pub(super) fn stop_watching(&mut self, token: Token) {
        if self.conns.slots.held_mut(token).is_some_and(|slot| slot.flags.has(Flags::END_WATCHED)) {
            self.ring.cancel(end_name(token));
        }
    }

    /// Handles the completion of that entry.
    pub(super) fn watch_ended(&mut self, done: Done) -> Option<Event> {
        let token = done.token();
        if self.conns.slots.open(token).is_some_and(|slot| slot.send == SILENT) {
            // The end of the receiving side follows the result of a silent send (S7).
            self.held.push_back(done);
            return None;
        }
        let has_failed = done.result().is_ok_and(|events| events & libc::POLLERR as u32 != 0);
        // The error is read from the socket.
        let is_unreadable = has_failed && !self.open_descriptor(token);
        let slot = self.conns.slots.held_mut(token)?;
        settle(slot, Flags::END_WATCHED);
        if slot.flags.has(Flags::CLOSING) {
            self.finish_close(token);
            return None;
        }
        // Without one of these events its peer's side has not ended.
        let ended = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
        if !done.result().is_ok_and(|events| events & ended as u32 != 0) {
            return None;
        }
        // An armed receive reports the end itself, and after the resume one is armed.
        if slot.flags.has(Flags::ARMED.and(Flags::READ_CLOSED)) || !slot.flags.has(Flags::PAUSED) {
            return None;
        }
        if is_unreadable {
            return Some(read_closed(token, slot, Some(io::ErrorKind::ConnectionReset.into())));
        }
        ended_while_paused(token, slot, Flags::FIN_DELIVERED, has_failed)
    }

    /// Returns whether the connection waits to be armed, or its completions for the next turn (R7).
    pub(super) fn waits_to_be_read(&self, token: Token) -> bool {
        let Some(slot) = self.conns.slots.open(token) else { return false };
        let is_held =
            || self.held.iter().any(|done| done.purpose() == Purpose::Recv && done.token() == token);
        !slot.flags.has(Flags::ARMED.and(Flags::PAUSED).and(Flags::READ_CLOSED)) || is_held()
    }

    /// Handles a completion of receiving.
    pub(super) fn received(&mut self, mut done: Done) -> Option<Event> {
        let token = done.token();
        let turn = self.conns.work.turn;
        let Some(slot) = self.conns.slots.held_mut(token) else {
            self.release_buffer(&mut done);
            return None;
        };
        if slot.send == DETACHING {
            return self.received_detaching(token, done);
        }
        let closing = slot.flags.has(Flags::CLOSING);
        // The end of the receiving side follows the result of a silent send (S7).
        let must_wait = slot.send == SILENT && !matches!(done.result(), Ok(1..) | Err(Errno::NOBUFS));
        if !closing && (must_wait || slot.extra.has_used_its_share(turn)) {
            self.held.push_back(done);
            return None;
        }
        let last = done.is_last();
        if last {
            recv_ended(slot);
        }
        let is_over = slot.flags.has(Flags::READ_CLOSED);
        if closing || is_over {
            self.release_buffer(&mut done);
            if !last {
                self.disarm_recv_again(token);
            }
            self.finish_close(token);
            return None;
        }
        match (done.result(), self.ring.take_filled(&mut done)) {
            (Ok(1..), Some(buffer)) => {
                slot.extra.count_recv();
                if buffer.len() == self.ring.buffers().bytes() {
                    count_full(slot);
                }
                let paused = slot.flags.has(Flags::PAUSED);
                self.lent = Some(buffer);
                if last {
                    rearm_later(rearm_of(&mut self.rearm, &mut self.rearm_bulk, slot), token, slot);
                } else if paused {
                    self.disarm_recv_again(token);
                }
                Some(Event::Received { token })
            }
            // No kernel is known to do that. Where the bytes are isn't known.
            (Ok(1..), None) => Some(read_closed(token, slot, Some(io::ErrorKind::InvalidData.into()))),
            (Ok(_), buffer) => {
                let event = read_closed(token, slot, None);
                buffer.into_iter().for_each(|buffer| self.ring.release(buffer));
                Some(event)
            }
            (Err(errno @ (Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN)), _) => {
                if errno == Errno::NOBUFS {
                    self.ring.offer_more_buffers();
                }
                rearm_later(rearm_of(&mut self.rearm, &mut self.rearm_bulk, slot), token, slot);
                None
            }
            (Err(errno), _) => Some(read_closed(token, slot, Some(errno.into()))),
        }
    }

    /// Notes that a connection is active in this turn.
    pub(super) fn note_active(&mut self, token: Token) {
        let turn = self.conns.work.turn;
        if let Some(slot) = self.conns.slots.held_mut(token) {
            slot.extra.turn = turn;
        }
    }

    pub(super) fn release_buffer(&mut self, done: &mut Done) {
        if let Some(buffer) = self.ring.take_filled(done) {
            self.ring.release(buffer);
        }
    }
}

impl RingState {
    /// Returns whether further reads of the connection wait for the next turn.
    fn has_used_its_share(&mut self, turn: u8) -> bool {
        if self.turn != turn {
            self.turn = turn;
            self.counts &= !Self::RECVS;
        }
        usize::from(self.counts & Self::RECVS) >= RECVS_PER_TURN_MAX
    }

    /// Counts a receive; `has_used_its_share` bounds the count.
    fn count_recv(&mut self) {
        const { assert!(RECVS_PER_TURN_MAX <= Self::RECVS as usize) };
        self.counts += 1;
    }

    /// Counts a full receive since the last send; returns true from `FULL_RECVS_OF_BULK` on.
    fn count_full(&mut self) -> bool {
        const { assert!(FULL_RECVS_OF_BULK <= Self::FULL >> Self::FULL_SHIFT) };
        let full = (self.counts & Self::FULL) >> Self::FULL_SHIFT;
        self.counts += if full < FULL_RECVS_OF_BULK { 1 << Self::FULL_SHIFT } else { 0 };
        full + 1 >= FULL_RECVS_OF_BULK
    }
}

/// Counts full receives since the last send: enough of them are a body, fewer may be a large head, which
/// occupies memory until it is complete.
fn count_full(slot: &mut Slot<RingState>) {
    if slot.extra.count_full() {
        slot.flags.set(Flags::BULK);
    }
}

/// Resets the count at a send: the request so far is complete.
#[inline]
pub(super) fn reset_full(slot: &mut Slot<RingState>) {
    slot.extra.counts &= !RingState::FULL;
    slot.flags.clear(Flags::BULK);
}

/// Queues a connection to be armed again, unless it is queued.
fn rearm_later(queue: &mut VecDeque<Token>, token: Token, slot: &mut Slot<RingState>) {
    if slot.extra.counts & RingState::IN_REARM == 0 {
        slot.extra.counts |= RingState::IN_REARM;
        queue.push_back(token);
    }
}

/// Returns the queue in which a connection waits to be armed again.
fn rearm_of<'a>(
    rearm: &'a mut VecDeque<Token>,
    bulk: &'a mut VecDeque<Token>,
    slot: &Slot<RingState>,
) -> &'a mut VecDeque<Token> {
    if slot.flags.has(Flags::BULK) { bulk } else { rearm }
}

/// Records that the receiving entry has ended.
pub(super) fn recv_ended(slot: &mut Slot<RingState>) {
    settle(slot, Flags::ARMED);
    slot.flags.clear(Flags::CANCELLING);
}
