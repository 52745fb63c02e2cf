//! Closing: cancels armed entries, and closes the descriptor after the last completion. Until then an entry
//! could name its number, which would be the next connection's.

use std::io;

use super::Uring;
use super::entry::{Done, Purpose};
use super::recv::recv_ended;
use super::ring::REAP_WAIT;
use crate::connections::{Flags, NONE};
use crate::limits::DETACH_ENTERS_MAX;
use crate::{CloseKind, Detached, Token, socket};

impl Uring {
    pub(super) fn end_connection(&mut self, token: Token, kind: CloseKind) {
        let Some(slot) = self.conns.slots.open_mut(token) else {
            return self.conns.close_handed_out(token);
        };
        if let (Some(fd), CloseKind::Reset) = (&slot.fd, kind) {
            socket::reset_on_close(fd);
        }
        slot.flags.set(Flags::CLOSING);
        let (send, flags) = (slot.send, slot.flags);
        if flags.has(Flags::SENDING) {
            self.ring.await_sends();
        } else {
            self.conns.cut_off(token, send);
        }
        self.disarm_recv(token);
        self.stop_watching(token);
        if flags.has(Flags::AWAITING) {
            self.stop_awaiting(token);
        }
        self.finish_close(token);
    }

    /// Closes the descriptor of a closing connection that no entry names any more, once its `Sent` is
    /// reported.
    pub(super) fn finish_close(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.held_mut(token) else { return };
        if slot.flags.has(Flags::CLOSING) && slot.extra.pending == 0 && slot.send == NONE {
            slot.fd = None;
            self.conns.work.closed(token, slot.flags);
        }
    }

    /// Detaches the connection, with the bytes that the kernel has already put into buffers. Fails if the
    /// kernel doesn't end the receive in time: the worker is blocked meanwhile.
    pub(super) fn detach_connection(&mut self, token: Token) -> io::Result<Detached> {
        self.conns.check_detach(token)?;
        self.disarm_recv(token);
        self.stop_watching(token);
        for _ in 0..DETACH_ENTERS_MAX {
            if !self.is_armed(token)
                || self.held.iter().chain(&self.completions).any(|done| is_last_of(done, token))
            {
                let unread = self.take_unread(token);
                return Ok(Detached { descriptor: self.conns.hand_out(token)?, unread });
            }
            self.ring.enter(Some(REAP_WAIT))?;
            self.take_completions();
        }
        Err(io::ErrorKind::WouldBlock.into())
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
        if let Some(buffer) = done.take_filled() {
            unread.extend_from_slice(self.ring.buffers().get(&buffer));
            self.ring.release(buffer);
        }
        if let Some(slot) = self.conns.slots.held_mut(token).filter(|_| done.is_last()) {
            recv_ended(slot);
        }
        None
    }
}

fn is_last_of(done: &Done, token: Token) -> bool {
    done.purpose() == Purpose::Recv && done.token() == token && done.is_last()
}
