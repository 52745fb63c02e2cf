//! Errors of starting a server.

use std::fmt;
use std::io;
use std::path::Path;

use crate::listen_address::ListenAddress;

/// Error of starting a server. Displays as one sentence.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// An address can't be bound.
    Bind {
        /// The address.
        address: ListenAddress,
        /// The reason.
        error: io::Error,
    },
    /// A socket that was passed as listening can't be used.
    Socket(io::Error),
    /// The configured driver isn't available.
    Driver {
        /// The missing requirement and a remedy.
        why: String,
    },
    /// A worker can't be pinned to a core.
    Pin(io::Error),
    /// No address was given.
    NoAddress,
    /// More addresses were given than can be numbered.
    TooManyAddresses,
    /// The system failed to create a driver or a thread.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { address: ListenAddress::Unix { path, .. }, error } => unix(f, path, error),
            Self::Bind { address, error } if error.kind() == io::ErrorKind::AddrInUse => {
                write!(f, "{address} is taken by another program: choose another port, or end that program")
            }
            Self::Bind { address, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(f, "{address}: permission denied (ports below 1024 need a privilege)")
            }
            Self::Bind { address, error } => write!(f, "can't listen on {address}: {error}"),
            Self::Socket(error) => write!(f, "can't use the inherited listening socket: {error}"),
            Self::Driver { why } => f.write_str(why),
            Self::Pin(error) => write!(f, "can't pin a worker to its core: {error}"),
            Self::NoAddress => f.write_str("no address to listen on"),
            Self::TooManyAddresses => {
                f.write_str("more addresses to listen on than can be numbered (65,536)")
            }
            Self::System(error) => write!(f, "the system failed to start a worker: {error}"),
        }
    }
}

/// Describes why a Unix-domain socket can't be created.
fn unix(f: &mut fmt::Formatter<'_>, path: &Path, error: &io::Error) -> fmt::Result {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            write!(f, "unix:{path} is taken by another program: choose another name, or end that program")
        }
        io::ErrorKind::AlreadyExists => {
            write!(f, "unix:{path}: {error}, and it is not replaced: choose another name, or remove it")
        }
        io::ErrorKind::PermissionDenied => {
            write!(f, "unix:{path}: permission denied")
        }
        io::ErrorKind::NotFound => write!(f, "unix:{path}: there is no such folder: make it first"),
        io::ErrorKind::InvalidInput => {
            write!(f, "unix:{path}: the name is too long for a socket (about 100 bytes are allowed)")
        }
        _ => write!(f, "can't listen on unix:{path}: {error}"),
    }
}

impl std::error::Error for StartError {}
