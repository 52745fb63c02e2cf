//! Why a server could not start.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a server could not start. Displays as one sentence.
#[derive(Debug)]
pub enum StartError {
    /// An address can't be bound.
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The driver that was asked for isn't there.
    Driver {
        /// What is missing, and what to do.
        why: String,
    },
    /// A worker can't be pinned to a core.
    Pin(io::Error),
    /// No address was given.
    NoAddress,
    /// The system refused a driver or a thread.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { address, error } if error.kind() == io::ErrorKind::AddrInUse => {
                write!(f, "{address} is taken by another program: choose another port, or end that program")
            }
            Self::Bind { address, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(f, "{address}: this user may not listen there (ports below 1024 need a privilege)")
            }
            Self::Bind { address, error } => write!(f, "can't listen on {address}: {error}"),
            Self::Driver { why } => f.write_str(why),
            Self::Pin(error) => write!(f, "can't pin a worker to its core: {error}"),
            Self::NoAddress => f.write_str("no address to listen on"),
            Self::System(error) => write!(f, "the system refused to start a worker: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
