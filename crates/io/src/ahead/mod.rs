//! Reads ahead on another thread, so that other connections of the worker don't wait for the disk.
//!
//! It serves ranges of files of `FETCH_CHECK_BYTES_MIN` and more that are to be sent and aren't in the page
//! cache. The worker itself reads shorter ranges, and those on file systems that can't report what is cached.

mod fetcher;
mod looks;
mod pages;

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::limits::{FETCH_BYTES, FETCH_CHECK_BYTES_MIN, FETCHER_RETRY_MS};
use crate::{FileSlice, Token, Waker};
use fetcher::{Fetch, Fetcher};
use looks::CheckedRanges;
pub(crate) use pages::are_in_memory;

/// One driver's read-ahead. The thread starts with the first use.
#[derive(Debug)]
pub(crate) struct Ahead {
    waker: Waker,
    fetcher: Option<Fetcher>,
    /// Earliest time to start the thread, after starting it failed.
    start_from_ms: u64,
    /// Time of this turn by the driver's clock.
    now_ms: u64,
    /// Returns whether a range can be read without waiting for a disk.
    look: fn(&File, u64, u64) -> bool,
    checked: CheckedRanges,
}

impl Ahead {
    /// `waker` is called after each fetch.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            waker,
            fetcher: None,
            start_from_ms: 0,
            now_ms: 0,
            look: pages::are_in_memory,
            checked: CheckedRanges::default(),
        }
    }

    /// Sets the time of the turn.
    pub(crate) fn begin_turn(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// Queues a fetch of the next `len` bytes of a slice, so that sending them waits until
    /// [`Ahead::next_fetched`] returns the connection. Returns `None` if they are cached, few, or can't be
    /// fetched. Dropping the returned handle cancels the fetch.
    pub(crate) fn fetch(&mut self, token: Token, slice: &FileSlice, len: u64) -> Option<Arc<()>> {
        if len < FETCH_CHECK_BYTES_MIN || self.finds(slice, len) {
            return None;
        }
        let wants = Arc::new(());
        let fetch = Fetch {
            token,
            file: slice.file.part(),
            offset: slice.offset,
            len: slice.len.min(FETCH_BYTES),
            wanted: Arc::downgrade(&wants),
        };
        self.started(Fetcher::start)?.take(fetch).then_some(wants)
    }

    /// Returns the thread, starting it unless that failed recently.
    fn started(&mut self, start: impl FnOnce(Waker) -> io::Result<Fetcher>) -> Option<&Fetcher> {
        if self.fetcher.is_none() && self.now_ms >= self.start_from_ms {
            self.fetcher = start(self.waker.clone()).ok();
            self.start_from_ms = self.now_ms + FETCHER_RETRY_MS;
        }
        self.fetcher.as_ref()
    }

    /// Returns whether the next `len` bytes of a slice are cached, or were recently.
    fn finds(&mut self, slice: &FileSlice, len: u64) -> bool {
        let inode = slice.file.inode();
        if inode.is_some_and(|file| self.checked.hold(file, slice.offset, len, self.now_ms)) {
            return true;
        }
        let found = (self.look)(&slice.file, slice.offset, len);
        if let Some(file) = inode.filter(|_| found) {
            self.checked.note(file, slice.offset, len, self.now_ms);
        }
        found
    }

    /// Returns the next connection whose fetch is complete. It may be closed already.
    pub(crate) fn next_fetched(&self) -> Option<Token> {
        self.fetcher.as_ref()?.next_fetched()
    }

    /// Makes every later check find nothing cached.
    #[cfg(test)]
    pub(crate) fn find_nothing(&mut self) {
        self.look = |_, _, _| false;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;
    use std::io;
    use std::rc::Rc;

    use super::{Ahead, FETCH_CHECK_BYTES_MIN, FETCHER_RETRY_MS, Fetcher};
    use crate::{FileSlice, SharedFile, Token, Waker};

    fn slice() -> FileSlice {
        let file = File::open("/dev/null").expect("the file opens");
        FileSlice { file: Rc::new(SharedFile::new(file)), offset: 0, len: u64::MAX }
    }

    #[test]
    fn a_piece_is_looked_at_from_a_certain_length_on() {
        let mut ahead = Ahead::new(Waker::new(|| {}));
        ahead.find_nothing();
        let (token, slice) = (Token::new(0, 0), slice());
        assert!(ahead.fetch(token, &slice, FETCH_CHECK_BYTES_MIN - 1).is_none());
        assert!(ahead.fetch(token, &slice, FETCH_CHECK_BYTES_MIN).is_some());
        ahead.look = |_, _, _| true;
        assert!(ahead.fetch(token, &slice, FETCH_CHECK_BYTES_MIN).is_none(), "it is cached");
    }

    #[test]
    fn a_thread_that_cannot_be_started_is_not_tried_for_every_piece() {
        let mut ahead = Ahead::new(Waker::new(|| {}));
        let tries = Cell::new(0);
        for (now_ms, tried) in [(7, 1), (7, 1), (7 + FETCHER_RETRY_MS - 1, 1), (7 + FETCHER_RETRY_MS, 2)] {
            ahead.begin_turn(now_ms);
            let fails = |_| {
                tries.set(tries.get() + 1);
                Err(io::ErrorKind::WouldBlock.into())
            };
            assert!(ahead.started(fails).is_none());
            assert_eq!(tries.get(), tried);
        }
        ahead.begin_turn(7 + 2 * FETCHER_RETRY_MS);
        assert!(ahead.started(Fetcher::start).is_some(), "a thread starts again");
    }
}
