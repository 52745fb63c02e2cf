//! The table of connections: the driver's dense slots are its indices.

use shearwater_io::{SlotArray, Token};

use crate::conn::{Conn, Phase};

/// All connections of a worker.
#[derive(Default)]
pub(crate) struct Table {
    conns: SlotArray<Conn>,
    open: usize,
}

impl Table {
    /// Takes the slot of a connection that was accepted.
    pub(crate) fn open(&mut self, token: Token) -> &mut Conn {
        let slot = token.slot();
        self.conns.grow_to(slot);
        let conn = &mut self.conns[slot];
        debug_assert_eq!(conn.phase, Phase::Free, "clause K1: the slot is used again before Closed");
        conn.open(token.generation());
        self.open += 1;
        conn
    }

    /// Gives the slot back.
    pub(crate) fn free(&mut self, token: Token) {
        self.conns[token.slot()] = Conn::free();
        self.open -= 1;
    }

    /// The connection of a token, if it is (still) that one.
    pub(crate) fn find(&mut self, token: Token) -> Option<&mut Conn> {
        let conn = self.conns.get_mut(token.slot())?;
        (conn.generation == token.generation() && conn.phase != Phase::Free).then_some(conn)
    }

    /// The connection of a token that is known to be open.
    ///
    /// # Panics
    /// If its slot was never used.
    pub(crate) fn get(&mut self, token: Token) -> &mut Conn {
        &mut self.conns[token.slot()]
    }

    /// The connections by slot, for the wheel, whose nodes lie in them.
    pub(crate) fn conns_mut(&mut self) -> &mut SlotArray<Conn> {
        &mut self.conns
    }

    /// The token of a slot that is in use.
    pub(crate) fn token(&self, slot: usize) -> Token {
        Token::new(slot as u32, self.conns[slot].generation)
    }

    /// Tokens of all connections that `wanted` says yes to.
    pub(crate) fn tokens(&self, wanted: impl Fn(&Conn) -> bool) -> Vec<Token> {
        let used =
            self.conns.iter().enumerate().filter(|(_, conn)| conn.phase != Phase::Free && wanted(conn));
        used.map(|(slot, conn)| Token::new(slot as u32, conn.generation)).collect()
    }

    /// Connections that are open.
    pub(crate) fn len(&self) -> usize {
        self.open
    }
}
