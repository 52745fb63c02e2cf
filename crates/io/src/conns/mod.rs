//! The connections of a driver that meets the kernel: slots, sends in flight, and the queue of what is left to do.
//!
//! Readiness and completion drivers differ in how they hear of things. What a connection is, how a send goes on by hand,
//! and in which order things are told is the same, and stands here.

mod push;
mod queue;
mod sends;
mod slots;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{Shutdown, getpeername, shutdown};

use crate::{Event, Output, ReadEnd, SendError, Token};
use push::{Stop, push};
use sends::Sends;

#[cfg(target_os = "linux")]
pub(crate) use push::GATHER_MAX;
pub(crate) use queue::{Completion, Queue};
pub(crate) use slots::{Flags, NONE, Slot, Slots};

/// How a push by hand has left the send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The send of this index has ended.
    Ended(u32),
    /// The socket is full.
    Full,
    /// It goes on in a later turn.
    Share,
}

/// The connections of one driver. `X` is what it keeps of each besides.
#[derive(Debug)]
pub(crate) struct Conns<X> {
    pub(crate) slots: Slots<X>,
    pub(crate) sends: Sends,
    pub(crate) queue: Queue,
    /// For files that the kernel won't send itself; empty until the first.
    copy_buffer: Vec<u8>,
}

impl<X: Default> Conns<X> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Slots::new(),
            sends: Sends::default(),
            queue: Queue::default(),
            copy_buffer: Vec::new(),
        }
    }

    /// Takes an output in (S1, S2); the index of the send.
    pub(crate) fn take_in(&mut self, token: Token, output: Output) -> Option<u32> {
        let Some(slot) = self.slots.open_mut(token) else {
            debug_assert!(false, "send to {token:?}, which is not open");
            return None;
        };
        assert!(self.sends.get(slot.send).is_none(), "a second send in flight on {token:?}");
        slot.send = self.sends.insert(output);
        Some(slot.send)
    }

    /// Begins a send by hand; its end is announced.
    pub(crate) fn push_first(&mut self, token: Token) -> Pushed {
        let (pushed, _) = self.push(token);
        let Some(slot) = self.slots.open_mut(token) else { return pushed };
        match pushed {
            Pushed::Ended(send) => self.queue.complete(token, send, &mut slot.flags),
            Pushed::Share => self.queue.enqueue(token, &mut slot.flags),
            Pushed::Full => {}
        }
        pushed
    }

    /// Goes on with a send by hand, where there is something to go on with and the turn leaves room for it. Its end is
    /// not announced, but the caller's to give.
    pub(crate) fn push_more(&mut self, token: Token) -> Option<Pushed> {
        let slot = self.slots.open(token).filter(|slot| slot.flags.has(Flags::WRITABLE))?;
        if slot.turn_bytes_left(self.queue.turn) == 0 || self.queue.send_bytes_left == 0 {
            return None;
        }
        let (pushed, sent) = self.push(token);
        self.queue.send_bytes_left = self.queue.send_bytes_left.saturating_sub(sent);
        Some(pushed)
    }

    /// Hands the kernel as much as it takes within the turn's share. How that ended, and the number of bytes.
    fn push(&mut self, token: Token) -> (Pushed, u64) {
        let turn = self.queue.turn;
        let Some(slot) = self.slots.open_mut(token) else { return (Pushed::Full, 0) };
        let (Some(sending), Some(fd)) = (self.sends.get_mut(slot.send), slot.fd.as_ref()) else {
            return (Pushed::Full, 0);
        };
        slot.flags.clear(Flags::WRITABLE);
        if sending.result.is_some() {
            return (Pushed::Full, 0);
        }
        let before = sending.done;
        let end = push(fd, sending, slot.turn_bytes_left(turn), &mut self.copy_buffer);
        let sent = sending.done - before;
        let pushed = match end {
            Ok(()) => {
                sending.result = Some(Ok(()));
                Pushed::Ended(slot.send)
            }
            Err(Stop::Full) => Pushed::Full,
            Err(Stop::Share) => {
                slot.flags.set(Flags::WRITABLE);
                Pushed::Share
            }
            Err(Stop::Failed(error)) => {
                if matches!(error, SendError::Broken(_)) {
                    slot.flags.set(Flags::BROKEN);
                }
                sending.result = Some(Err(error));
                Pushed::Ended(slot.send)
            }
        };
        slot.add_turn_bytes(turn, sent);
        (pushed, sent)
    }

    /// Notes whether receiving is paused (R3).
    pub(crate) fn set_paused(&mut self, token: Token, paused: bool) {
        match self.slots.open_mut(token) {
            Some(slot) if paused => slot.flags.set(Flags::PAUSED),
            Some(slot) => slot.flags.clear(Flags::PAUSED),
            None => debug_assert!(false, "recv_pause or recv_resume of {token:?}, which is not open"),
        }
    }

    /// Bytes of the send in flight that the kernel has taken (S6).
    pub(crate) fn progress(&self, token: Token) -> u64 {
        let sending = self.slots.open(token).and_then(|slot| self.sends.get(slot.send));
        sending.map_or(0, |sending| sending.done)
    }

    /// Ends the sending side (C1).
    pub(crate) fn end_writing(&self, token: Token) {
        let Some(slot) = self.slots.open(token) else {
            debug_assert!(false, "shutdown_write of {token:?}, which is not open");
            return;
        };
        debug_assert!(self.sends.get(slot.send).is_none(), "shutdown_write of {token:?} while it sends");
        if let Some(fd) = &slot.fd {
            // It fails only on a broken connection, which is reported by the receiving side.
            let _ = shutdown(fd, Shutdown::Write);
        }
    }

    /// Announces that a close has cut off the send of this index, if it was still going on.
    pub(crate) fn cut_off(&mut self, token: Token, send: u32) {
        if let Some(sending) = self.sends.get_mut(send)
            && sending.result.is_none()
        {
            sending.result = Some(Err(SendError::Cancelled));
            self.queue.cancelled(token, send);
        }
    }

    /// Whether the connection can be handed out (C5).
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] where it is not open.
    pub(crate) fn check_detach(&self, token: Token) -> io::Result<&OwnedFd> {
        let Some(slot) = self.slots.open(token) else {
            debug_assert!(false, "detach of {token:?}, which is not open");
            return Err(io::ErrorKind::NotConnected.into());
        };
        assert!(self.sends.get(slot.send).is_none(), "detach of {token:?} while it sends");
        slot.fd.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Hands the descriptor out; `Closed` follows.
    pub(crate) fn hand_out(&mut self, token: Token) -> io::Result<OwnedFd> {
        let slot = self.slots.open_mut(token).ok_or(io::ErrorKind::NotConnected)?;
        let flags = slot.flags;
        let fd = slot.fd.take().ok_or(io::ErrorKind::NotConnected)?;
        self.queue.closed(token, flags);
        Ok(fd)
    }

    /// The peer's address.
    pub(crate) fn peer(&self, token: Token) -> io::Result<SocketAddr> {
        let fd =
            self.slots.open(token).and_then(|slot| slot.fd.as_ref()).ok_or(io::ErrorKind::NotConnected)?;
        let address = getpeername(fd.as_fd())?.ok_or(io::ErrorKind::NotConnected)?;
        Ok(SocketAddr::try_from(address)?)
    }

    /// What goes before anything else: what verbs have brought about, then the waker.
    pub(crate) fn next_told(&mut self) -> Option<Event> {
        if let Some(completion) = self.queue.pop() {
            return Some(self.give(completion));
        }
        std::mem::take(&mut self.queue.woken).then_some(Event::Woken)
    }

    /// Turns a completion into its event. From here on the connection has no send, or the slot no connection.
    pub(crate) fn give(&mut self, completion: Completion) -> Event {
        match completion {
            Completion::Sent { token, send } => {
                self.queue.giving(true);
                if let Some(slot) = self.slots.held_mut(token) {
                    slot.send = NONE;
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

/// The last word on a connection's receiving side. A send that met the reset first has used up the kernel's error:
/// what looks like a FIN then is none.
pub(crate) fn read_closed<X>(token: Token, slot: &mut Slot<X>, error: Option<io::Error>) -> Event {
    slot.flags.set(Flags::READ_CLOSED);
    let end = match error {
        Some(error) => ReadEnd::Broken(error),
        None if slot.flags.has(Flags::BROKEN) => ReadEnd::Broken(io::ErrorKind::ConnectionReset.into()),
        None => ReadEnd::Eof,
    };
    Event::ReadClosed { token, end }
}
