//! Reasons for which a server doesn't start.

use std::path::Path;
use std::{fmt, io};

use crate::server::addresses::ListenAddress;

/// Error of starting a server, or of changing its addresses. Displays as one sentence.
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
    /// The function that makes a worker's service has panicked.
    Service {
        /// Number of the worker.
        worker: usize,
        /// Panic message.
        message: String,
    },
    /// PROXY headers are required, and no proxy is trusted that could send them.
    NoTrustedProxy,
    /// No address was given.
    NoAddress,
    /// An address is to begin with TLS, and the server was started without it.
    NoTls(String),
    /// A drain or stop of the running server has been ordered.
    Ending,
    /// An earlier change of addresses isn't finished: a worker is blocked.
    Unfinished,
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
                let low = address.tcp().is_some_and(|address| address.port() < 1024);
                let why = if low { "ports below 1024 need a privilege" } else { "a sandbox or firewall forbids it" };
                write!(f, "{address}: permission denied ({why})")
            }
            Self::Bind { address, error } => write!(f, "can't listen on {address}: {error}"),
            Self::Socket(error) => write!(f, "can't use the inherited listening socket: {error}"),
            Self::Driver { why } => f.write_str(why),
            Self::Pin(error) => write!(f, "can't pin a worker to its core: {error}"),
            Self::Service { worker, message } => {
                write!(f, "can't make the service of worker {worker}: the function that makes it panicked ({message})")
            }
            Self::NoTrustedProxy => f.write_str(
                "PROXY headers are required, but no proxy is trusted that could send them: name the trusted proxies",
            ),
            Self::NoTls(address) => {
                write!(f, "{address} needs TLS, and this server has started without it: upgrade or restart it")
            }
            Self::NoAddress => f.write_str("no address to listen on"),
            Self::Ending => f.write_str("the server is stopping"),
            Self::Unfinished => {
                f.write_str("an earlier change of addresses isn't finished, because a worker is blocked")
            }
            Self::TooManyAddresses => {
                f.write_str("more addresses to listen on than can be numbered (65,535)")
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
        io::ErrorKind::NotFound => write!(f, "unix:{path}: no such folder; create it first"),
        io::ErrorKind::InvalidInput => {
            write!(f, "unix:{path}: the name is too long for a socket (about 100 bytes are allowed)")
        }
        _ => write!(f, "can't listen on unix:{path}: {error}"),
    }
}

impl std::error::Error for StartError {}
