//! Busy connections: what one has beyond its slot, only while it isn't quiet.

use std::cell::Cell;
use std::rc::Rc;

use shearwater_http1::{HeadLimits, HeadParser};
use shearwater_io::Token;

use crate::exchange::id::ExchangeId;
use crate::http2::Multiplexed;
use crate::limits::{EVICTED_BYTES_MIN, Limits, SPARE_BUSY_MAX};
use crate::memory::NONE;
use crate::memory::buffer::{Buffer, PagePool};
use crate::memory::eviction::{Class, Holders};

/// The exchange of a connection, as of the last time that it was stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenExchange {
    pub(crate) id: ExchangeId,
    /// Memory that it holds.
    pub(crate) bytes: usize,
    /// Its body is still being received.
    pub(crate) waits_for_client: bool,
}

/// State of a connection with a partial head, input ahead of its turn, or an exchange, and of each with HTTP/2.
#[derive(Default)]
pub(crate) struct Busy {
    /// Received and not consumed: a partial head, or pipelined requests.
    pub(crate) input: Buffer,
    /// Parser of a partial head; else spare.
    parser: Option<Box<HeadParser>>,
    /// State of an HTTP/2 connection, unless it is taken out.
    pub(crate) many: Option<Box<Multiplexed>>,
    /// The client sent a FIN while receiving was paused.
    pub(crate) fin_received: bool,
    exchange: Option<OpenExchange>,
    owner: Token,
    /// Bytes accounted for it at the last `put`.
    counted: usize,
    /// Size class for eviction; `None` if it can't be evicted.
    class: Option<Class>,
}

impl Busy {
    /// Swaps the worker's parser with that of the partial head.
    pub(crate) fn swap_parser(&mut self, parser: &mut HeadParser, limits: HeadLimits) {
        let own = self.parser.get_or_insert_with(|| Box::new(HeadParser::without_room(limits)));
        std::mem::swap(parser, own);
    }

    fn held_bytes(&self) -> usize {
        let of_parser = |parser: &HeadParser| size_of::<HeadParser>() + parser.held_bytes();
        let many = self.many.as_deref().map_or(0, Multiplexed::held_bytes);
        size_of::<Self>() + self.parser.as_deref().map_or(0, of_parser) + self.input.held_bytes() + many
    }

    /// Returns its memory and that of its exchange, in bytes.
    fn counted_bytes(&self) -> usize {
        let many = self.many.as_deref().map_or(0, Multiplexed::exchange_bytes);
        self.counted + self.exchange.map_or(0, |exchange| exchange.bytes) + many
    }

    /// Returns its size class if it can be evicted: it is large enough and waits for its client. A complete
    /// request waits for its handler instead.
    fn class_now(&self) -> Option<Class> {
        let held = self.counted_bytes();
        let waits_for_client = self.exchange.is_none_or(|exchange| exchange.waits_for_client);
        (held >= EVICTED_BYTES_MIN && waits_for_client).then(|| Class::of(held))
    }

    /// Updates its size class.
    fn classify(&mut self, index: u32, holders: &mut Holders) {
        let class = self.class_now();
        if self.class != class {
            self.class = class;
            holders.set(index, class);
        }
    }

    fn clear(&mut self, pool: &mut PagePool) {
        self.parser.iter_mut().for_each(|parser| parser.reset());
        self.input.clear(pool);
        (self.fin_received, self.exchange, self.many) = (false, None, None);
    }
}

/// All busy connections of a worker, and spare state.
#[derive(Default)]
pub(crate) struct BusyTable {
    used: Vec<Option<Box<Busy>>>,
    free: Vec<u32>,
    // Boxed, so that taking one out and putting it back moves a pointer.
    #[expect(clippy::vec_box, reason = "one moves between `spare` and `used` without being copied")]
    spare: Vec<Box<Busy>>,
    held_bytes: usize,
    /// Numbers of HTTP/2 connections, and of those without an open stream.
    pub(crate) multiplexed: usize,
    pub(crate) idle_multiplexed: usize,
    /// Connections that can be evicted, by size.
    holders: Holders,
    /// Memory of exchanges, in bytes.
    held_by_exchanges: Rc<Cell<usize>>,
    /// Memory for large buffers.
    pub(crate) pool: PagePool,
    limits: Limits,
}

impl BusyTable {
    pub(crate) fn new(limits: Limits, held_by_exchanges: Rc<Cell<usize>>) -> Self {
        Self { limits, held_by_exchanges, ..Self::default() }
    }

    /// Takes a connection's state out of its slot to work with it; `put` returns it. `NONE` gets a new slot.
    pub(crate) fn take(&mut self, token: Token, index: &mut u32) -> Box<Busy> {
        if *index != NONE {
            return self.take_out(*index);
        }
        *index = self.free.pop().unwrap_or_else(|| {
            self.used.push(None);
            self.used.len() as u32 - 1
        });
        let mut busy = self.spare.pop().unwrap_or_default();
        busy.owner = token;
        busy
    }

    fn take_out(&mut self, index: u32) -> Box<Busy> {
        let busy = self.used[index as usize].take().expect("state that has a slot is in it");
        self.held_bytes -= busy.counted;
        busy
    }

    /// Returns a connection's state to its slot and updates its size class.
    pub(crate) fn put(&mut self, index: u32, mut busy: Box<Busy>) {
        busy.counted = busy.held_bytes();
        self.held_bytes += busy.counted;
        busy.classify(index, &mut self.holders);
        self.used[index as usize] = Some(busy);
    }

    /// Stores the id of a connection's exchange and accounts for its memory.
    pub(crate) fn keep_exchange(&mut self, token: Token, index: &mut u32, exchange: OpenExchange) {
        if *index == NONE {
            let mut busy = self.take(token, index);
            busy.exchange = Some(exchange);
            return self.put(*index, busy);
        }
        self.set_exchange(*index, Some(exchange));
    }

    /// Removes the exchange of a connection, which has ended.
    pub(crate) fn end_exchange(&mut self, index: u32) {
        self.set_exchange(index, None);
    }

    /// Changes the exchange alone: a handler that waits often pays for this each time.
    fn set_exchange(&mut self, index: u32, exchange: Option<OpenExchange>) {
        let Some(busy) = self.used.get_mut(index as usize).and_then(Option::as_deref_mut) else { return };
        busy.exchange = exchange;
        busy.classify(index, &mut self.holders);
    }

    /// Returns the exchange of a connection.
    pub(crate) fn exchange(&self, index: u32) -> Option<ExchangeId> {
        Some(self.get(index)?.exchange?.id)
    }

    /// Returns the exchange of a connection, which is taken out: its memory counts again once it is stored.
    pub(crate) fn take_exchange(&mut self, index: u32) -> Option<ExchangeId> {
        let exchange = self.get_mut(index)?.exchange.as_mut()?;
        exchange.bytes = 0;
        Some(exchange.id)
    }

    /// Returns the memory of a connection and its exchange, as of the last time that they were stored.
    pub(crate) fn held_by(&self, index: u32) -> usize {
        self.get(index).map_or(0, Busy::counted_bytes)
    }

    /// Returns a connection in the largest occupied size class, and the class.
    pub(crate) fn largest(&self) -> Option<(Token, Class)> {
        let (index, class) = self.holders.largest()?;
        // A connection whose state is taken out of its slot can't be evicted.
        self.get(index).map(|busy| (busy.owner, class))
    }

    /// Frees pending pages while over the limit; returns true if there is room then.
    pub(crate) fn reclaim(&mut self) -> bool {
        let excess = self.counted_bytes().saturating_sub(self.limits.buffered_bytes_max);
        self.pool.release_at_least(excess);
        !self.is_full()
    }

    fn get(&self, index: u32) -> Option<&Busy> {
        self.used.get(index as usize)?.as_deref()
    }

    /// Returns the state of a connection that has one.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Busy> {
        self.used.get_mut(index as usize)?.as_deref_mut()
    }

    /// Releases the state of a connection between requests, unless it holds input or an exchange.
    pub(crate) fn release_spent(&mut self, index: &mut u32) {
        if self.get(*index).is_some_and(|busy| busy.input.is_empty() && busy.exchange.is_none()) {
            self.release(index);
        }
    }

    /// Releases a connection's state and discards its contents.
    pub(crate) fn release(&mut self, index: &mut u32) {
        if *index != NONE {
            let mut busy = self.take_out(*index);
            self.multiplexed -= usize::from(busy.many.is_some());
            self.idle_multiplexed -= usize::from(busy.many.as_ref().is_some_and(|many| many.is_idle()));
            if busy.class.take().is_some() {
                self.holders.set(*index, None);
            }
            self.recycle(*index, busy);
            *index = NONE;
        }
    }

    /// Frees the spare memory.
    pub(crate) fn free_spare(&mut self) {
        self.spare = Vec::new();
        self.pool.free_spare();
        if self.used.is_empty() {
            self.used = Vec::new();
            self.free = Vec::new();
            self.holders.clear();
        }
    }

    /// Returns the memory held for clients, in bytes.
    pub(crate) fn counted_bytes(&self) -> usize {
        self.held_bytes + self.held_by_exchanges.get() + self.pool.leaving_bytes()
    }

    /// Returns true if that exceeds `buffered_bytes_max`.
    pub(crate) fn is_full(&self) -> bool {
        self.counted_bytes() > self.limits.buffered_bytes_max
    }

    /// Returns true if a connection has unconsumed input.
    pub(crate) fn has_input(&self, index: u32) -> bool {
        self.get(index).is_some_and(|busy| !busy.input.is_empty())
    }

    /// Returns true if nothing of an HTTP/2 connection waits for the end of a send.
    pub(crate) fn needs_no_send(&self, index: u32) -> bool {
        let many = self.get(index).and_then(|busy| busy.many.as_deref());
        many.is_some_and(Multiplexed::needs_no_send)
    }

    /// Returns the number of busy connections.
    pub(crate) fn len(&self) -> usize {
        self.used.len() - self.free.len()
    }

    fn recycle(&mut self, index: u32, mut busy: Box<Busy>) {
        self.free.push(index);
        busy.clear(&mut self.pool);
        if self.spare.len() < SPARE_BUSY_MAX {
            self.spare.push(busy);
        }
        if self.free.len() == self.used.len() {
            self.free.clear();
            self.used.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::{BusyTable, Token};
    use crate::limits::{Limits, SPARE_BUFFER_BYTES_MAX, SPARE_BUSY_MAX};
    use crate::memory::NONE;

    const OWNER: Token = Token::new(0, 0);

    #[test]
    fn keeps_a_bounded_number_of_spare_states_and_little_memory_in_each() {
        let mut table =
            BusyTable::new(Limits { buffered_bytes_max: 10_000_000, ..Limits::default() }, Rc::default());
        let mut indices = vec![NONE; 3 * SPARE_BUSY_MAX];
        for index in &mut indices {
            let mut busy = table.take(OWNER, index);
            busy.input.extend(&[b'x'; 100_000], &mut table.pool);
            table.put(*index, busy);
        }
        assert!(table.is_full());
        assert_eq!(table.len(), indices.len());
        indices.iter_mut().for_each(|index| table.release(index));
        assert!(indices.iter().all(|index| *index == NONE));
        assert!(table.is_full(), "memory counts until it is returned to the system");
        while table.pool.is_busy() {
            table.pool.release();
        }
        assert!(!table.is_full());
        assert_eq!((table.len(), table.held_bytes, table.spare.len()), (0, 0, SPARE_BUSY_MAX));
        assert!(table.spare.iter().all(|busy| busy.input.held_bytes() <= SPARE_BUFFER_BYTES_MAX));
    }

    #[test]
    fn releases_state_once_it_holds_nothing() {
        let mut table = BusyTable::new(Limits::default(), Rc::default());
        let mut index = NONE;
        let mut busy = table.take(OWNER, &mut index);
        busy.input.extend(b"x", &mut table.pool);
        table.put(index, busy);
        table.release_spent(&mut index);
        assert!(index != NONE && table.has_input(index));
        let mut busy = table.take(OWNER, &mut index);
        busy.input.clear(&mut table.pool);
        table.put(index, busy);
        assert!(!table.has_input(index));
        table.release_spent(&mut index);
        assert_eq!((index, table.len()), (NONE, 0));
        table.release_spent(&mut index);
        assert_eq!(index, NONE, "nothing to release");
    }
}
