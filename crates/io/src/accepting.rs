//! Accepting a connection by hand, and what the kernel's refusals mean.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::{AcceptError, Listener, socket};

/// How far `accept_stop` has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was not called.
    No,
    /// What is queued is still accepted.
    Wanted,
    /// The listeners are closed; an acceptor may still hand connections over.
    InboxOpen,
    /// Nobody comes any more.
    Done,
}

/// What one attempt to accept has come to.
pub(crate) enum Attempt {
    /// A connection.
    Accepted(OwnedFd),
    /// That one was gone again; there may be others.
    Retry,
    /// Nobody waits.
    Empty,
    /// Something is used up.
    Failed(AcceptError),
}

/// Takes one connection from the listener's queue.
pub(crate) fn attempt(listener: &Listener) -> Attempt {
    socket::accept(listener).map_or_else(refused, Attempt::Accepted)
}

/// What an error of accepting means.
pub(crate) fn refused(errno: Errno) -> Attempt {
    match errno {
        Errno::AGAIN | Errno::BADF | Errno::INVAL | Errno::NOTSOCK => Attempt::Empty,
        Errno::MFILE => Attempt::Failed(AcceptError::ProcessDescriptors),
        Errno::NFILE => Attempt::Failed(AcceptError::SystemFiles),
        Errno::NOBUFS | Errno::NOMEM => Attempt::Failed(AcceptError::Memory),
        errno if is_of_the_connection(errno) => Attempt::Retry,
        errno => Attempt::Failed(AcceptError::Other { errno: errno.raw_os_error() }),
    }
}

/// Whether the error is one of the connection that was to be accepted, not of accepting: Linux hands these on.
fn is_of_the_connection(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INTR
            | Errno::CONNABORTED
            | Errno::PROTO
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH
            | Errno::PERM
            | Errno::TIMEDOUT
            | Errno::CONNRESET
    )
}
