//! Closing: cancels armed entries, and closes the descriptor after the last completion. Until then an entry
//! could name its number, which would be the next connection's.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::descriptors::Descriptors;
use super::entry::{Done, Purpose};
use super::recv::recv_ended;
use super::turn::IN_KERNEL;
use super::{RingState, Uring};
use crate::connections::{Connections, DETACHING, Flags, NONE, SILENT};
use crate::{CloseKind, Detached, Event, Token, socket};

impl Uring {
    pub(super) fn end_connection(&mut self, token: Token, kind: CloseKind) {
        let Some(slot) = self.conns.slots.open_mut(token) else {
            if self.conns.close_handed_out(token) {
                self.descriptors.note_closed();
            }
            return;
        };
        slot.flags.set(Flags::CLOSING);
        if slot.send == DETACHING {
            self.detaching.retain(|(detaching, _)| *detaching != token);
        }
        // Its success posts nothing that would end a wait.
        self.settles_soon |= slot.send == SILENT;
        if matches!(slot.send, SILENT | DETACHING) {
            // No `Sent` is due.
            slot.send = NONE;
        }
        let (send, flags) = (slot.send, slot.flags);
        let has_ended = self.prepare_close(token, kind);
        self.conns.cut_off(token, send);
        if !has_ended {
            self.disarm_recv(token);
            self.stop_watching(token);
        }
        if flags.has(Flags::AWAITING) {
            self.stop_awaiting(token);
        }
        self.finish_close(token);
    }

    /// Shuts down the sending side (C1), which needs no descriptor.
    pub(super) fn end_writing(&mut self, token: Token) {
        self.conns.end_writing(token);
        if let Some(slot) = self.conns.slots.open(token) {
            self.descriptors.end_writing(token, slot);
        }
    }

    /// Makes the close a reset if it is to be one. Returns whether the entries that wait for input end by
    /// themselves.
    fn prepare_close(&mut self, token: Token, kind: CloseKind) -> bool {
        let is_crowded = self.is_crowded();
        let Some(slot) = self.conns.slots.held_mut(token) else { return false };
        let ends = is_crowded && slot.flags.has(Flags::ARMED.and(Flags::END_WATCHED));
        if kind == CloseKind::Normal && !ends {
            return false;
        }
        let prepare = |fd: BorrowedFd<'_>| {
            if kind == CloseKind::Reset {
                socket::reset_on_close(fd);
            }
            ends && socket::end_receiving(fd)
        };
        // Without any descriptor it closes normally.
        self.descriptors.with(token, slot, prepare).unwrap_or(false)
    }

    /// Closes the descriptor of a closing connection that no entry names any more, once its `Sent` is
    /// reported.
    pub(super) fn finish_close(&mut self, token: Token) {
        finish_close(&mut self.conns, &mut self.descriptors, token);
    }

    /// Detaches the connection as soon as its receive has ended, with the bytes that the kernel has put into buffers
    /// by then: at most [`crate::limits::RECV_AFTER_PAUSE_MAX`].
    pub(super) fn detach_connection(&mut self, token: Token) {
        if !self.open_descriptor(token) && self.conns.slots.open(token).is_some() {
            return self.conns.note_detached(token, Err(Errno::MFILE.into()));
        }
        if self.conns.check_detach(token).is_err() {
            return;
        }
        self.stop_watching(token);
        let unread = self.take_unread(token);
        if !self.is_armed(token) {
            let detached = self.hand_out(token, unread);
            return self.conns.note_detached(token, detached);
        }
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        slot.send = DETACHING;
        self.detaching.push((token, unread));
        self.disarm_recv(token);
    }

    /// Handles a completion of receiving from a connection that is being detached.
    pub(super) fn received_detaching(&mut self, token: Token, done: Done) -> Option<Event> {
        let at = self.detaching.iter().position(|(detaching, _)| *detaching == token)?;
        let is_last = done.is_last();
        let mut unread = std::mem::take(&mut self.detaching[at].1);
        self.unread_of(token, done, &mut unread);
        if !is_last {
            self.detaching[at].1 = unread;
            self.disarm_recv_again(token);
            return None;
        }
        self.detaching.swap_remove(at);
        let result = self.hand_out(token, unread);
        Some(Event::Detached { token, result })
    }

    /// Ends a detach: the program gets the only reference to the file.
    fn hand_out(&mut self, token: Token, unread: Vec<u8>) -> io::Result<Detached> {
        if let Some(slot) = self.conns.slots.held_mut(token) {
            self.descriptors.forget(token, slot);
        }
        self.conns.hand_out(token, unread)
    }

    fn is_armed(&self, token: Token) -> bool {
        self.conns.slots.open(token).is_some_and(|slot| slot.flags.has(Flags::ARMED))
    }

    /// Returns the connection's received, undelivered bytes, in order.
    fn take_unread(&mut self, token: Token) -> Vec<u8> {
        let mut unread = Vec::new();
        for _ in 0..self.held.len() {
            let Some(done) = self.held.pop_front() else { break };
            if let Some(done) = self.unread_of(token, done, &mut unread) {
                self.held.push_back(done);
            }
        }
        let this_turn = self.completions_left;
        for index in 0..self.completions.len() {
            let Some(done) = self.completions.pop_front() else { break };
            if let Some(done) = self.unread_of(token, done, &mut unread) {
                self.completions.push_back(done);
            } else if index < this_turn {
                self.completions_left -= 1;
            }
        }
        unread
    }

    /// Appends the bytes of this connection's completion; returns another connection's.
    fn unread_of(&mut self, token: Token, mut done: Done, unread: &mut Vec<u8>) -> Option<Done> {
        if done.purpose() != Purpose::Recv || done.token() != token {
            return Some(done);
        }
        if let Some(buffer) = self.ring.take_filled(&mut done) {
            unread.extend_from_slice(self.ring.buffers().get(&buffer));
            self.ring.release(buffer);
        }
        if let Some(slot) = self.conns.slots.held_mut(token).filter(|_| done.is_last()) {
            recv_ended(slot);
        }
        None
    }
}

/// See [`Uring::finish_close`].
pub(super) fn finish_close(conns: &mut Connections<RingState>, descriptors: &mut Descriptors, token: Token) {
    let Some(slot) = conns.slots.held_mut(token) else { return };
    if slot.flags.has(Flags::CLOSING) && !slot.flags.has(IN_KERNEL) && slot.send == NONE {
        descriptors.close(token, slot);
        conns.work.closed(token, slot.flags);
    }
}
