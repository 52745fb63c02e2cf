//! Listening sockets for [`serve`](crate::serve()).

use std::io;
use std::os::unix::net::UnixListener;

use shearwater::ListeningSocket;

/// A listening socket of the standard library or of tokio.
#[derive(Debug)]
pub struct Listen {
    pub(crate) socket: io::Result<ListeningSocket>,
}

impl From<std::net::TcpListener> for Listen {
    fn from(listener: std::net::TcpListener) -> Self {
        Self { socket: Ok(listener.into()) }
    }
}

impl From<UnixListener> for Listen {
    fn from(listener: UnixListener) -> Self {
        Self { socket: Ok(listener.into()) }
    }
}

impl From<tokio::net::TcpListener> for Listen {
    fn from(listener: tokio::net::TcpListener) -> Self {
        Self { socket: listener.into_std().map(ListeningSocket::from) }
    }
}

impl From<tokio::net::UnixListener> for Listen {
    fn from(listener: tokio::net::UnixListener) -> Self {
        Self { socket: listener.into_std().map(ListeningSocket::from) }
    }
}

impl From<ListeningSocket> for Listen {
    fn from(socket: ListeningSocket) -> Self {
        Self { socket: Ok(socket) }
    }
}
