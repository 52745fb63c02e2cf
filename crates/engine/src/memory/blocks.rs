//! Blocks: the state of a connection beyond its slot, only while a request is unfinished.

use std::cell::Cell;
use std::rc::Rc;

use shearwater_http1::{BodyDecoder, HeadParser};
use shearwater_io::Token;

use crate::connection::NONE;
use crate::deferred::exchange::Exchange;
use crate::deferred::poll::PendingCall;
use crate::limits::{EVICTED_BYTES_MIN, Limits, SPARE_BLOCKS_MAX};
use crate::memory::buffer::{Buffer, PagePool};
use crate::memory::eviction::{Class, Holders};
use crate::request::body::BodyBudget;
use crate::service::Service;
use crate::upgrade::Taker;

/// The destination of a body that is being received.
pub(crate) enum Destination {
    /// Discarded.
    Discard,
    /// Buffered in the block.
    Buffer,
    /// Queued until its handler reads it.
    Call(Rc<Exchange>),
}

/// State of an unfinished request.
pub(crate) struct Block {
    /// Received and not consumed: a partial head, or pipelined requests.
    pub(crate) input: Buffer,
    /// Parser of an unfinished head, or of the head whose body is being received; else without buffers.
    pub(crate) parser: HeadParser,
    /// Head of the request whose body is being received.
    pub(crate) head: Buffer,
    /// Body so far, if it is buffered.
    pub(crate) body: Buffer,
    pub(crate) decoder: Option<BodyDecoder>,
    /// Service of the request whose body is being received, if a reload has replaced it since.
    pub(crate) service: Option<Rc<dyn Service>>,
    /// Deferred request in progress.
    pub(crate) call: Option<PendingCall>,
    /// Closure that takes over the connection once its `101` is sent.
    pub(crate) taker: Option<Taker>,
    pub(crate) destination: Destination,
    /// The client sent a FIN while receiving was paused.
    pub(crate) fin_received: bool,
    /// Time budget of the body.
    pub(crate) budget: BodyBudget,
    /// Bytes of the body so far, and their limit.
    pub(crate) body_bytes: u64,
    pub(crate) body_bytes_max: u64,
    /// Connection that owns the block.
    owner: Token,
    /// Bytes accounted for it at the last `put`.
    counted: usize,
    /// Size class for eviction; `None` if it can't be evicted.
    class: Option<Class>,
}

impl Block {
    fn new(limits: &Limits) -> Self {
        Self {
            input: Buffer::default(),
            parser: HeadParser::without_room(limits.head()),
            head: Buffer::default(),
            body: Buffer::default(),
            decoder: None,
            service: None,
            call: None,
            taker: None,
            destination: Destination::Discard,
            fin_received: false,
            budget: BodyBudget::default(),
            body_bytes: 0,
            body_bytes_max: 0,
            owner: Token::new(0, 0),
            counted: 0,
            class: None,
        }
    }

    /// Returns the memory of the block and its buffers, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let buffers = self.input.held_bytes() + self.head.held_bytes() + self.body.held_bytes();
        size_of::<Self>() + self.parser.held_bytes() + buffers
    }

    /// Returns the memory of the exchange with its handler, in bytes.
    fn held_by_call(&self) -> usize {
        self.call.as_ref().map_or(0, |pending| pending.exchange.held_bytes())
    }

    /// Returns its size class if it can be evicted: it is large enough and waits for its client. A complete
    /// request waits for its handler instead.
    fn class_now(&self) -> Option<Class> {
        let held = self.counted + self.held_by_call();
        let waits_for_client = self.decoder.is_some() || (self.call.is_none() && self.taker.is_none());
        (held >= EVICTED_BYTES_MIN && waits_for_client).then(|| Class::of(held))
    }

    /// Returns true if the block can be released once no body is being received.
    pub(crate) fn is_spent(&self) -> bool {
        self.input.is_empty() && self.decoder.is_none() && self.call.is_none()
    }

    /// Returns true if the handler's body queue is full.
    pub(crate) fn is_fed(&self) -> bool {
        matches!(&self.destination, Destination::Call(exchange) if !exchange.has_room())
    }

    /// Drops the request; keeps the input.
    pub(crate) fn end_request(&mut self, pool: &mut PagePool) {
        self.head.clear(pool);
        self.body.clear(pool);
        self.decoder = None;
        self.service = None;
        self.destination = Destination::Discard;
        self.parser.reset();
    }

    fn clear(&mut self, pool: &mut PagePool) {
        self.end_request(pool);
        self.taker = None;
        self.input.clear(pool);
        self.fin_received = false;
    }
}

/// All blocks of a worker, and the spare ones.
pub(crate) struct Blocks {
    used: Vec<Option<Box<Block>>>,
    free: Vec<u32>,
    // Boxed, so that taking a block out and putting it back moves a pointer.
    #[expect(clippy::vec_box, reason = "a block moves between `spare` and `used` without being copied")]
    spare: Vec<Box<Block>>,
    held_bytes: usize,
    /// Blocks that can be evicted, by size.
    holders: Holders,
    /// Memory of deferred requests, in bytes.
    held_by_calls: Rc<Cell<usize>>,
    /// Memory for large buffers.
    pub(crate) pool: PagePool,
    limits: Limits,
}

impl Blocks {
    pub(crate) fn new(limits: Limits, held_by_calls: Rc<Cell<usize>>) -> Self {
        Self {
            held_by_calls,
            used: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            held_bytes: 0,
            holders: Holders::default(),
            pool: PagePool::default(),
            limits,
        }
    }

    /// Takes a connection's block out of its slot to work with it; `put` returns it. `NONE` gets a new slot.
    pub(crate) fn take(&mut self, token: Token, index: &mut u32) -> Box<Block> {
        if *index != NONE {
            return self.take_out(*index);
        }
        *index = self.free.pop().unwrap_or_else(|| {
            self.used.push(None);
            self.used.len() as u32 - 1
        });
        let mut block = self.spare.pop().unwrap_or_else(|| Box::new(Block::new(&self.limits)));
        block.owner = token;
        block
    }

    /// Takes the block of a connection that has one out of its slot; `put` returns it.
    pub(crate) fn take_out(&mut self, index: u32) -> Box<Block> {
        let block = self.used[index as usize].take().expect("a block that has a slot is in it");
        self.held_bytes -= block.counted;
        block
    }

    /// Returns a block to its slot and updates its size class.
    pub(crate) fn put(&mut self, index: u32, mut block: Box<Block>) {
        block.counted = block.held_bytes();
        self.held_bytes += block.counted;
        let class = block.class_now();
        if block.class != class {
            block.class = class;
            self.holders.set(index, class);
        }
        self.used[index as usize] = Some(block);
    }

    /// Returns the memory of a connection's block and exchange, as of the last `put`.
    pub(crate) fn held_by(&self, index: u32) -> usize {
        let place = self.used.get(index as usize).and_then(Option::as_ref);
        place.map_or(0, |block| block.counted + block.held_by_call())
    }

    /// Returns a connection in the largest occupied size class, and the class.
    pub(crate) fn largest(&self) -> Option<(Token, Class)> {
        let (index, class) = self.holders.largest()?;
        // A block that is taken out of its slot can't be evicted.
        self.used[index as usize].as_ref().map(|block| (block.owner, class))
    }

    /// Frees pending pages while over the limit; returns true if there is room then.
    pub(crate) fn reclaim(&mut self) -> bool {
        let excess = self.counted_bytes().saturating_sub(self.limits.buffered_bytes_max);
        self.pool.release_at_least(excess);
        !self.is_full()
    }

    /// Returns the block of a connection that has one.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Block> {
        self.used.get_mut(index as usize)?.as_deref_mut()
    }

    /// Releases the block of a connection between requests, unless it holds input.
    pub(crate) fn release_spent(&mut self, index: &mut u32) {
        let place = self.used.get(*index as usize).and_then(Option::as_ref);
        if place.is_some_and(|block| block.is_spent()) {
            self.release(index);
        }
    }

    /// Releases a connection's block and discards its contents.
    pub(crate) fn release(&mut self, index: &mut u32) {
        if *index != NONE {
            let mut block = self.take_out(*index);
            if block.class.take().is_some() {
                self.holders.set(*index, None);
            }
            self.recycle(*index, block);
            *index = NONE;
        }
    }

    /// Frees the spare blocks.
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
        self.held_bytes + self.held_by_calls.get() + self.pool.leaving_bytes()
    }

    /// Returns true if that exceeds `buffered_bytes_max`.
    pub(crate) fn is_full(&self) -> bool {
        self.counted_bytes() > self.limits.buffered_bytes_max
    }

    /// Keeps a service that was replaced for the requests whose body it is going to get. Those of earlier services keep
    /// theirs.
    pub(crate) fn keep_service(&mut self, service: &Rc<dyn Service>) {
        for block in self.used.iter_mut().flatten() {
            if block.call.is_none() && block.decoder.is_some() {
                block.service.get_or_insert_with(|| Rc::clone(service));
            }
        }
    }

    /// Returns true if a connection has unconsumed input.
    pub(crate) fn has_input(&self, index: u32) -> bool {
        let place = self.used.get(index as usize);
        place.and_then(Option::as_ref).is_some_and(|block| !block.input.is_empty())
    }

    /// Returns the number of blocks in use.
    pub(crate) fn len(&self) -> usize {
        self.used.len() - self.free.len()
    }

    fn recycle(&mut self, index: u32, mut block: Box<Block>) {
        self.free.push(index);
        block.clear(&mut self.pool);
        if self.spare.len() < SPARE_BLOCKS_MAX {
            self.spare.push(block);
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

    use super::{Blocks, Token};
    use crate::connection::NONE;
    use crate::limits::{Limits, SPARE_BLOCKS_MAX, SPARE_BUFFER_BYTES_MAX};

    const OWNER: Token = Token::new(0, 0);

    #[test]
    fn keeps_a_bounded_number_of_spare_blocks_and_little_memory_in_each() {
        let mut blocks =
            Blocks::new(Limits { buffered_bytes_max: 10_000_000, ..Limits::default() }, Rc::default());
        let mut indices = vec![NONE; 3 * SPARE_BLOCKS_MAX];
        for index in &mut indices {
            let mut block = blocks.take(OWNER, index);
            for part in [&mut block.input, &mut block.head, &mut block.body] {
                part.extend(&[b'x'; 100_000], &mut blocks.pool);
            }
            blocks.put(*index, block);
        }
        assert!(blocks.is_full());
        assert_eq!(blocks.len(), indices.len());
        indices.iter_mut().for_each(|index| blocks.release(index));
        assert!(indices.iter().all(|index| *index == NONE));
        assert!(blocks.is_full(), "memory counts until it is returned to the system");
        while blocks.pool.is_busy() {
            blocks.pool.release();
        }
        assert!(!blocks.is_full());
        assert_eq!((blocks.len(), blocks.held_bytes, blocks.spare.len()), (0, 0, SPARE_BLOCKS_MAX));
        for block in &blocks.spare {
            let parts = [&block.input, &block.head, &block.body];
            assert!(parts.iter().all(|part| part.held_bytes() <= SPARE_BUFFER_BYTES_MAX));
        }
    }

    #[test]
    fn releases_a_block_once_it_holds_nothing() {
        let mut blocks = Blocks::new(Limits::default(), Rc::default());
        let mut index = NONE;
        let mut block = blocks.take(OWNER, &mut index);
        block.input.extend(b"x", &mut blocks.pool);
        blocks.put(index, block);
        blocks.release_spent(&mut index);
        assert!(index != NONE && blocks.has_input(index));
        let mut block = blocks.take(OWNER, &mut index);
        block.input.clear(&mut blocks.pool);
        blocks.put(index, block);
        assert!(!blocks.has_input(index));
        blocks.release_spent(&mut index);
        assert_eq!((index, blocks.len()), (NONE, 0));
        blocks.release_spent(&mut index);
        assert_eq!(index, NONE, "nothing to release");
    }
}
