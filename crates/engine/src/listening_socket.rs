//! A socket that listens before the server is set up: bound by the program, or handed over by who started it.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

/// A socket that listens already, of TCP or Unix's own. Its address, its queue and its file stay as they are; the options of
/// [`TcpOptions`](crate::TcpOptions) are set on it, and it is made non-blocking.
///
/// It is one socket: with one worker that worker accepts by itself, with more one thread accepts for all of them, as by
/// [`AcceptMode::Dispatch`](crate::AcceptMode::Dispatch).
#[derive(Clone)]
pub struct ListeningSocket {
    socket: Arc<OwnedFd>,
}

impl ListeningSocket {
    /// One for the server itself. The file of a Unix-domain socket is not the server's, and stays.
    pub(crate) fn duplicate(&self) -> std::io::Result<OwnedFd> {
        self.socket.as_fd().try_clone_to_owned()
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// The socket isn't one of TCP, or the system refuses.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        match self.place()? {
            Place::Tcp(address) => Ok(address),
            Place::Unix(_) => Err(std::io::Error::new(
                std::io::ErrorKind::Unsupported,
                "a Unix-domain socket has no address of TCP",
            )),
        }
    }

    /// Where it listens.
    pub(crate) fn place(&self) -> std::io::Result<Place> {
        // Neither asks what family the socket is of before it is asked for its address.
        let unix = UnixListener::from(self.duplicate()?);
        match unix.local_addr() {
            Ok(address) => Ok(Place::Unix(address.as_pathname().map(PathBuf::from))),
            Err(_) => TcpListener::from(self.duplicate()?).local_addr().map(Place::Tcp),
        }
    }
}

/// Where a socket listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    /// Without a path: a name that is in no file system.
    Unix(Option<PathBuf>),
}

impl From<OwnedFd> for ListeningSocket {
    fn from(socket: OwnedFd) -> Self {
        Self { socket: Arc::new(socket) }
    }
}

impl From<TcpListener> for ListeningSocket {
    fn from(listener: TcpListener) -> Self {
        OwnedFd::from(listener).into()
    }
}

impl From<UnixListener> for ListeningSocket {
    fn from(listener: UnixListener) -> Self {
        OwnedFd::from(listener).into()
    }
}

impl fmt::Debug for ListeningSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Ok(place) => write!(f, "ListeningSocket({place:?})"),
            Err(error) => write!(f, "ListeningSocket({error})"),
        }
    }
}
