//! The addresses of a worker's clients: asked of the system once a connection.

use std::net::SocketAddr;

use shearwater::{ConnectionId, Request};

/// What is known, by the connection's number: as many as connections that were open at once.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    known: Vec<Option<(ConnectionId, Option<SocketAddr>)>>,
}

impl Peers {
    /// The address that a request came from.
    pub(crate) fn of(&mut self, request: &Request<'_>) -> Option<SocketAddr> {
        let connection = request.connection();
        let index = connection.index();
        if index >= self.known.len() {
            self.known.resize(index + 1, None);
        }
        match self.known[index] {
            Some((known, peer)) if known == connection => peer,
            _ => {
                let peer = request.peer();
                self.known[index] = Some((connection, peer));
                peer
            }
        }
    }
}
