//! Receives into the worker's one buffer, only when input may be pending.

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::Poll;
use crate::conns::{Flags, Slot, ended_while_paused, read_closed};
use crate::limits::{RECVS_PER_TURN_MAX, is_bulk};
use crate::{Event, Token};

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
        if slot.flags.has(Flags::BULK) && self.bulk_recvs_left == 0 {
            return None;
        }
        self.recvs += 1;
        let fd = slot.fd.as_ref()?;
        match recv(fd, &mut self.buffer[..], RecvFlags::empty()) {
            Ok((_, 0)) => Some(read_closed(token, slot, None)),
            Ok((_, count)) => {
                if is_bulk(count, self.buffer.len()) {
                    slot.flags.set(Flags::BULK);
                    self.bulk_recvs_left = self.bulk_recvs_left.saturating_sub(1);
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
        let has_waited = self.recvs == 0 && self.bulk_recvs_left == 0;
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
fn end_of_paused(token: Token, slot: &mut Slot<()>) -> Option<Event> {
    if !slot.flags.shows_end() {
        return None;
    }
    slot.flags.clear(Flags::END_ANNOUNCED);
    let has_failed = slot.flags.has(Flags::FAILED);
    ended_while_paused(token, slot, Flags::FIN_REPORTED, has_failed)
}
