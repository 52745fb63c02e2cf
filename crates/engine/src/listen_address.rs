//! Addresses to listen on.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Default mode of a Unix-domain socket: its owner and its group may connect.
pub const UNIX_MODE: u32 = 0o660;

/// A TCP address or the path of a Unix-domain socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListenAddress {
    /// A TCP address; port 0 takes a free one. `[::]` includes IPv4 (`IPV6_V6ONLY` off, whatever the system's
    /// default), unless the same server listens on the same IPv4 port separately.
    Tcp(SocketAddr),
    /// A socket in the file system. A stale socket of a dead server is replaced; the file is removed when the
    /// server stops accepting.
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

    /// Returns true if it is an IPv4 address with this port, which must not be 0.
    pub(crate) fn is_v4_port(&self, port: u16) -> bool {
        matches!(self, Self::Tcp(SocketAddr::V4(address)) if address.port() == port && port != 0)
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
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}
