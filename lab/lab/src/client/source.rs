//! Where connections come from: many loopback addresses in turn, so that closed ones, which the kernel keeps for a
//! minute, do not use up the ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

/// Addresses 127.0.1.1 to 127.0.1.200: five million ports.
const ADDRESSES: u8 = 200;

pub(crate) struct Sources {
    next: u8,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self { next: 0 }
    }

    /// Connects from the next address. To loopback this is done at once, so it may block.
    pub(crate) fn connect(&mut self, to: SocketAddr) -> io::Result<OwnedFd> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        if let IpAddr::V4(address) = to.ip()
            && address.is_loopback()
        {
            let source = Ipv4Addr::new(127, 0, 1, 1 + self.next);
            self.next = (self.next + 1) % ADDRESSES;
            socket.bind(&SocketAddr::from((source, 0)).into())?;
        }
        socket.connect(&to.into())?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }
}
