//! The listening socket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

/// Room for a burst of ten thousand connections; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 16_384;

/// Binds and listens, non-blocking.
pub(crate) fn bind(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let listener = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // A fresh process per block starts on the port that the last one has just left.
    sockopt::set_socket_reuseaddr(&listener, true)?;
    // Accepted connections inherit it: no setsockopt per connection.
    sockopt::set_tcp_nodelay(&listener, true)?;
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}
