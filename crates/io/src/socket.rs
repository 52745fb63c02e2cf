//! Socket calls that differ between the systems.

#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "no library has a safe call for a socket's unacknowledged bytes")
)]

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendFlags, getpeername, sockopt};

/// Holds the segment back for bytes that follow at once.
#[cfg(target_os = "linux")]
pub(crate) const MORE: SendFlags = SendFlags::MORE;
/// No flag: the BSDs have none.
#[cfg(not(target_os = "linux"))]
pub(crate) const MORE: SendFlags = SendFlags::empty();

/// Makes a broken connection an error instead of a signal.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
/// No flag: on Apple's systems `accept` sets the option on the socket.
#[cfg(target_vendor = "apple")]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// Lets the kernel hold more unsent bytes of a connection. Only Internet sockets have the option; without it
/// the send continues in smaller steps.
#[cfg(target_os = "linux")]
pub(crate) fn hold_more(socket: impl AsFd) {
    let _ = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(crate::limits::SEND_UNSENT_BYTES_MAX);
}

/// Does nothing: these systems have no bound.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hold_more(_socket: impl AsFd) {}

/// Holds segments back until they are full, or sends the rest of them (Linux: `TCP_CORK`). Returns whether
/// the socket is corked now: only TCP sockets have segments.
#[cfg(target_os = "linux")]
pub(crate) fn cork(socket: impl AsFd, corked: bool) -> bool {
    rustix::net::sockopt::set_tcp_cork(socket, corked).is_ok() && corked
}

/// Does nothing: these systems hold nothing back.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cork(_socket: impl AsFd, _corked: bool) -> bool {
    false
}

/// Accepts a connection: non-blocking, closed on exec. On Linux it inherits the listener's options.
#[cfg(target_os = "linux")]
pub(crate) fn accept(listener: impl AsFd) -> Result<OwnedFd, Errno> {
    use rustix::net::{SocketFlags, accept_with};
    accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
}

/// Accepts a connection: non-blocking, closed on exec, with the listener's `TCP_NODELAY`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn accept(listener: impl AsFd) -> Result<OwnedFd, Errno> {
    let fd = accept_plain(&listener)?;
    if sockopt::tcp_nodelay(&listener) == Ok(true) {
        // It fails only if the peer is gone; the connection will report that itself.
        let _ = sockopt::set_tcp_nodelay(&fd, true);
    }
    Ok(fd)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn accept_plain(listener: impl AsFd) -> Result<OwnedFd, Errno> {
    use rustix::net::{SocketFlags, accept_with};
    accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
}

#[cfg(target_vendor = "apple")]
fn accept_plain(listener: impl AsFd) -> Result<OwnedFd, Errno> {
    let fd = rustix::net::accept(listener)?;
    let prepared = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)
        .and_then(|()| rustix::io::ioctl_fionbio(&fd, true))
        .and_then(|()| sockopt::set_socket_nosigpipe(&fd, true));
    // The options fail if the peer is gone: treated as an abort in the queue.
    prepared.map(|()| fd).map_err(|_| Errno::CONNABORTED)
}

/// Sends a range of a file within the kernel, and returns the bytes that the socket took (0: the file has
/// ended).
#[cfg(target_os = "linux")]
pub(crate) fn send_file(socket: impl AsFd, file: impl AsFd, offset: u64, len: usize) -> Result<usize, Errno> {
    let mut offset = offset;
    rustix::fs::sendfile(socket, file, Some(&mut offset), len)
}

/// Fails: without such a call the caller reads and sends.
#[cfg(not(target_os = "linux"))]
pub(crate) fn send_file(
    _socket: impl AsFd,
    _file: impl AsFd,
    _offset: u64,
    _len: usize,
) -> Result<usize, Errno> {
    Err(Errno::NOSYS)
}

/// Returns the bytes that the peer's system has not acknowledged (`SIOCOUTQ`, see `man 7 tcp`).
#[cfg(target_os = "linux")]
pub(crate) fn unacknowledged(socket: impl AsFd) -> Option<u64> {
    use std::os::fd::AsRawFd;

    let mut count: libc::c_int = 0;
    // SAFETY: the descriptor is open while it is borrowed, and for this request the kernel writes one `int`
    // to the address of one.
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    // It fails only for a socket that isn't connected, which has sent nothing.
    (status == 0).then(|| u64::try_from(count).unwrap_or(0))
}

/// Returns `None`: these systems don't report it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn unacknowledged(_socket: impl AsFd) -> Option<u64> {
    None
}

/// Takes the socket's pending error, if any.
pub(crate) fn take_error(socket: impl AsFd) -> Option<io::Error> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(errno)) | Err(errno) => Some(errno.into()),
    }
}

/// Returns the peer's address.
///
/// # Errors
/// Fails if the peer is gone, or with `Unsupported` if its address isn't one of TCP.
pub(crate) fn peer(socket: impl AsFd) -> io::Result<SocketAddr> {
    let address = getpeername(socket)?.ok_or(io::ErrorKind::NotConnected)?;
    SocketAddr::try_from(address).map_err(|_| io::ErrorKind::Unsupported.into())
}

/// Ends receiving on a connection that is about to be closed: entries that wait for input end. Sends nothing to a
/// peer of TCP. Returns whether it did.
#[cfg(target_os = "linux")]
pub(crate) fn end_receiving(socket: impl AsFd) -> bool {
    rustix::net::shutdown(socket, rustix::net::Shutdown::Read).is_ok()
}

/// Makes the following close a reset (RFC 9293, 3.10.7.1 by `SO_LINGER` 0).
pub(crate) fn reset_on_close(socket: impl AsFd) {
    // It fails only if the connection is gone; then nothing is left to reset.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}
