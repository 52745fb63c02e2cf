//! Adopted sockets: real ones, whose bytes a simulated connection carries between two turns.
//!
//! The other end of the socket is the peer's program. A fault of the simulation meets an adopted connection as any other.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, send, shutdown};

use super::conn::SimConnection;
use super::kernel::Kernel;
use super::options::{Rng, peer_address};
use super::wire::Wire;
use crate::Token;
use crate::socket::NO_SIGNAL;

/// Bytes that a wire takes from a socket before the driver has read them.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// An adopted socket and its connection's bytes.
#[derive(Debug)]
pub(super) struct AdoptedSocket {
    wire: Rc<RefCell<Wire>>,
    socket: OwnedFd,
    is_shut: bool,
}

impl Kernel {
    /// Inserts a connection for a socket (A9).
    pub(super) fn adopt(&mut self, socket: OwnedFd) -> Token {
        let rng = Rng::new(self.options.seed ^ self.connections as u64);
        let mut wire = Wire::new(self.options.send_buffer_bytes, self.options.reset_losses, rng);
        wire.reading = false;
        let wire = Rc::new(RefCell::new(wire));
        let carried = Rc::clone(&wire);
        let address: SocketAddr = peer_address(0);
        let token = self.insert(|token| SimConnection::new(token, carried, address));
        self.limit.leave(1);
        self.uncounted += 1;
        if let Some(conn) = self.conn_at(token.slot()) {
            conn.is_adopted = true;
        }
        self.adopted.push(AdoptedSocket { wire, socket, is_shut: false });
        token
    }

    /// Carries bytes and ends between adopted sockets and their connections.
    pub(super) fn carry(&mut self) {
        self.adopted.retain_mut(AdoptedSocket::carry);
    }
}

impl AdoptedSocket {
    /// Returns false once the socket is to be closed.
    fn carry(&mut self) -> bool {
        let mut wire = self.wire.borrow_mut();
        self.take_input(&mut wire);
        self.give_output(&mut wire);
        if wire.server_finished && wire.to_peer.is_empty() && !self.is_shut {
            self.is_shut = true;
            // It fails only if the other end is closed.
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
        let is_closed = wire.has_server_closed() && wire.to_peer.is_empty();
        !wire.reset && !is_closed
    }

    fn take_input(&self, wire: &mut Wire) {
        let mut bytes = [0; 4096];
        while !wire.peer_finished && !wire.reset && wire.readable() < UNREAD_BYTES_MAX {
            match recv(&self.socket, &mut bytes[..], RecvFlags::empty()) {
                Ok((_, 0)) => wire.peer_finished = true,
                Ok((_, count)) => drop(wire.peer_writes(&bytes[..count])),
                Err(Errno::AGAIN) => return,
                Err(_) => wire.peer_resets(),
            }
        }
    }

    fn give_output(&self, wire: &mut Wire) {
        while !wire.to_peer.is_empty() {
            match send(&self.socket, wire.to_peer.as_slices().0, NO_SIGNAL) {
                Ok(count) => drop(wire.to_peer.drain(..count)),
                Err(Errno::AGAIN) => return,
                // The other end is closed.
                Err(_) => return wire.peer_closes(),
            }
        }
    }
}
