//! The addresses of connections whose handlers may wait: asked of the system once a connection.

use std::net::SocketAddr;

use shearwater_io::Token;

use crate::request::Turn;

/// What is known, by slot. As many as connections that had such a handler.
#[derive(Default)]
pub(crate) struct Peers {
    known: Vec<Option<(u32, Option<SocketAddr>)>>,
}

impl Peers {
    /// The address of a connection's peer.
    pub(crate) fn of(&mut self, token: Token, turn: &dyn Turn) -> Option<SocketAddr> {
        let slot = token.slot();
        if slot >= self.known.len() {
            self.known.resize(slot + 1, None);
        }
        match self.known[slot] {
            Some((generation, peer)) if generation == token.generation() => peer,
            _ => {
                let peer = turn.peer_of(token);
                self.known[slot] = Some((token.generation(), peer));
                peer
            }
        }
    }
}
