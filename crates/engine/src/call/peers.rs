//! Cache of client addresses for deferred handlers, queried once per connection.

use std::net::SocketAddr;

use shearwater_io::Token;

use crate::limits::PEERS_KEPT_MAX;
use crate::request::Turn;

/// Addresses by slot; slots that are `PEERS_KEPT_MAX` apart share an entry.
#[derive(Default)]
pub(crate) struct Peers {
    known: Vec<Option<(Token, Option<SocketAddr>)>>,
}

impl Peers {
    /// Returns the client's address of a connection.
    pub(crate) fn of(&mut self, token: Token, turn: &dyn Turn) -> Option<SocketAddr> {
        let place = token.slot() % PEERS_KEPT_MAX;
        if place >= self.known.len() {
            self.known.resize(place + 1, None);
        }
        match self.known[place] {
            Some((known, peer)) if known == token => peer,
            _ => {
                let peer = turn.peer_of(token);
                self.known[place] = Some((token, peer));
                peer
            }
        }
    }

    /// Frees the cache.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::SocketAddr;

    use super::{PEERS_KEPT_MAX, Peers, Token, Turn};

    /// A driver that counts queries.
    #[derive(Default)]
    struct System {
        asked: Cell<usize>,
    }

    impl Turn for System {
        fn peer_of(&self, token: Token) -> Option<SocketAddr> {
            self.asked.set(self.asked.get() + 1);
            let port = (token.slot() + token.generation() as usize) as u16;
            (port != 7).then(|| SocketAddr::from(([127, 0, 0, 1], port)))
        }

        fn unix_now(&self) -> u64 {
            0
        }

        fn ms_now(&self) -> u64 {
            0
        }
    }

    #[test]
    fn remembers_a_bounded_number_of_addresses() {
        let system = System::default();
        let mut peers = Peers::default();
        let mut ask = |slot: usize, generation| {
            let token = Token::new(slot as u32, generation);
            assert_eq!(peers.of(token, &System::default()), system.peer_of(token), "{token:?}");
            peers.known.len()
        };
        for slot in (0..10 * PEERS_KEPT_MAX).chain(0..10) {
            assert!(ask(slot, 0) <= PEERS_KEPT_MAX);
            ask(slot, 1);
        }
    }

    #[test]
    fn asks_once_a_connection_where_there_are_no_more_than_that() {
        let system = System::default();
        let mut peers = Peers::default();
        for _ in 0..3 {
            for slot in 0..PEERS_KEPT_MAX as u32 {
                peers.of(Token::new(slot, 0), &system);
            }
        }
        assert_eq!(system.asked.get(), PEERS_KEPT_MAX);
        peers.of(Token::new(0, 1), &system);
        assert_eq!(system.asked.get(), PEERS_KEPT_MAX + 1, "another connection in the slot");
        peers.clear();
        assert_eq!(peers.known.capacity(), 0);
    }
}
