//! Where a server listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Who may connect to a Unix-domain socket unless it is said otherwise: its owner and its group.
pub const UNIX_MODE: u32 = 0o660;

/// Where a server listens: an address of TCP, or the name of a Unix-domain socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListenAddress {
    /// Port 0 takes a free one. `[::]` takes IPv4 too (`IPV6_V6ONLY` off, whatever the system's default is), unless the same
    /// server listens on the same port of IPv4 by itself.
    Tcp(SocketAddr),
    /// A socket in the file system. What a server has left there that is no more is replaced; the file goes when the server
    /// stops accepting.
    Unix {
        /// The file. About 100 bytes at most.
        path: PathBuf,
        /// The bits of `chmod`: who has the right to write may connect.
        mode: u32,
    },
}

impl ListenAddress {
    /// A Unix-domain socket with [`UNIX_MODE`].
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::Unix { path: path.into(), mode: UNIX_MODE }
    }

    /// Whether it is an IPv4 address with this port, which is a certain one.
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
