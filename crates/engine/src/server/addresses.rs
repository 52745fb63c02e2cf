//! Addresses to listen on, and sockets that are already listening.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

use shearwater_io::{FileIdentity, listen};

/// Default mode of a Unix-domain socket: its owner and its group may connect.
pub const UNIX_MODE: u32 = 0o660;

/// A TCP address or the path of a Unix-domain socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListenAddress {
    /// A TCP address; port 0 takes a free one. `[::]` includes IPv4 (`IPV6_V6ONLY` off, whatever the system's
    /// default), unless the same server listens on the same IPv4 port separately.
    Tcp(SocketAddr),
    /// A TCP address whose connections begin with TLS: see [`Server::start_secure`](crate::Server::start_secure).
    Tls(SocketAddr),
    /// A socket in the file system. A stale socket of a dead server is replaced; the file is removed when the
    /// server stops accepting, unless another process has got the socket.
    Unix {
        /// Path of the socket, about 100 bytes at most.
        path: PathBuf,
        /// Mode bits: users with write permission may connect.
        mode: u32,
    },
}

impl ListenAddress {
    /// Returns a Unix-domain socket with [`UNIX_MODE`].
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::Unix { path: path.into(), mode: UNIX_MODE }
    }

    /// Returns true if a socket of the other address can serve this one: the modes of Unix-domain sockets may differ.
    #[must_use]
    pub fn is_same_socket(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unix { path, .. }, Self::Unix { path: other, .. }) => path == other,
            _ => self == other,
        }
    }

    /// Returns the TCP address, with or without TLS.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) | Self::Tls(address) => Some(*address),
            Self::Unix { .. } => None,
        }
    }

    /// Returns true if its connections begin with TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Returns true if it is an IPv4 address with this port, which must not be 0.
    pub(crate) fn is_v4_port(&self, port: u16) -> bool {
        matches!(self.tcp(), Some(SocketAddr::V4(address)) if address.port() == port && port != 0)
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) | Self::Tls(address) => address.fmt(f),
            Self::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A TCP or Unix-domain socket that is already listening. Its address, its queue and its file remain
/// unchanged; [`TcpOptions`](crate::TcpOptions) are set on it, and it becomes non-blocking.
///
/// With one worker, that worker accepts from it. With several, one thread accepts for all of them, as with
/// [`AcceptMode::Dispatch`](crate::AcceptMode::Dispatch).
#[derive(Clone)]
pub struct ListeningSocket {
    socket: Arc<OwnedFd>,
    pub(crate) is_secure: bool,
}

impl ListeningSocket {
    /// Has its connections begin with TLS: see [`ListenAddress::Tls`].
    #[must_use]
    pub fn with_tls(self) -> Self {
        Self { is_secure: true, ..self }
    }

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

    /// Returns whether it is bound to `address`.
    ///
    /// # Errors
    /// The system call fails: it is no socket, for example.
    pub fn is_at(&self, address: &ListenAddress) -> std::io::Result<bool> {
        Ok(match (self.bound_address()?, address) {
            (BoundAddress::Tcp(bound), ListenAddress::Tcp(address) | ListenAddress::Tls(address)) => {
                bound == *address
            }
            (BoundAddress::Unix(bound), ListenAddress::Unix { path, .. }) => bound.as_ref() == Some(path),
            _ => false,
        })
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

impl fmt::Display for BoundAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(Some(path)) => write!(f, "unix:{}", path.display()),
            Self::Unix(None) => f.write_str("a socket without a path"),
        }
    }
}

impl AsFd for ListeningSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl From<Arc<OwnedFd>> for ListeningSocket {
    fn from(socket: Arc<OwnedFd>) -> Self {
        Self { socket, is_secure: false }
    }
}

impl From<OwnedFd> for ListeningSocket {
    fn from(socket: OwnedFd) -> Self {
        Self { socket: Arc::new(socket), is_secure: false }
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

/// Its address.
impl fmt::Display for ListeningSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bound_address() {
            Ok(bound_address) => bound_address.fmt(f),
            Err(error) => write!(f, "a descriptor that is no socket ({error})"),
        }
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

/// The listening sockets of one address, which one process of a server passes to the next.
#[derive(Debug, Clone)]
pub struct PassedListener {
    /// The address that the server was asked to listen on; `None` for a socket that it was given.
    pub address: Option<ListenAddress>,
    /// The file of a Unix-domain socket.
    pub file: Option<FileIdentity>,
    /// The sockets, one for each worker that accepts from its own.
    pub sockets: Vec<ListeningSocket>,
}

impl PassedListener {
    /// Takes the first of `passed` that was asked for as `wanted` is.
    pub fn take(passed: &mut Vec<Self>, wanted: &ListenAddress) -> Option<Self> {
        let is_it =
            |passed: &Self| passed.address.as_ref().is_some_and(|address| address.is_same_socket(wanted));
        passed.iter().position(is_it).map(|index| passed.remove(index))
    }

    /// Closes a listener that no server has taken, and removes its file unless another is there by now.
    pub fn discard(self) {
        if let (Some(ListenAddress::Unix { path, .. }), Some(file)) = (&self.address, self.file) {
            file.remove_at(path);
        }
    }

    /// Returns the bound address, and further descriptors of the sockets; `None` if none of them listens.
    pub(crate) fn listening(&self) -> io::Result<Option<(BoundAddress, Vec<OwnedFd>)>> {
        let mut listening = Vec::new();
        let mut bound = None;
        for socket in &self.sockets {
            let descriptor = socket.duplicate()?;
            if listen::is_listening(&descriptor)? {
                bound = Some(socket.bound_address()?);
                listening.push(descriptor);
            }
        }
        Ok(bound.map(|bound| (bound, listening)))
    }
}

#[cfg(test)]
mod tests {
    use super::{ListenAddress, PassedListener};

    #[test]
    fn each_address_takes_its_own_sockets() {
        let any: ListenAddress = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let path = ListenAddress::unix("/run/x.sock");
        let of = |address: Option<&ListenAddress>| PassedListener {
            address: address.cloned(),
            file: None,
            sockets: vec![],
        };
        let mut passed = vec![of(None), of(Some(&any)), of(Some(&path)), of(Some(&any))];
        let other_mode = ListenAddress::Unix { path: "/run/x.sock".into(), mode: 0o600 };
        for (wanted, is_there) in
            [(&any, true), (&other_mode, true), (&other_mode, false), (&any, true), (&any, false)]
        {
            let taken = PassedListener::take(&mut passed, wanted).map(|taken| taken.address.is_some());
            assert_eq!(taken, is_there.then_some(true), "{wanted}");
        }
        assert_eq!(passed.len(), 1, "a socket that was given has no address");
    }
}
