//! Listening sockets that the program or its supervisor has bound.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

/// A TCP or Unix-domain socket that is already listening. Its address, its queue and its file remain
/// unchanged; [`TcpOptions`](crate::TcpOptions) are set on it, and it becomes non-blocking.
///
/// With one worker, that worker accepts from it. With several, one thread accepts for all of them, as with
/// [`AcceptMode::Dispatch`](crate::AcceptMode::Dispatch).
#[derive(Clone)]
pub struct ListeningSocket {
    socket: Arc<OwnedFd>,
}

impl ListeningSocket {
    /// Duplicates the descriptor for the server. The file of a Unix-domain socket is not removed.
    pub(crate) fn duplicate(&self) -> std::io::Result<OwnedFd> {
        self.socket.as_fd().try_clone_to_owned()
    }

    /// Returns the TCP address that it is bound to.
    ///
    /// # Errors
    /// The socket isn't a TCP socket, or the system call fails.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        match self.bound_address()? {
            BoundAddress::Tcp(address) => Ok(address),
            BoundAddress::Unix(_) => Err(std::io::Error::new(
                std::io::ErrorKind::Unsupported,
                "a Unix-domain socket has no TCP address",
            )),
        }
    }

    /// Returns the address that it is bound to.
    pub(crate) fn bound_address(&self) -> std::io::Result<BoundAddress> {
        // Both types accept a socket of any family; only `local_addr` fails.
        let unix = UnixListener::from(self.duplicate()?);
        match unix.local_addr() {
            Ok(address) => Ok(BoundAddress::Unix(address.as_pathname().map(PathBuf::from))),
            Err(_) => TcpListener::from(self.duplicate()?).local_addr().map(BoundAddress::Tcp),
        }
    }
}

/// Address of a listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BoundAddress {
    Tcp(SocketAddr),
    /// Without a path: an abstract or unnamed socket.
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
        match self.bound_address() {
            Ok(bound_address) => write!(f, "ListeningSocket({bound_address:?})"),
            Err(error) => write!(f, "ListeningSocket({error})"),
        }
    }
}
