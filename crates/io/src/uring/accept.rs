//! Accepting: one poll entry per listener reports connections, which are then accepted as in the readiness
//! driver.
//!
//! A multishot accept entry takes the kernel's whole queue in one enter, and every descriptor
//! (docs/decisions/0004-io-uring-shape.md).

use io_uring::opcode;
use io_uring::types::Fd;

use super::Uring;
use super::ring::{Kind, Name};
use crate::listeners::Arrival;
use crate::{Event, ListenerId, Token};

fn name(index: ListenerId) -> Name {
    Name::new(Kind::Listener, Token::new(u32::from(index), 0))
}

impl Uring {
    /// Watches the listeners without reported connections.
    pub(super) fn watch_listeners(&mut self) {
        if !self.listeners.are_open() {
            return;
        }
        while let Some((index, fd)) = self.listeners.queues.next_to_watch() {
            self.ring.push(opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32).build(), name(index));
        }
    }

    /// Ends accepting. Also cancels the watching entries, which keep the kernel listening.
    pub(super) fn stop_accept(&mut self) {
        if self.listeners.stop(self.conns.slots.used()) {
            self.listeners.queues.watched().for_each(|index| self.ring.cancel(name(index)));
        }
    }

    /// Returns the next new connection, or event of accepting.
    pub(super) fn next_accept(&mut self) -> Option<Event> {
        match self.listeners.next(self.conns.slots.used())? {
            Arrival::Connection(fd, listener) => {
                let token = self.conns.slots.insert(fd);
                self.arm_recv(token);
                Some(Event::Accepted { token, listener })
            }
            Arrival::Event(event) => Some(event),
        }
    }
}
