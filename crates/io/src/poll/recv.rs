//! Receiving: into the worker's one buffer, and no more often than there is something to get.

use std::io;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::Poll;
use super::slots::{Flags, Slot};
use crate::limits::RECVS_PER_TURN_MAX;
use crate::{Event, ReadEnd, Token};

impl Poll {
    pub(super) fn pause_recv(&mut self, token: Token) {
        let slot = self.slots.open_mut(token);
        debug_assert!(slot.is_some(), "recv_pause of {token:?}, which is not open");
        if let Some(slot) = slot {
            slot.flags.set(Flags::PAUSED);
        }
    }

    pub(super) fn resume_recv(&mut self, token: Token) {
        let slot = self.slots.open_mut(token);
        debug_assert!(slot.is_some(), "recv_resume of {token:?}, which is not open");
        if let Some(slot) = slot {
            slot.flags.clear(Flags::PAUSED);
            if slot.flags.wants_recv() {
                self.queue.enqueue(token, &mut slot.flags);
            }
        }
    }

    /// Receives once from the connection that is being served, if there is anything and it has not had its share.
    pub(super) fn receive(&mut self, token: Token) -> Option<Event> {
        let slot = self.slots.open_mut(token)?;
        if !slot.flags.wants_recv() || self.queue.recvs == RECVS_PER_TURN_MAX {
            return None;
        }
        self.queue.recvs += 1;
        let fd = slot.fd.as_ref()?;
        match recv(fd, &mut self.buffer[..], RecvFlags::empty()) {
            Ok((_, 0)) => Some(ended(token, slot, None)),
            Ok((_, count)) => {
                // A short read has emptied the socket, and what comes later is announced anew. Only a FIN that was
                // announced together with the data isn't.
                if count < self.buffer.len() && !slot.flags.has(Flags::PEER_ENDED) {
                    slot.flags.clear(Flags::READABLE);
                }
                self.lent = count;
                Some(Event::Received { token })
            }
            Err(Errno::AGAIN) => {
                slot.flags.clear(Flags::READABLE);
                None
            }
            // It stays readable: the next turn tries again.
            Err(Errno::INTR) => None,
            Err(errno) => Some(ended(token, slot, Some(errno))),
        }
    }
}

/// The last word on a connection's receiving side. A send that met the reset first has used up the kernel's error:
/// what looks like a FIN then is none.
fn ended(token: Token, slot: &mut Slot, errno: Option<Errno>) -> Event {
    slot.flags.set(Flags::READ_CLOSED);
    let end = match errno {
        Some(errno) => ReadEnd::Broken(errno.into()),
        None if slot.flags.has(Flags::BROKEN) => ReadEnd::Broken(io::ErrorKind::ConnectionReset.into()),
        None => ReadEnd::Eof,
    };
    Event::ReadClosed { token, end }
}
