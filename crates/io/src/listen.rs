//! Listeners: binds an address and listens.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};
#[cfg(not(target_os = "openbsd"))]
use {
    crate::limits::{KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES},
    socket2::TcpKeepalive,
    std::time::Duration,
};

/// How to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted. The kernel lowers it to its own bound
    /// ([`crate::os::listen_backlog_max`]).
    pub backlog: u32,
    /// `SO_REUSEPORT`: further listeners of the same user may share the address, and the kernel spreads the connections
    /// over them (Linux, DragonFly; FreeBSD by `SO_REUSEPORT_LB`; elsewhere only the last bound gets any).
    pub reuse_port: bool,
    /// `TCP_NODELAY` for the connections accepted: set on the listener, from which they inherit it.
    pub nodelay: bool,
    /// `SO_KEEPALIVE` for the connections accepted, inherited likewise, with the times of [`KEEPALIVE_IDLE_S`],
    /// [`KEEPALIVE_INTERVAL_S`] and [`KEEPALIVE_PROBES`].
    pub keepalive: bool,
    /// An IPv6 address takes no IPv4 connections. Else `[::]` takes both, whatever the system's default is (but on OpenBSD, which can't).
    pub only_v6: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { backlog: 4096, reuse_port: false, nodelay: true, keepalive: false, only_v6: false }
    }
}

/// Binds `addr` and listens, non-blocking. An address left in `TIME_WAIT` is no obstacle (`SO_REUSEADDR`).
///
/// # Errors
/// Where the kernel refuses: address in use, not this host's, a low port without the right to it.
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

/// Takes a stream socket that listens already, whoever bound it, and gives it what connections inherit: as [`bind`] does, but for its
/// address, its queue and whether its port is shared, which stay as they are. Non-blocking from now on, for all who hold it.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] where it does not listen; else what the kernel says.
pub fn adopt(socket: OwnedFd, options: ListenOptions) -> io::Result<OwnedFd> {
    let socket = Socket::from(socket);
    if socket.r#type()? != Type::STREAM || !listens(&socket)? {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket does not listen"));
    }
    if socket.local_addr()?.as_socket().is_some() {
        socket.set_tcp_nodelay(options.nodelay)?;
        if options.keepalive {
            keep_alive(&socket)?;
        }
        bound_unsent(&socket)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(any(target_os = "linux", target_os = "freebsd"))]
fn listens(socket: &Socket) -> io::Result<bool> {
    socket.is_listener()
}

/// Where sockets don't tell, accepting will.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
fn listens(_: &Socket) -> io::Result<bool> {
    Ok(true)
}

/// Finds out whether `addr` can be bound by somebody who doesn't share it: listeners with
/// [`reuse_port`](ListenOptions::reuse_port) would quietly share it with another server of the same user. Port 0 becomes a
/// free one. Nothing listens meanwhile, and nothing is bound afterwards.
///
/// # Errors
/// As [`bind`].
pub fn probe(addr: SocketAddr, only_v6: bool) -> io::Result<SocketAddr> {
    let socket = unbound(addr, only_v6)?;
    socket.bind(&addr.into())?;
    let bound = socket.local_addr()?.as_socket();
    bound.ok_or_else(|| io::Error::other("the address bound is none of TCP's"))
}

/// A socket that an address left in `TIME_WAIT` does not hinder.
fn unbound(addr: SocketAddr, only_v6: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Connections accepted inherit it: what a client doesn't take stays a file's or the worker's, not the kernel's memory.
#[cfg(target_os = "linux")]
fn bound_unsent(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(crate::limits::SEND_UNSENT_BYTES_FIRST)
}

/// Without the option, or where it isn't inherited.
#[cfg(not(target_os = "linux"))]
fn bound_unsent(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// Whether somebody is still there is asked in times of this server, not the system's two hours.
#[cfg(not(target_os = "openbsd"))]
fn keep_alive(socket: &Socket) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(u64::from(KEEPALIVE_IDLE_S)))
        .with_interval(Duration::from_secs(u64::from(KEEPALIVE_INTERVAL_S)))
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)
}

/// OpenBSD has one time for the whole system.
#[cfg(target_os = "openbsd")]
fn keep_alive(socket: &Socket) -> io::Result<()> {
    socket.set_keepalive(true)
}

#[cfg(not(target_os = "freebsd"))]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

/// FreeBSD's plain `SO_REUSEPORT` doesn't spread connections.
#[cfg(target_os = "freebsd")]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port_lb(true)
}
