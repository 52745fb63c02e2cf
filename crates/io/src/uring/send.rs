//! Sends from memory by one entry that never waits; files and remainders go by hand.

use std::os::fd::AsRawFd;

use io_uring::types::Fd;

use super::Uring;
use super::close::finish_close;
use super::entry::{Done, Name, Operation, Purpose};
use super::recv::reset_full;
use super::turn::{pend, settle};
use crate::connections::{Flags, GATHER_MAX, IN_RING, NONE, SILENT, Sending};
use crate::limits::{SEND_QUANTUM_BYTES, SILENT_BYTES_PER_TURN_MAX, SILENT_SEND_BYTES_MAX};
use crate::{Event, Item, Output, SendError, Token};
use rustix::io::Errno;

/// Items that fit a message header: bytes may precede each and follow the last.
const ITEMS_MAX: usize = (GATHER_MAX - 1) / 2;

fn writable_name(token: Token) -> Name {
    Name::new(Purpose::Writable, token)
}

/// Returns whether an output can be sent by one entry.
fn fits_an_entry(output: &Output) -> bool {
    let in_memory = |(_, item): &(usize, Item)| matches!(item, Item::Shared(_));
    let items = output.items();
    !output.is_empty()
        && output.len() <= SEND_QUANTUM_BYTES
        && items.len() <= ITEMS_MAX
        && items.iter().all(in_memory)
}

/// Returns whether a send with this error is to be resumed.
fn is_transient(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::INTR | Errno::CANCELED)
}

impl Uring {
    /// Sends, and reports the end.
    pub(super) fn start_send(&mut self, token: Token, output: Output) {
        let Some(slot) = self.conns.sender(token) else { return };
        if slot.fd.is_none() {
            return self.send_with_descriptor(token, output);
        }
        reset_full(slot);
        if slot.send == SILENT {
            return self.send_behind(token, output);
        }
        if !fits_an_entry(&output) {
            if self.conns.send_by_hand(token, output) {
                self.await_writable(token);
            }
            return;
        }
        let Some(fd) = pend(slot, Flags::SENDING) else { return };
        slot.send = IN_RING;
        self.ring.send(token, fd, output);
    }

    /// Returns whether an output can be sent by an entry that reports only its failure.
    pub(super) fn can_be_silent(&self, output: &Output) -> bool {
        self.sends_silently && output.len() <= SILENT_SEND_BYTES_MAX && fits_an_entry(output)
    }

    /// Sends by such an entry and returns true, unless another one of the connection is unsettled.
    pub(super) fn send_silently(&mut self, token: Token, output: &mut Output) -> bool {
        let Some(slot) = self.conns.sender(token) else { return false };
        reset_full(slot);
        if slot.send == SILENT {
            self.send_behind(token, std::mem::take(output));
            return false;
        }
        let Some(fd) = pend(slot, Flags::SENDING) else {
            if self.open_descriptor(token) {
                return self.send_silently(token, output);
            }
            self.send_with_descriptor(token, std::mem::take(output));
            return false;
        };
        slot.send = SILENT;
        self.ring.send_silently(token, fd, output);
        self.settles_soon |= self.ring.silent_bytes() > SILENT_BYTES_PER_TURN_MAX;
        true
    }

    /// Begins a send after a silent one whose result isn't known, or hasn't been reported. `unsent` has entries only
    /// up to the first event of a turn.
    fn send_behind(&mut self, token: Token, output: Output) {
        if let Some(at) = self.unsent.iter().position(|(unsent, _)| *unsent == token)
            && let Some((_, Some(mut sending))) = self.unsent.remove(at)
        {
            sending.output.append(output);
            return self.continue_send(token, sending);
        }
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        slot.send = self.conns.sends.insert(Sending::new(output, 0));
        self.behind.push(token);
    }

    /// Settles silent sends, then begins the sends behind them. Called when the completions of an enter were
    /// taken.
    pub(super) fn settle_silent(&mut self) {
        let Self { ring, conns, descriptors, .. } = self;
        ring.settle(|token, len| {
            conns.note_taken(len);
            let Some(slot) = conns.slots.held_mut(token) else { return };
            settle(slot, Flags::SENDING);
            if slot.send == SILENT {
                slot.send = NONE;
            }
            if slot.flags.has(Flags::CLOSING) {
                finish_close(conns, descriptors, token);
            }
        });
        if self.ring.has_silent() {
            return;
        }
        self.settles_soon = false;
        while let Some(token) = self.behind.pop() {
            let Some(slot) = self.conns.slots.open_mut(token) else { continue };
            match self.conns.sends.get(slot.send).map(|sending| sending.result.is_some()) {
                Some(true) => self.conns.work.complete(token, slot.send, &mut slot.flags),
                Some(false) => {
                    slot.flags.set(Flags::WRITABLE);
                    self.conns.work.sends.enqueue(token, &mut slot.flags);
                }
                None => {}
            }
        }
    }

    /// Handles the completion of a silent send, which has failed: a short one is to be resumed.
    pub(super) fn silent_failed(&mut self, done: Done) {
        let sent = done.result();
        let Some((token, first)) = self.ring.reclaim_unsent(done) else { return };
        let taken = sent.map_or(0, u64::from).min(first.len());
        self.conns.note_taken(taken);
        let Some(slot) = self.conns.slots.held_mut(token) else { return };
        settle(slot, Flags::SENDING);
        let mut sending = Sending::new(first, taken);
        if slot.flags.has(Flags::CLOSING) {
            sending.result = Some(Err(SendError::Cancelled));
        } else if let Err(errno) = sent
            && !is_transient(errno)
        {
            slot.flags.set(Flags::BROKEN);
            sending.result = Some(Err(SendError::Broken(errno.into())));
        }
        if let Some(second) = self.conns.sends.get_mut(slot.send) {
            sending.output.append(std::mem::take(&mut second.output));
            *second = sending;
            return self.unsent.push_back((token, None));
        }
        // A close waits for the `Sent`.
        slot.send = SILENT;
        self.unsent.push_back((token, Some(sending)));
    }

    /// Returns the connection of the next silent send that has failed, which is in flight from now on.
    #[inline]
    pub(super) fn take_unsent(&mut self) -> Option<Token> {
        let (token, sending) = self.unsent.pop_front()?;
        if let Some(sending) = sending {
            self.continue_send(token, sending);
        }
        Some(token)
    }

    fn continue_send(&mut self, token: Token, sending: Sending) {
        let Some(slot) = self.conns.slots.held_mut(token) else { return };
        let has_ended = sending.result.is_some();
        slot.send = self.conns.sends.insert(sending);
        if has_ended {
            self.conns.work.complete(token, slot.send, &mut slot.flags);
        } else {
            self.await_writable(token);
        }
    }

    /// Sends once the connection has a descriptor, perhaps in a later turn.
    #[cold]
    fn send_with_descriptor(&mut self, token: Token, output: Output) {
        if self.open_descriptor(token) {
            return self.start_send(token, output);
        }
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        slot.send = self.conns.sends.insert(Sending::new(output, 0));
        self.await_descriptor(token);
    }

    /// Defers a send to the next turn, as if its socket had room by then.
    fn await_descriptor(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        slot.flags.set(Flags::AWAITING);
        self.writable.push_back(token);
    }

    /// Handles the completion of a send.
    pub(super) fn sent(&mut self, done: Done) -> Option<Event> {
        let sent = done.result();
        let (token, output) = self.ring.reclaim(done);
        let taken = sent.map_or(0, u64::from).min(output.len());
        self.conns.note_taken(taken);
        let slot = self.conns.slots.held_mut(token)?;
        settle(slot, Flags::SENDING);
        let closing = slot.flags.has(Flags::CLOSING);
        let result = match sent {
            Ok(_) if taken >= output.len() => Ok(()),
            Err(errno) if !closing && !is_transient(errno) => {
                slot.flags.set(Flags::BROKEN);
                Err(SendError::Broken(errno.into()))
            }
            _ if closing => Err(SendError::Cancelled),
            _ => {
                slot.send = self.conns.sends.insert(Sending::new(output, taken));
                self.await_writable(token);
                return None;
            }
        };
        let event = self.conns.sent(token, output, taken, result);
        if closing {
            self.finish_close(token);
        }
        Some(event)
    }

    /// Waits by an entry until the socket has room.
    pub(super) fn await_writable(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        if slot.send == NONE || slot.flags.has(Flags::AWAITING) {
            return;
        }
        let Some(fd) = pend(slot, Flags::AWAITING) else { return self.await_descriptor(token) };
        self.ring.push(Operation::poll(fd, libc::POLLOUT), writable_name(token));
    }

    /// Queues a send whose socket has room, once the connection has a descriptor.
    pub(super) fn note_writable(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.held_mut(token) else { return };
        settle(slot, Flags::AWAITING);
        if slot.flags.has(Flags::CLOSING) {
            return self.finish_close(token);
        }
        if slot.send == NONE {
            return;
        }
        if slot.fd.is_none() && !self.open_descriptor(token) {
            return self.await_descriptor(token);
        }
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        slot.flags.set(Flags::WRITABLE);
        self.conns.work.sends.enqueue(token, &mut slot.flags);
    }

    /// Handles a completion of the entry that waits for room.
    pub(super) fn awaited(&mut self, done: &Done) {
        let (token, until) = (done.token(), libc::POLLOUT | libc::POLLERR | libc::POLLHUP);
        let takes_more = done.result().map_or(true, |events| events & until as u32 != 0);
        match (takes_more, done.is_last()) {
            (true, true) => self.writable.push_back(token),
            // Its last completion comes next, and sending continues then.
            (true, false) => self.stop_awaiting(token),
            (false, true) => self.await_behind_fin(token),
            (false, false) => {}
        }
    }

    /// Waits for room at a peer that has ended its side. The kernel adds `POLLRDHUP` to every entry, so a
    /// one-shot entry would complete at once, again and again; a multishot one completes on changes.
    fn await_behind_fin(&mut self, token: Token) {
        self.open_descriptor(token);
        let Some(fd) = self.conns.slots.open_mut(token).and_then(|slot| slot.fd.as_ref()) else {
            return self.writable.push_back(token);
        };
        let fd = Fd(fd.as_raw_fd());
        // It replaces the ended entry, also in the slot's account.
        self.ring.push(Operation::poll_changes(fd, libc::POLLOUT), writable_name(token));
    }

    pub(super) fn stop_awaiting(&mut self, token: Token) {
        self.ring.cancel(writable_name(token));
    }
}

#[cfg(test)]
mod tests;
