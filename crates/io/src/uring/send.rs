//! Sending: from memory by one entry that never waits; files, and what a full socket has left, by hand.

use io_uring::opcode;
use io_uring::types::Fd;

use super::Uring;
use super::recv::forget_full;
use super::ring::{Done, Kind, Name};
use super::turn::{pend, settle};
use crate::conns::{Flags, GATHER_MAX, NONE, Sending};
use crate::limits::{SEND_AT_ONCE_BYTES_MAX, SENT_LATE_BYTES_MAX};
use crate::{Event, Item, Output, SendError, Token};
use rustix::io::Errno;

/// Items that fit into one description: each may have bytes before it, and there may be bytes behind the last.
const ITEMS_MAX: usize = (GATHER_MAX - 1) / 2;

const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

fn name(token: Token) -> Name {
    Name::new(Kind::Send, token)
}

fn writable_name(token: Token) -> Name {
    Name::new(Kind::Writable, token)
}

/// Whether an output can go as one entry of at most `share` bytes.
fn fits_an_entry(output: &Output, share: u64) -> bool {
    let in_memory = |(_, item): &(usize, Item)| matches!(item, Item::Shared(_));
    let items = output.items();
    !output.is_empty() && output.len() <= share && items.len() <= ITEMS_MAX && items.iter().all(in_memory)
}

impl Uring {
    /// Sends. Where the end `is_awaited`, the next enter waits for no more than that.
    pub(super) fn start_send(&mut self, token: Token, output: Output, is_awaited: bool) {
        let turn = self.conns.queue.turn;
        let Some(slot) = self.conns.sender(token) else { return };
        forget_full(slot);
        if !fits_an_entry(&output, slot.turn_bytes_left(turn).min(SEND_AT_ONCE_BYTES_MAX)) {
            if self.conns.send_by_hand(token, output) {
                self.await_writable(token);
            }
            return;
        }
        let Some(fd) = pend(slot, Flags::SENDING) else { return };
        let is_awaited = is_awaited || output.len() > SENT_LATE_BYTES_MAX;
        self.submit_send(token, fd, output, is_awaited);
    }

    /// Sends by one entry an output that fits into it.
    fn submit_send(&mut self, token: Token, fd: Fd, output: Output, is_awaited: bool) {
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        // What the entry points to is not the output itself, which may still move.
        slot.send = self.conns.sends.insert(Sending::new(output));
        let Some(sending) = self.conns.sends.get(slot.send) else { return };
        let output = &sending.output;
        let entry = if output.items().is_empty() {
            // Its length is at most that of a turn's share.
            let (start, len) = (output.bytes().as_ptr(), output.bytes().len() as u32);
            opcode::Send::new(fd, start, len).flags(FLAGS).build()
        } else {
            opcode::SendMsg::new(fd, self.gathers.describe(slot.send, output)).flags(FLAGS as u32).build()
        };
        self.ring.push_send(entry, name(token), is_awaited);
    }

    /// The completion of a send.
    pub(super) fn sent(&mut self, done: &Done) -> Option<Event> {
        let token = done.token();
        let turn = self.conns.queue.turn;
        let slot = self.conns.slots.held_mut(token)?;
        settle(slot, Flags::SENDING);
        let (send, closing) = (slot.send, slot.flags.has(Flags::CLOSING));
        let sending = self.conns.sends.get_mut(send)?;
        if !sending.output.items().is_empty() {
            self.gathers.let_go(send);
        }
        match done.result() {
            Ok(count) => {
                sending.done += u64::from(count);
                slot.add_turn_bytes(turn, u64::from(count));
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CANCELED) => {}
            Err(_) if closing => {}
            Err(errno) => {
                slot.flags.set(Flags::BROKEN);
                sending.result = Some(Err(SendError::Broken(errno.into())));
            }
        }
        if sending.done >= sending.output.len() {
            sending.result = Some(Ok(()));
        } else if closing {
            sending.result = Some(Err(SendError::Cancelled));
        }
        if sending.result.is_none() {
            self.await_writable(token);
            return None;
        }
        let event = self.conns.give_sent(token, send);
        if closing {
            self.finish_close(token);
        }
        Some(event)
    }

    /// Asks the kernel to say when the socket takes more.
    pub(super) fn await_writable(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        if slot.send == NONE || slot.flags.has(Flags::AWAITING) {
            return;
        }
        let Some(fd) = pend(slot, Flags::AWAITING) else { return };
        self.ring.push(opcode::PollAdd::new(fd, libc::POLLOUT as u32).build(), writable_name(token));
    }

    pub(super) fn stop_awaiting(&mut self, token: Token) {
        self.ring.cancel(writable_name(token));
    }
}
