//! Reading ahead, away from the worker: what a send needs of a file and isn't in memory is fetched by a thread of its own,
//! so that a disk keeps nobody waiting but the client that asked for it.

mod fetcher;
mod pages;

use crate::limits::{FETCH_BYTES, FETCH_LOOK_BYTES_MIN};
use crate::{FileSlice, Token, Waker};
use fetcher::{Fetch, Fetcher};

/// One driver's reading ahead. The thread begins with the first need of it.
#[derive(Debug)]
pub(crate) struct Ahead {
    waker: Waker,
    fetcher: Option<Fetcher>,
    /// The driver's clock as of this turn.
    now_ms: u64,
}

impl Ahead {
    /// `waker` is used whenever something was fetched.
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, fetcher: None, now_ms: 0 }
    }

    /// Takes note of the time.
    pub(crate) fn begin_turn(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// Whether the next `len` bytes of a slice are being fetched, so that sending them has to wait until
    /// [`Ahead::next_fetched`] names the connection. Not where they are in memory, are few, or can't be fetched.
    pub(crate) fn fetches(&mut self, token: Token, slice: &FileSlice, len: u64) -> bool {
        if len < FETCH_LOOK_BYTES_MIN || self.finds(slice, len) {
            return false;
        }
        let file = slice.file.part();
        let fetch = Fetch { token, file, offset: slice.offset, len: slice.len.min(FETCH_BYTES) };
        if self.fetcher.is_none() {
            self.fetcher = Fetcher::start(self.waker.clone()).ok();
        }
        self.fetcher.as_ref().is_some_and(|fetcher| fetcher.take(fetch))
    }

    /// Whether the next `len` bytes of a slice are in memory, or were a moment ago.
    fn finds(&self, slice: &FileSlice, len: u64) -> bool {
        if slice.file.was_found(slice.offset, len, self.now_ms) {
            return true;
        }
        let found = pages::are_in_memory(&slice.file, slice.offset, len);
        if found {
            slice.file.note_found(slice.offset, len, self.now_ms);
        }
        found
    }

    /// The next connection for which something was fetched. It may be gone meanwhile.
    pub(crate) fn next_fetched(&self) -> Option<Token> {
        self.fetcher.as_ref()?.next_fetched()
    }
}
