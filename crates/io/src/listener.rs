//! A socket that listens, of TCP or Unix's own, as drivers and acceptors take it.

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::ListenerId;
use crate::inbox::Inbox;
use crate::unix::SocketFile;

/// A listening socket, and the number that [`Event::Accepted`](crate::Event::Accepted) gives for it.
#[derive(Debug)]
pub struct Listener {
    /// The name of a Unix-domain socket in the file system. First, so that it is looked at while the socket still holds its inode: no
    /// other file has the same then.
    file: Option<SocketFile>,
    socket: OwnedFd,
    id: ListenerId,
}

impl Listener {
    /// A socket that listens already.
    #[must_use]
    pub fn new(socket: OwnedFd, id: ListenerId) -> Self {
        Self { socket, id, file: None }
    }

    /// A Unix-domain socket, whose file goes when it does.
    pub(crate) fn with_file(socket: OwnedFd, id: ListenerId, file: SocketFile) -> Self {
        Self { socket, id, file: Some(file) }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> ListenerId {
        self.id
    }

    /// Lets nobody new find it where it has a file; who is in its queue already stays there.
    pub(crate) fn hide(&mut self) {
        self.file = None;
    }

    /// Makes accepting return where nobody waits.
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

/// Where a driver's connections come from.
#[derive(Debug, Default)]
pub struct Entrances {
    /// Its own listeners.
    pub listeners: Vec<Listener>,
    /// What an acceptor hands over.
    pub inbox: Inbox,
}

/// Listeners alone, numbered in their order.
impl From<Vec<TcpListener>> for Entrances {
    /// # Panics
    /// Where there are more than [`ListenerId`] counts.
    fn from(sockets: Vec<TcpListener>) -> Self {
        let id = |index| ListenerId::try_from(index).expect("fewer listeners than numbers");
        let numbered = sockets.into_iter().enumerate();
        let listeners = numbered.map(|(index, socket)| Listener::new(socket.into(), id(index))).collect();
        Self { listeners, inbox: Inbox::default() }
    }
}
