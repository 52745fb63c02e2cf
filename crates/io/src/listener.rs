//! Listening sockets, TCP or Unix-domain, for drivers and acceptors.

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::ListenerId;
use crate::inbox::Inbox;
use crate::unix::SocketFile;

/// A listening socket and its number in [`Event::Accepted`](crate::Event::Accepted).
#[derive(Debug)]
pub struct Listener {
    /// The file of a Unix-domain socket. Dropped first, so that its check happens while the socket still
    /// holds its inode, which no other file can have then.
    file: Option<SocketFile>,
    socket: OwnedFd,
    id: ListenerId,
}

impl Listener {
    /// Wraps a listening socket.
    #[must_use]
    pub fn new(socket: OwnedFd, id: ListenerId) -> Self {
        Self { socket, id, file: None }
    }

    /// Wraps a Unix-domain socket whose file is removed with it.
    pub(crate) fn with_file(socket: OwnedFd, id: ListenerId, file: SocketFile) -> Self {
        Self { socket, id, file: Some(file) }
    }

    /// Returns its number.
    #[must_use]
    pub fn id(&self) -> ListenerId {
        self.id
    }

    /// Unlinks its file, if any; queued connections stay queued.
    pub(crate) fn hide(&mut self) {
        self.file = None;
    }

    /// Makes accepting return if no connection is queued.
    pub(crate) fn set_nonblocking(&self) -> std::io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.socket, true)?)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Sources of a driver's connections.
#[derive(Debug, Default)]
pub struct Entrances {
    /// Its own listeners.
    pub listeners: Vec<Listener>,
    /// Connections from an acceptor.
    pub inbox: Inbox,
}

/// Listeners alone, numbered in their order.
impl From<Vec<TcpListener>> for Entrances {
    /// # Panics
    /// Panics for more listeners than [`ListenerId`] counts.
    fn from(sockets: Vec<TcpListener>) -> Self {
        let id = |index| ListenerId::try_from(index).expect("a listener's number fits ListenerId");
        let numbered = sockets.into_iter().enumerate();
        let listeners = numbered.map(|(index, socket)| Listener::new(socket.into(), id(index))).collect();
        Self { listeners, inbox: Inbox::default() }
    }
}
