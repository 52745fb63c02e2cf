//! Blocks: what a connection owns beyond its slot, only while a request is unfinished.

use std::cell::Cell;
use std::rc::Rc;

use shearwater_http1::{BodyDecoder, HeadParser};

use crate::app::BodySink;
use crate::buffer::Buffer;
use crate::call::Exchange;
use crate::conn::NONE;
use crate::limits::{Limits, SPARE_BLOCKS_MAX};
use crate::pace::Pace;
use crate::page_pool::PagePool;
use crate::panics;
use crate::upgrade::Taker;
use crate::waiting::Waiting;

/// What becomes of the body that is arriving.
pub(crate) enum Destination {
    /// It is thrown away.
    Nowhere,
    /// It is kept in the block.
    Buffer,
    /// It is handed on.
    Sink(Box<dyn BodySink>),
    /// It is put where its handler takes it.
    Call(Rc<Exchange>),
}

/// State of an unfinished request.
pub(crate) struct Block {
    /// Received and not consumed: a part of a head, or pipelined requests that wait.
    pub(crate) input: Buffer,
    /// Has parsed the head that is unfinished, or whose body is arriving. Has no room until then.
    pub(crate) parser: HeadParser,
    /// The head whose body is arriving.
    pub(crate) head: Buffer,
    /// The body so far, where it is kept.
    pub(crate) body: Buffer,
    pub(crate) decoder: Option<BodyDecoder>,
    /// The request that a handler is at work on.
    pub(crate) call: Option<Waiting>,
    /// The closure that takes the connection over once its `101` is sent.
    pub(crate) taker: Option<Taker>,
    pub(crate) destination: Destination,
    /// The time that the body has left.
    pub(crate) pace: Pace,
    /// Bytes of the body so far, and the most there may be.
    pub(crate) body_bytes: u64,
    pub(crate) body_bytes_max: u64,
}

impl Block {
    fn new(limits: &Limits) -> Self {
        Self {
            input: Buffer::default(),
            parser: HeadParser::without_room(limits.head()),
            head: Buffer::default(),
            body: Buffer::default(),
            decoder: None,
            call: None,
            taker: None,
            destination: Destination::Nowhere,
            pace: Pace::default(),
            body_bytes: 0,
            body_bytes_max: 0,
        }
    }

    /// Memory that clients make it hold.
    pub(crate) fn held_bytes(&self) -> usize {
        self.input.held_bytes() + self.head.held_bytes() + self.body.held_bytes()
    }

    /// Whether it holds nothing that is still needed while no body is arriving.
    pub(crate) fn is_spent(&self) -> bool {
        self.input.is_empty() && self.decoder.is_none() && self.call.is_none()
    }

    /// Whether the handler that takes its body has enough of it for now.
    pub(crate) fn is_fed(&self) -> bool {
        matches!(&self.destination, Destination::Call(exchange) if !exchange.has_room())
    }

    /// Forgets the request; keeps the input.
    pub(crate) fn end_request(&mut self, pool: &mut PagePool) {
        self.head.clear(pool);
        self.body.clear(pool);
        self.decoder = None;
        let destination = std::mem::replace(&mut self.destination, Destination::Nowhere);
        // A sink that panics when it is dropped has nobody left to answer to; the hook has shown it.
        let _ = panics::catch(|| drop(destination));
        self.parser.reset();
    }

    fn clear(&mut self, pool: &mut PagePool) {
        self.end_request(pool);
        self.taker = None;
        self.input.clear(pool);
    }
}

/// All blocks of a worker, and the spare ones.
pub(crate) struct Blocks {
    used: Vec<Option<Box<Block>>>,
    free: Vec<u32>,
    // Boxed, so that taking one out of its place and putting it back moves a pointer.
    #[expect(clippy::vec_box, reason = "a block moves between `spare` and `used` without being copied")]
    spare: Vec<Box<Block>>,
    held_bytes: usize,
    /// What requests that are answered later hold.
    held_by_calls: Rc<Cell<usize>>,
    /// Where large buffers get their memory.
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
            pool: PagePool::default(),
            limits,
        }
    }

    /// Takes the block out of its place, to work with it: `put` it back. `NONE` gets a new place.
    pub(crate) fn take(&mut self, index: &mut u32) -> Box<Block> {
        if *index == NONE {
            *index = self.free.pop().unwrap_or_else(|| {
                self.used.push(None);
                self.used.len() as u32 - 1
            });
            return self.spare.pop().unwrap_or_else(|| Box::new(Block::new(&self.limits)));
        }
        let block = self.used[*index as usize].take().expect("a block that has a place is in it");
        self.held_bytes -= block.held_bytes();
        block
    }

    /// Puts a block back into its place.
    pub(crate) fn put(&mut self, index: u32, block: Box<Block>) {
        self.held_bytes += block.held_bytes();
        self.used[index as usize] = Some(block);
    }

    /// The block of a connection that has one.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Block> {
        self.used.get_mut(index as usize)?.as_deref_mut()
    }

    /// Lets go of the block of a connection between requests, unless it holds input.
    pub(crate) fn release_spent(&mut self, index: &mut u32) {
        let place = self.used.get(*index as usize).and_then(Option::as_ref);
        if place.is_some_and(|block| block.is_spent()) {
            self.release(index);
        }
    }

    /// Lets go of a connection's block, whatever it holds.
    pub(crate) fn release(&mut self, index: &mut u32) {
        if *index != NONE {
            let block = self.take(index);
            self.recycle(*index, block);
            *index = NONE;
        }
    }

    /// Frees the spare ones.
    pub(crate) fn forget_spare(&mut self) {
        self.spare = Vec::new();
        self.pool.forget_spare();
    }

    /// Whether the worker's blocks hold more than they may.
    pub(crate) fn is_full(&self) -> bool {
        self.held_bytes + self.held_by_calls.get() + self.pool.leaving_bytes()
            > self.limits.buffered_bytes_max
    }

    /// Whether a connection has input that was not consumed.
    pub(crate) fn has_input(&self, index: u32) -> bool {
        let place = self.used.get(index as usize);
        place.and_then(Option::as_ref).is_some_and(|block| !block.input.is_empty())
    }

    /// Blocks that are in use.
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

    use super::Blocks;
    use crate::conn::NONE;
    use crate::limits::{Limits, SPARE_BLOCKS_MAX, SPARE_BUFFER_BYTES_MAX};

    #[test]
    fn keeps_a_bounded_number_of_spare_blocks_and_little_memory_in_each() {
        let mut blocks =
            Blocks::new(Limits { buffered_bytes_max: 10_000_000, ..Limits::default() }, Rc::default());
        let mut indices = vec![NONE; 3 * SPARE_BLOCKS_MAX];
        for index in &mut indices {
            let mut block = blocks.take(index);
            for part in [&mut block.input, &mut block.head, &mut block.body] {
                part.extend(&[b'x'; 100_000], &mut blocks.pool);
            }
            blocks.put(*index, block);
        }
        assert!(blocks.is_full());
        assert_eq!(blocks.len(), indices.len());
        indices.iter_mut().for_each(|index| blocks.release(index));
        assert!(indices.iter().all(|index| *index == NONE));
        assert!(blocks.is_full(), "memory counts until the system has it back");
        while blocks.pool.is_busy() {
            blocks.pool.release();
        }
        assert!(!blocks.is_full());
        assert_eq!((blocks.len(), blocks.held_bytes, blocks.spare.len()), (0, 0, SPARE_BLOCKS_MAX));
        assert!(blocks.spare.iter().all(|block| block.held_bytes() <= SPARE_BUFFER_BYTES_MAX));
    }

    #[test]
    fn a_block_goes_back_once_it_holds_nothing() {
        let mut blocks = Blocks::new(Limits::default(), Rc::default());
        let mut index = NONE;
        let mut block = blocks.take(&mut index);
        block.input.extend(b"x", &mut blocks.pool);
        blocks.put(index, block);
        blocks.release_spent(&mut index);
        assert!(index != NONE && blocks.has_input(index));
        let mut block = blocks.take(&mut index);
        block.input.clear(&mut blocks.pool);
        blocks.put(index, block);
        assert!(!blocks.has_input(index));
        blocks.release_spent(&mut index);
        assert_eq!((index, blocks.len()), (NONE, 0));
        blocks.release_spent(&mut index);
        assert_eq!(index, NONE, "nothing to let go of");
    }
}
