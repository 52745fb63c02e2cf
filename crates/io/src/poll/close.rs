//! Closing and detaching connections.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;

use super::Poll;
use crate::{CloseKind, Token, socket};

impl Poll {
    pub(super) fn end_connection(&mut self, token: Token, kind: CloseKind) {
        let Some(slot) = self.conns.slots.open_mut(token) else {
            return self.conns.close_handed_out(token);
        };
        let fd = slot.fd.take();
        let (send, flags) = (slot.send, slot.flags);
        self.conns.cut_off(token, send);
        self.conns.queue.closed(token, flags);
        if let (Some(fd), CloseKind::Reset) = (&fd, kind) {
            socket::reset_on_close(fd);
        }
    }

    pub(super) fn detach_connection(&mut self, token: Token) -> io::Result<OwnedFd> {
        let raw = self.conns.check_detach(token)?.as_raw_fd();
        self.poll.registry().deregister(&mut SourceFd(&raw))?;
        self.conns.hand_out(token)
    }
}
