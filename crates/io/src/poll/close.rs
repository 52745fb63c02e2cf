//! Closing: the sending side, the connection, or the driver's part in it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use rustix::net::{Shutdown, getpeername, shutdown};

use super::Poll;
use super::socket;
use crate::{CloseKind, SendError, Token};

impl Poll {
    pub(super) fn end_writing(&mut self, token: Token) {
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

    pub(super) fn end_connection(&mut self, token: Token, kind: CloseKind) {
        let Some(slot) = self.slots.open_mut(token) else {
            debug_assert!(false, "close of {token:?}, which is not open");
            return;
        };
        let fd = slot.fd.take();
        let (send, flags) = (slot.send, slot.flags);
        if let Some(sending) = self.sends.get_mut(send)
            && sending.result.is_none()
        {
            sending.result = Some(Err(SendError::Cancelled));
            self.queue.cancelled(token, send);
        }
        self.queue.closed(token, flags);
        if let (Some(fd), CloseKind::Reset) = (&fd, kind) {
            socket::reset_on_close(fd);
        }
    }

    pub(super) fn give_up(&mut self, token: Token) -> io::Result<OwnedFd> {
        let Some(slot) = self.slots.open_mut(token) else {
            debug_assert!(false, "detach of {token:?}, which is not open");
            return Err(io::ErrorKind::NotConnected.into());
        };
        assert!(self.sends.get(slot.send).is_none(), "detach of {token:?} while it sends");
        let Some(raw) = slot.fd.as_ref().map(AsRawFd::as_raw_fd) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        self.poll.registry().deregister(&mut SourceFd(&raw))?;
        let flags = slot.flags;
        let fd = slot.fd.take().ok_or(io::ErrorKind::NotConnected)?;
        self.queue.closed(token, flags);
        Ok(fd)
    }

    pub(super) fn peer_address(&self, token: Token) -> io::Result<SocketAddr> {
        let fd =
            self.slots.open(token).and_then(|slot| slot.fd.as_ref()).ok_or(io::ErrorKind::NotConnected)?;
        let address = getpeername(fd)?.ok_or(io::ErrorKind::NotConnected)?;
        Ok(SocketAddr::try_from(address)?)
    }
}
