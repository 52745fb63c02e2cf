//! The connection table, indexed by the driver's dense slots.

use shearwater_io::{SlotArray, Token};

use crate::connection::{Conn, Phase};

/// All connections of a worker.
#[derive(Default)]
pub(crate) struct Table {
    conns: SlotArray<Conn>,
    open: usize,
}

impl Table {
    /// Initializes the slot of an accepted connection.
    pub(crate) fn open(&mut self, token: Token) {
        let slot = token.slot();
        self.conns.grow_to(slot);
        self.conns[slot].open(token.generation());
        self.open += 1;
    }

    /// Frees the slot.
    pub(crate) fn free(&mut self, token: Token) {
        self.conns[token.slot()].free();
        self.open -= 1;
    }

    /// Returns the connection of a token, unless it has been closed.
    pub(crate) fn find(&mut self, token: Token) -> Option<&mut Conn> {
        let conn = self.conns.get_mut(token.slot())?;
        (conn.generation == token.generation() && conn.phase() != Phase::Free).then_some(conn)
    }

    /// Returns the connection of a token that is known to be open.
    ///
    /// # Panics
    /// If its slot was never used.
    pub(crate) fn get(&mut self, token: Token) -> &mut Conn {
        &mut self.conns[token.slot()]
    }

    /// Returns the connections by slot, for the wheel, whose nodes they contain.
    pub(crate) fn conns_mut(&mut self) -> &mut SlotArray<Conn> {
        &mut self.conns
    }

    /// Returns the token of a slot that is in use.
    pub(crate) fn token(&self, slot: usize) -> Token {
        Token::new(slot as u32, self.conns[slot].generation)
    }

    /// Returns the tokens of all connections that match `wanted`.
    pub(crate) fn tokens(&self, wanted: impl Fn(&Conn) -> bool) -> Vec<Token> {
        let used =
            self.conns.iter().enumerate().filter(|(_, conn)| conn.phase() != Phase::Free && wanted(conn));
        used.map(|(slot, conn)| Token::new(slot as u32, conn.generation)).collect()
    }

    /// Returns the number of open connections.
    pub(crate) fn len(&self) -> usize {
        self.open
    }
}
