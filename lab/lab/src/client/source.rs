//! Where connections come from: many loopback addresses in turn, so that closed ones, which the kernel keeps for a
//! minute, do not use up the ports.

use std::cmp;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use socket2::{Domain, Protocol, Socket, Type};

/// Addresses 127.0.1.1 to 127.0.1.200: five million ports.
const ADDRESSES: u8 = 200;

pub(crate) struct Sources {
    next: u8,
    /// What each connection asks for; none: the kernel sizes the buffers.
    receive_buffer_bytes: Option<u32>,
    granted_bytes: Option<u64>,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self::with_receive_buffers(None)
    }

    /// Connections with receive buffers of so many bytes, if the kernel grants them.
    pub(crate) fn with_receive_buffers(receive_buffer_bytes: Option<u32>) -> Self {
        Self { next: 0, receive_buffer_bytes, granted_bytes: None }
    }

    /// The smallest receive buffer that was granted; 0 where none was asked for.
    pub(crate) fn granted_bytes(&self) -> u64 {
        self.granted_bytes.unwrap_or(0)
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
        self.size(&socket)?;
        socket.connect(&to.into())?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    }

    /// Before the connection begins: the scale of its window is agreed on then, and a buffer that was asked for is not resized later.
    fn size(&mut self, socket: &Socket) -> io::Result<()> {
        let Some(bytes) = self.receive_buffer_bytes else { return Ok(()) };
        socket.set_recv_buffer_size(bytes as usize)?;
        // The kernel doubles what it grants, for its own records.
        let granted = socket.recv_buffer_size()? as u64 / 2;
        self.granted_bytes = Some(self.granted_bytes.map_or(granted, |least| cmp::min(least, granted)));
        Ok(())
    }
}
