//! The exchanges of a worker, by id.

use std::cell::Cell;
use std::rc::Rc;

use shearwater_io::Token;

use crate::exchange::id::ExchangeId;
use crate::exchange::{Exchange, State};
use crate::limits::SPARE_CALLS_MAX;

/// All exchanges of a worker that are open, and spare ones.
#[derive(Default)]
pub(crate) struct ExchangeTable {
    entries: Vec<Option<Box<Exchange>>>,
    free: Vec<u32>,
    // Boxed, so that taking an exchange out and putting it back moves a pointer.
    #[expect(
        clippy::vec_box,
        reason = "an exchange moves between `spare` and `entries` without being copied"
    )]
    spare: Vec<Box<Exchange>>,
    /// Number of the last exchange, from 1.
    generation: u32,
    /// Memory of all exchanges and their handlers' halves, in bytes.
    held: Rc<Cell<usize>>,
}

impl ExchangeTable {
    /// `held` counts the memory of exchanges and their handlers' halves.
    pub(crate) fn new(held: Rc<Cell<usize>>) -> Self {
        Self { held, ..Self::default() }
    }

    /// Returns an exchange for a connection, which [`put`](Self::put) gives an id.
    pub(crate) fn begin(&mut self, token: Token) -> Box<Exchange> {
        let mut exchange = self.spare.pop().unwrap_or_default();
        (exchange.token, exchange.stream) = (token, None);
        exchange
    }

    /// Returns an exchange that isn't taken out.
    pub(crate) fn get(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        self.entries.get_mut(id.index())?.as_deref_mut().filter(|exchange| exchange.id == id)
    }

    /// Takes an exchange out to work with it; `put` or `recycle` must follow.
    pub(crate) fn take(&mut self, id: ExchangeId) -> Option<Box<Exchange>> {
        let exchange = self.entries.get_mut(id.index())?.take_if(|exchange| exchange.id == id)?;
        self.held.set(self.held.get() - exchange.counted);
        Some(exchange)
    }

    /// Stores an exchange and accounts for its own memory. Returns its id and these bytes.
    pub(crate) fn put(&mut self, mut exchange: Box<Exchange>) -> (ExchangeId, usize) {
        if exchange.id == ExchangeId::NONE {
            let index = self.free.pop().unwrap_or_else(|| {
                self.entries.push(None);
                self.entries.len() as u32 - 1
            });
            self.generation = self.generation.wrapping_add(1).max(1);
            exchange.id = ExchangeId(u64::from(self.generation) << 32 | u64::from(index));
        }
        if exchange.counted == 0 || exchange.state() == State::Reading {
            exchange.counted = exchange.own_bytes();
        }
        self.held.set(self.held.get() + exchange.counted);
        let (id, own_bytes) = (exchange.id, exchange.counted);
        self.entries[id.index()] = Some(exchange);
        (id, own_bytes)
    }

    /// Recycles an exchange that has ended and is taken out.
    pub(crate) fn recycle(&mut self, mut exchange: Box<Exchange>) {
        let id = std::mem::replace(&mut exchange.id, ExchangeId::NONE);
        if id != ExchangeId::NONE {
            self.free.push(id.index() as u32);
        }
        if self.spare.len() < SPARE_CALLS_MAX {
            self.spare.push(exchange);
        }
    }

    /// Returns all exchanges.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Box<Exchange>> {
        self.entries.iter_mut().flatten()
    }

    /// Frees the spare memory.
    pub(crate) fn free_spare(&mut self) {
        self.spare = Vec::new();
        if self.free.len() == self.entries.len() {
            (self.entries, self.free) = (Vec::new(), Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::{ExchangeId, ExchangeTable, Token};
    use crate::limits::SPARE_CALLS_MAX;

    fn table() -> ExchangeTable {
        ExchangeTable::new(Rc::default())
    }

    #[test]
    fn an_id_names_one_exchange_only() {
        let mut table = table();
        let first = table.begin(Token::new(0, 0));
        let (first, _) = table.put(first);
        assert!(table.get(first).is_some() && table.get(ExchangeId::NONE).is_none());
        let taken = table.take(first).expect("it is open");
        assert!(table.get(first).is_none(), "it is taken out");
        assert_eq!(table.put(taken).0, first);
        let taken = table.take(first).expect("it is open");
        table.recycle(taken);
        let second = table.begin(Token::new(1, 0));
        let (second, _) = table.put(second);
        assert_eq!(second.index(), first.index());
        assert!(table.take(first).is_none() && table.take(second).is_some());
    }

    #[test]
    fn keeps_a_bounded_number_of_spare_exchanges_and_counts_their_memory() {
        let mut table = table();
        let begun: Vec<_> =
            (0..3 * SPARE_CALLS_MAX as u32).map(|slot| table.begin(Token::new(slot, 0))).collect();
        let ids: Vec<_> = begun.into_iter().map(|exchange| table.put(exchange).0).collect();
        assert!(table.held.get() > 0);
        for id in ids {
            let exchange = table.take(id).expect("it is open");
            table.recycle(exchange);
        }
        assert_eq!((table.held.get(), table.spare.len()), (0, SPARE_CALLS_MAX));
        table.free_spare();
        assert_eq!((table.spare.capacity(), table.entries.capacity()), (0, 0));
    }
}
