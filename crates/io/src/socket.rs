//! The calls on sockets whose spelling differs between the systems.

#![cfg_attr(
    target_os = "linux",
    expect(
        unsafe_code,
        reason = "no library has a safe call for how much of a socket's output is on its way"
    )
)]

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};

/// More bytes follow at once: hold the segment back for them.
#[cfg(target_os = "linux")]
pub(crate) const MORE: SendFlags = SendFlags::MORE;
/// More bytes follow at once. The BSDs have no such flag.
#[cfg(not(target_os = "linux"))]
pub(crate) const MORE: SendFlags = SendFlags::empty();

/// A broken connection is an error, not a signal.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
/// A broken connection is an error, not a signal: on Apple's systems `accept` sets it on the socket.
#[cfg(target_vendor = "apple")]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// Lets the kernel hold more of a connection that it can't send yet. Only Internet sockets have the option; without it the send goes on in
/// smaller steps.
#[cfg(target_os = "linux")]
pub(crate) fn hold_more(socket: impl AsFd) {
    let _ = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(crate::limits::SEND_UNSENT_BYTES_MAX);
}

/// Nothing was bounded there.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hold_more(_socket: impl AsFd) {}

/// Holds segments back until they are full, or lets what is left of them go (Linux: `TCP_CORK`). Gives whether it holds back now: other
/// sockets than TCP's have no segments.
#[cfg(target_os = "linux")]
pub(crate) fn cork(socket: impl AsFd, corked: bool) -> bool {
    rustix::net::sockopt::set_tcp_cork(socket, corked).is_ok() && corked
}

/// Nothing is held back there.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cork(_socket: impl AsFd, _corked: bool) -> bool {
    false
}

/// Takes one connection from the listener's queue: non-blocking, closed on exec. Linux hands the listener's options on.
#[cfg(target_os = "linux")]
pub(crate) fn accept(listener: impl AsFd) -> Result<OwnedFd, Errno> {
    use rustix::net::{SocketFlags, accept_with};
    accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
}

/// Takes one connection from the listener's queue: non-blocking, closed on exec, with the listener's `TCP_NODELAY`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn accept(listener: impl AsFd) -> Result<OwnedFd, Errno> {
    let fd = accept_plain(&listener)?;
    if sockopt::tcp_nodelay(&listener) == Ok(true) {
        // It fails only where the peer is gone again; the connection will show that itself.
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
    // A peer that is gone again makes the options fail: as if it had been aborted in the queue.
    prepared.map(|()| fd).map_err(|_| Errno::CONNABORTED)
}

/// Lets the kernel send a piece of a file itself, and says how much of it the socket took (0: the file has ended).
#[cfg(target_os = "linux")]
pub(crate) fn send_file(socket: impl AsFd, file: impl AsFd, offset: u64, len: usize) -> Result<usize, Errno> {
    let mut offset = offset;
    rustix::fs::sendfile(socket, file, Some(&mut offset), len)
}

/// No such call that takes this shape: the caller reads and sends.
#[cfg(not(target_os = "linux"))]
pub(crate) fn send_file(
    _socket: impl AsFd,
    _file: impl AsFd,
    _offset: u64,
    _len: usize,
) -> Result<usize, Errno> {
    Err(Errno::NOSYS)
}

/// Bytes that the socket has taken and the peer's system has not acknowledged (`SIOCOUTQ`, see `man 7 tcp`).
#[cfg(target_os = "linux")]
pub(crate) fn unacknowledged(socket: impl AsFd) -> Option<u64> {
    use std::os::fd::AsRawFd;

    let mut count: libc::c_int = 0;
    // SAFETY: the descriptor is open while it is borrowed, and for this request the kernel writes one `int` to the address, which
    // is that of one.
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    // It fails only for what is no connection, which has sent nothing.
    (status == 0).then(|| u64::try_from(count).unwrap_or(0))
}

/// Not told here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn unacknowledged(_socket: impl AsFd) -> Option<u64> {
    None
}

/// Takes the error that the socket has met, if there is one.
pub(crate) fn take_error(socket: impl AsFd) -> Option<std::io::Error> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(errno)) | Err(errno) => Some(errno.into()),
    }
}

/// Makes the close that follows a reset (RFC 9293, 3.10.7.1 by way of `SO_LINGER` 0).
pub(crate) fn reset_on_close(socket: impl AsFd) {
    // It fails only where the connection is gone already; then there is nothing left to reset.
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}
