//! A request's body on its way to the handler that reads it.

use std::cell::{OnceCell, RefCell};
use std::mem;
use std::task::Waker;

use crate::limits::SPARE_BUFFER_BYTES_MAX;

/// Body queued for the handler.
#[derive(Default)]
pub(crate) struct Inbound {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_over: bool,
    /// The body is passed to the handler as it arrives.
    pub(crate) comes: bool,
    /// The handler waits for more.
    pub(crate) is_wanted: bool,
    /// Capacity of the piece that the handler holds, in bytes.
    pub(crate) taken_bytes: usize,
    pub(crate) reader: Option<Waker>,
}

impl Inbound {
    /// Swaps `piece`, which is empty, for the queued body. Returns false at the body's end; `None` if nothing
    /// is queued, and wakes `waker` later.
    pub(crate) fn take(&mut self, piece: &mut Vec<u8>, waker: &Waker) -> Option<bool> {
        self.taken_bytes = piece.capacity();
        self.is_wanted = self.bytes.is_empty() && !self.is_over;
        if self.is_wanted {
            self.reader = Some(waker.clone());
            return None;
        }
        mem::swap(piece, &mut self.bytes);
        self.taken_bytes = piece.capacity();
        Some(!piece.is_empty())
    }

    /// Drops the body; keeps a little memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(SPARE_BUFFER_BYTES_MAX);
        (self.is_over, self.comes, self.is_wanted, self.reader) = (false, false, false, None);
        self.taken_bytes = 0;
    }
}

/// Trailer section of a body that has one.
#[derive(Default)]
pub(crate) struct TrailerSection {
    /// Lines so far.
    received: RefCell<Vec<u8>>,
    /// All lines, once the handler has asked for them.
    read: OnceCell<Vec<u8>>,
}

impl TrailerSection {
    /// Appends a part. Returns the memory before and after that, in bytes.
    pub(crate) fn put(&self, bytes: &[u8]) -> (usize, usize) {
        let mut received = self.received.borrow_mut();
        let before = received.capacity();
        received.extend_from_slice(bytes);
        (before, received.capacity())
    }

    /// Returns the lines so far.
    pub(crate) fn received(&self) -> Vec<u8> {
        self.received.borrow().clone()
    }

    /// Returns a complete section.
    pub(crate) fn lines(&self) -> &[u8] {
        self.read.get_or_init(|| self.received.take())
    }

    /// Drops what was received and not read yet. Returns its memory, in bytes.
    pub(crate) fn forget(&self) -> usize {
        self.received.take().capacity()
    }
}
