//! Accepting: listeners are registered once and for all, as are the connections that come by them.

use std::os::fd::{AsRawFd, OwnedFd};

use mio::Interest;
use mio::unix::SourceFd;

use super::{Poll, wake};
use crate::listeners::Arrival;
use crate::{Event, ListenerId};

/// What is to be announced of a connection: urgent data too, where the system tells it apart.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);
/// What is to be announced of a connection.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE);

impl Poll {
    /// The next new connection, or event of accepting.
    pub(super) fn next_accept(&mut self) -> Option<Event> {
        match self.listeners.next(self.conns.slots.used())? {
            Arrival::Connection(fd, listener) => Some(self.admit(fd, listener)),
            Arrival::Event(event) => Some(event),
        }
    }

    /// Registers a new connection, once and for all.
    fn admit(&mut self, fd: OwnedFd, listener: ListenerId) -> Event {
        let token = self.conns.slots.next_token();
        let registered =
            self.poll.registry().register(&mut SourceFd(&fd.as_raw_fd()), wake::connection(token), INTERESTS);
        if registered.is_err() {
            return self.listeners.put_back(fd, listener);
        }
        let token = self.conns.slots.insert(fd);
        Event::Accepted { token, listener }
    }
}
