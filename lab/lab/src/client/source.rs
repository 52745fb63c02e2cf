//! Source addresses of connections: many loopback addresses in turn, so that closed connections, which the kernel keeps for
//! a minute, do not use up the ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

/// Addresses 127.0.1.1 to 127.0.1.200: five million ports.
const ADDRESSES: u8 = 200;

pub(crate) struct Sources {
    next: u8,
    receive_buffer_bytes: Option<u32>,
    granted_bytes: Option<u64>,
}

impl Sources {
    /// Connects with receive buffers of so many bytes, as far as the kernel grants them.
    pub(crate) fn new(receive_buffer_bytes: Option<u32>) -> Self {
        Self { next: 0, receive_buffer_bytes, granted_bytes: None }
    }

    /// Returns the smallest receive buffer that was granted; 0 where none was requested.
    pub(crate) fn granted_bytes(&self) -> u64 {
        self.granted_bytes.unwrap_or(0)
    }

    /// Connects from the next address. On loopback this is immediate, so it may block.
    pub(crate) fn connect(&mut self, to: SocketAddr) -> io::Result<OwnedFd> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        if let IpAddr::V4(address) = to.ip()
            && address.is_loopback()
        {
            let source = Ipv4Addr::new(127, 0, 1, 1 + self.next);
            self.next = (self.next + 1) % ADDRESSES;
            socket.bind(&SocketAddr::from((source, 0)).into())?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            // Before connecting, which agrees on the window's scale. A requested buffer is not resized later.
            socket.set_recv_buffer_size(bytes as usize)?;
            // The kernel doubles the figure, for its own records.
            let granted = socket.recv_buffer_size()? as u64 / 2;
            self.granted_bytes = Some(self.granted_bytes.map_or(granted, |least| least.min(granted)));
        }
        socket.connect(&to.into())?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }
}
