//! Reading ahead, away from the worker: what a send needs of a file and isn't in memory is fetched by a thread of its own,
//! so that a disk keeps nobody waiting but the client that asked for it.

mod fetcher;
mod pages;

use std::os::fd::AsFd;

use crate::limits::{FETCH_BYTES, FETCH_LOOK_BYTES_MIN};
use crate::{FileSlice, Token, Waker};
use fetcher::{Fetch, Fetcher};

/// One driver's reading ahead. The thread begins with the first need of it.
#[derive(Debug)]
pub(crate) struct Ahead {
    waker: Waker,
    fetcher: Option<Fetcher>,
}

impl Ahead {
    /// `waker` is used whenever something was fetched.
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, fetcher: None }
    }

    /// Whether the next `len` bytes of a slice are being fetched, so that sending them has to wait until
    /// [`Ahead::next_fetched`] names the connection. Not where they are in memory, are few, or can't be fetched.
    pub(crate) fn fetches(&mut self, token: Token, slice: &FileSlice, len: u64) -> bool {
        if len < FETCH_LOOK_BYTES_MIN || pages::are_in_memory(&slice.file, slice.offset, len) {
            return false;
        }
        let Ok(file) = slice.file.as_fd().try_clone_to_owned() else { return false };
        let fetch = Fetch { token, file, offset: slice.offset, len: slice.len.min(FETCH_BYTES) };
        if self.fetcher.is_none() {
            self.fetcher = Fetcher::start(self.waker.clone()).ok();
        }
        self.fetcher.as_ref().is_some_and(|fetcher| fetcher.take(fetch))
    }

    /// The next connection for which something was fetched. It may be gone meanwhile.
    pub(crate) fn next_fetched(&self) -> Option<Token> {
        self.fetcher.as_ref()?.next_fetched()
    }
}
