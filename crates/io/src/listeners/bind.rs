//! Binds addresses and listens: TCP, and Unix-domain sockets, whose address is a file.

use std::fs;
use std::io::{self, Error, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, RawMode, fchmod};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

pub use crate::fs::written::set_mode;

use super::{Listener, SocketFile};
use crate::ListenerId;

#[cfg(not(target_os = "openbsd"))]
use {
    crate::limits::{KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES},
    socket2::TcpKeepalive,
    std::time::Duration,
};

/// Options of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted. The kernel lowers it to its own bound
    /// ([`crate::os::listen_backlog_max`]).
    pub backlog: u32,
    /// `SO_REUSEPORT`: other listeners of the same user may share the address, and the kernel distributes the
    /// connections among them (Linux, DragonFly; FreeBSD by `SO_REUSEPORT_LB`; elsewhere only the last bound
    /// gets any).
    pub reuse_port: bool,
    /// `TCP_NODELAY` for the connections accepted: set on the listener, from which they inherit it.
    pub nodelay: bool,
    /// `SO_KEEPALIVE` for the connections accepted, also inherited, with the times of [`KEEPALIVE_IDLE_S`],
    /// [`KEEPALIVE_INTERVAL_S`] and [`KEEPALIVE_PROBES`].
    pub keepalive: bool,
    /// `IPV6_V6ONLY`: an IPv6 address takes no IPv4 connections. Otherwise `[::]` takes both, whatever the system's
    /// default is (except on OpenBSD, which can't).
    pub only_v6: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { backlog: 4096, reuse_port: false, nodelay: true, keepalive: false, only_v6: false }
    }
}

/// Binds `addr` and listens, non-blocking. `SO_REUSEADDR` permits an address in `TIME_WAIT`.
///
/// # Errors
/// Fails if the kernel refuses: address in use, not one of this host, a low port without permission.
pub fn bind(addr: SocketAddr, options: ListenOptions) -> io::Result<TcpListener> {
    let socket = unbound(addr, options.only_v6)?;
    if options.reuse_port {
        share_port(&socket)?;
    }
    socket.set_tcp_nodelay(options.nodelay)?;
    if options.keepalive {
        keep_alive(&socket)?;
    }
    bound_unsent(&socket)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
    Ok(socket.into())
}

/// Takes over a listening stream socket and sets the options that connections inherit.
///
/// The options are those of [`bind`]; address, queue and sharing of the port stay unchanged. The socket
/// becomes non-blocking for all processes that hold it.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it does not listen; otherwise the kernel's error.
pub fn adopt(socket: OwnedFd, options: ListenOptions) -> io::Result<OwnedFd> {
    if !is_listening(&socket)? {
        return Err(Error::new(ErrorKind::InvalidInput, "the socket does not listen"));
    }
    let socket = Socket::from(socket);
    set_options(&socket, options)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Sets the options of a socket of this server that another process has bound, and the length of its queue.
///
/// # Errors
/// The kernel's error.
pub fn reconfigure(socket: &impl AsFd, options: ListenOptions) -> io::Result<()> {
    let socket = socket2::SockRef::from(socket);
    if socket.local_addr()?.as_socket().is_some() && !options.keepalive {
        socket.set_keepalive(false)?;
    }
    set_options(&socket, options)?;
    socket.listen(i32::try_from(options.backlog).unwrap_or(i32::MAX))
}

/// Sets the options that TCP connections inherit.
fn set_options(socket: &Socket, options: ListenOptions) -> io::Result<()> {
    if socket.local_addr()?.as_socket().is_none() {
        return Ok(());
    }
    socket.set_tcp_nodelay(options.nodelay)?;
    if options.keepalive {
        keep_alive(socket)?;
    }
    bound_unsent(socket)
}

/// Returns whether this is a stream socket that listens.
///
/// # Errors
/// The kernel's error: it is no socket, for example.
pub fn is_listening(socket: &impl AsFd) -> io::Result<bool> {
    let socket = socket2::SockRef::from(socket);
    Ok(socket.r#type()? == Type::STREAM && listens(&socket)?)
}

/// Returns whether a listening socket takes no IPv4 connections although it has an IPv6 address.
///
/// # Errors
/// The kernel's error.
pub fn is_only_v6(socket: &impl AsFd) -> io::Result<bool> {
    let socket = socket2::SockRef::from(socket);
    let is_any_v6 =
        socket.local_addr()?.as_socket_ipv6().is_some_and(|address| address.ip().is_unspecified());
    Ok(is_any_v6 && socket.only_v6()?)
}

#[cfg(any(target_os = "linux", target_os = "freebsd"))]
fn listens(socket: &Socket) -> io::Result<bool> {
    socket.is_listener()
}

/// Assumes so on systems that don't report it; accepting would fail.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
fn listens(_: &Socket) -> io::Result<bool> {
    Ok(true)
}

/// Checks that `addr` can be bound without sharing it, and resolves port 0.
///
/// Listeners with [`reuse_port`](ListenOptions::reuse_port) would silently share it with another server of
/// the same user. Nothing listens during the check, and nothing is bound after it.
///
/// # Errors
/// As [`bind`].
pub fn probe(addr: SocketAddr, only_v6: bool) -> io::Result<SocketAddr> {
    let socket = unbound(addr, only_v6)?;
    socket.bind(&addr.into())?;
    let bound = socket.local_addr()?.as_socket();
    bound.ok_or_else(|| io::Error::other("the address bound is none of TCP's"))
}

/// Creates a socket that can bind an address in `TIME_WAIT`.
fn unbound(addr: SocketAddr, only_v6: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Bounds the unsent bytes of accepted connections, which inherit it.
#[cfg(target_os = "linux")]
fn bound_unsent(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(crate::limits::SEND_UNSENT_BYTES_FIRST)
}

/// Does nothing: the system has no such option, or connections don't inherit it.
#[cfg(not(target_os = "linux"))]
fn bound_unsent(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// Sets this server's keep-alive times instead of the system's two hours.
#[cfg(not(target_os = "openbsd"))]
fn keep_alive(socket: &Socket) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(u64::from(KEEPALIVE_IDLE_S)))
        .with_interval(Duration::from_secs(u64::from(KEEPALIVE_INTERVAL_S)))
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)
}

/// Enables keep-alive; OpenBSD has one time for the whole system.
#[cfg(target_os = "openbsd")]
fn keep_alive(socket: &Socket) -> io::Result<()> {
    socket.set_keepalive(true)
}

/// Has the kernel drop connection requests to a TCP listener: their clients repeat them after a second.
///
/// Handshakes that have begun end as usual, so that nothing arrives at the listener any more soon. Closing a listener
/// resets connections that wait in its queue, whose clients may have sent a request already.
#[cfg(target_os = "linux")]
pub(crate) fn drop_handshakes(socket: &impl AsFd) {
    use socket2::{SockFilter, SockRef};
    /// Loads a byte, tests its bits, returns.
    const LOAD_BYTE: u16 = 0x30;
    const TEST_BITS: u16 = 0x45;
    const RETURN: u16 = 0x06;
    /// Position of the flags in a segment, and the bit of a connection request.
    const FLAGS_AT: u32 = 13;
    const SYN: u32 = 0x02;
    let socket = SockRef::from(socket);
    if !socket.local_addr().is_ok_and(|address| address.is_ipv4() || address.is_ipv6()) {
        return;
    }
    // Without memory for a filter, connections that arrive in the last moment are reset.
    drop(socket.attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_AT),
        SockFilter::new(TEST_BITS, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]));
}

/// Does nothing: the system can't filter what arrives at a listener.
#[cfg(not(target_os = "linux"))]
pub(crate) fn drop_handshakes(_: &impl AsFd) {}

#[cfg(not(target_os = "freebsd"))]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

/// Sets `SO_REUSEPORT_LB`: FreeBSD's plain `SO_REUSEPORT` doesn't distribute connections.
#[cfg(target_os = "freebsd")]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port_lb(true)
}

/// Listens at `path`, non-blocking, with the permissions `mode` (the bits of `chmod`): connecting needs write
/// permission.
///
/// Replaces the file of a server that no longer runs. The listener removes the file when it is closed, if it
/// is still its own.
///
/// # Errors
/// [`ErrorKind::AddrInUse`] if a server listens there, [`ErrorKind::AlreadyExists`] if the file is no socket;
/// otherwise the kernel's error: a path that is too long (about 100 bytes), a folder that is missing or not
/// writable.
pub fn bind_unix(path: &Path, mode: u32, backlog: u32, id: ListenerId) -> io::Result<Listener> {
    let address = SockAddr::unix(path)?;
    make_way(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // Linux creates the file with at most these bits, so that no other user connects before the line after
    // the next.
    let _ = fchmod(socket.as_fd(), Mode::from_raw_mode(mode as RawMode));
    socket.bind(&address)?;
    let file = SocketFile::of(path)?;
    set_mode(path, file.identity, mode)?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(Listener::with_file(socket.into(), id, file))
}

/// Removes a dead server's socket file at `path`; fails for any other file.
fn make_way(path: &Path, address: &SockAddr) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(Error::new(ErrorKind::AlreadyExists, "there is something that is no socket"));
    }
    if lives(address)? {
        return Err(ErrorKind::AddrInUse.into());
    }
    match fs::remove_file(path) {
        // Another process has removed it.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns whether a server listens there. It sees a connection that ends without a byte.
fn lives(address: &SockAddr) -> io::Result<bool> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(address) {
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(false),
        // A server listens: its queue is full, or it is another kind of socket.
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::PROTOTYPE) => Ok(true),
        connected => connected.map(|()| true),
    }
}
