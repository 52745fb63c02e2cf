//! Where hostile connections come from: loopback addresses of their own, so that no address runs out of ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use mio::net::TcpStream;
use socket2::{Domain, Protocol, Socket, Type};

/// Connections from one address at most: the kernel finds ports quickly up to some ten thousand.
const PER_ADDRESS: u64 = 5_000;
/// A receive buffer of those that read slowly, bytes: the server has to wait for them early.
const SLOW_RECEIVE_BUFFER: usize = 8 * 1024;

/// The addresses of one wave of one attack. Another wave has others: ports of the last one stay taken for a minute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sources {
    second: u8,
    third: u8,
}

impl Sources {
    /// The addresses `127.20.0.0/16` and up, one network for each attack and one part of it for each wave.
    pub(super) fn new(attack: usize, wave: usize) -> Self {
        let byte = |number: usize| u8::try_from(number % 200).unwrap_or(0);
        Self { second: 20 + byte(attack), third: byte(wave) }
    }

    /// Sets out to connect the connection with this number; it is there when its socket becomes writable.
    pub(super) fn connect(self, number: u64, address: SocketAddr, slow: bool) -> io::Result<TcpStream> {
        let fourth = 1 + u8::try_from(number / PER_ADDRESS % 250).unwrap_or(0);
        let source = IpAddr::V4(Ipv4Addr::new(127, self.second, self.third, fourth));
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if slow {
            socket.set_recv_buffer_size(SLOW_RECEIVE_BUFFER)?;
        }
        socket.bind(&SocketAddr::new(source, 0).into())?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
                Err(error)
            }
            _ => Ok(TcpStream::from_std(std::net::TcpStream::from(socket))),
        }
    }
}
