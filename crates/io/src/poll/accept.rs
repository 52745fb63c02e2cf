//! Accepting: listeners and their connections are registered once.

use std::os::fd::{AsRawFd, OwnedFd};

use mio::Interest;
use mio::unix::SourceFd;

use super::{Poll, wake};
use crate::listeners::Arrival;
use crate::{Event, ListenerId};

/// Events to report for a connection, including urgent data where the system reports it separately.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);
/// Events to report for a connection.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE);

impl Poll {
    /// Returns the next new connection, or event of accepting.
    pub(super) fn next_accept(&mut self) -> Option<Event> {
        match self.listeners.next(self.conns.slots.used())? {
            Arrival::Connection(fd, listener) => Some(self.admit(fd, listener)),
            Arrival::Event(event) => Some(event),
        }
    }

    /// Registers a new connection, once.
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
