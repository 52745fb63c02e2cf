//! Reads ahead on another thread, so that other connections of the worker don't wait for the disk.
//!
//! It serves ranges of files of `FETCH_CHECK_BYTES_MIN` and more that are to be sent and aren't in the page
//! cache. The worker itself reads shorter ranges, and those on file systems that can't report what is cached.

use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::{io, thread};

use crate::limits::{FETCH_BYTES, FETCH_CHECK_BYTES_MIN, FETCHER_RETRY_MS, FETCHES_MAX};
use crate::page_cache::{self, CheckedRanges, are_in_memory};
use crate::{FileSlice, Token, Waker};

/// One driver's read-ahead. The thread starts with the first use.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    waker: Waker,
    fetcher: Option<Fetcher>,
    /// Earliest time to start the thread, after starting it failed.
    start_from_ms: u64,
    /// Time of this turn by the driver's clock.
    pub(crate) now_ms: u64,
    /// Returns whether a range can be read without waiting for a disk.
    look: fn(&File, u64, u64) -> bool,
    checked: CheckedRanges,
}

impl ReadAhead {
    /// `waker` is called after each fetch.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            waker,
            fetcher: None,
            start_from_ms: 0,
            now_ms: 0,
            look: are_in_memory,
            checked: CheckedRanges::default(),
        }
    }

    /// Queues a fetch of the next `len` bytes of a slice, so that sending them waits until
    /// [`ReadAhead::next_fetched`] returns the connection. Returns `None` if they are cached, few, or can't be
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

/// A range of a file to read into the page cache for a connection.
#[derive(Debug)]
struct Fetch {
    token: Token,
    file: Arc<File>,
    offset: u64,
    len: u64,
    /// Dead once the send that requested it has ended.
    wanted: Weak<()>,
}

/// Queues to and from the read-ahead thread. Once dropped, the thread ends after its present fetch.
#[derive(Debug)]
struct Fetcher {
    wanted: SyncSender<Fetch>,
    fetched: Receiver<Token>,
}

impl Fetcher {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the system can't start a thread.
    fn start(waker: Waker) -> io::Result<Self> {
        let (fetcher, wanted, fetched) = Self::new();
        thread::Builder::new().name("shearwater-read".to_owned()).spawn(move || {
            page_cache::lower_priority();
            fetch_all(&wanted, &fetched, &waker);
        })?;
        Ok(fetcher)
    }

    fn new() -> (Self, Receiver<Fetch>, SyncSender<Token>) {
        let (wanted, receiver) = sync_channel(FETCHES_MAX);
        // The worker drains it in each turn and never waits for this thread.
        let (sender, fetched) = sync_channel(FETCHES_MAX);
        (Self { wanted, fetched }, receiver, sender)
    }

    /// Queues a fetch. Returns false if too many are queued.
    fn take(&self, fetch: Fetch) -> bool {
        self.wanted.try_send(fetch).is_ok()
    }

    fn next_fetched(&self) -> Option<Token> {
        self.fetched.try_recv().ok()
    }
}

/// Runs the fetches in order: disks are fastest at sequential reads.
fn fetch_all(wanted: &Receiver<Fetch>, fetched: &SyncSender<Token>, waker: &Waker) {
    while let Ok(fetch) = wanted.recv() {
        if fetch.wanted.strong_count() == 0 {
            continue;
        }
        page_cache::fetch(&fetch.file, fetch.offset, fetch.len);
        if fetched.send(fetch.token).is_err() {
            return;
        }
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;
    use std::io;
    use std::rc::Rc;
    use std::sync::{Arc, Weak, mpsc};
    use std::time::Duration;

    use super::{FETCH_CHECK_BYTES_MIN, FETCHER_RETRY_MS, FETCHES_MAX, Fetch, Fetcher, ReadAhead, fetch_all};
    use crate::{FileSlice, SharedFile, Token, Waker};

    fn slice() -> FileSlice {
        let file = File::open("/dev/null").expect("the file opens");
        FileSlice { file: Rc::new(SharedFile::new(file)), offset: 0, len: u64::MAX }
    }

    #[test]
    fn checks_only_long_ranges() {
        let mut ahead = ReadAhead::new(Waker::new(|| {}));
        ahead.find_nothing();
        let (token, slice) = (Token::new(0, 0), slice());
        assert!(ahead.fetch(token, &slice, FETCH_CHECK_BYTES_MIN - 1).is_none());
        assert!(ahead.fetch(token, &slice, FETCH_CHECK_BYTES_MIN).is_some());
        ahead.look = |_, _, _| true;
        assert!(ahead.fetch(token, &slice, FETCH_CHECK_BYTES_MIN).is_none(), "it is cached");
    }

    #[test]
    fn retries_to_start_the_thread_after_a_while() {
        let mut ahead = ReadAhead::new(Waker::new(|| {}));
        let tries = Cell::new(0);
        for (now_ms, tried) in [(7, 1), (7, 1), (7 + FETCHER_RETRY_MS - 1, 1), (7 + FETCHER_RETRY_MS, 2)] {
            ahead.now_ms = now_ms;
            let fails = |_| {
                tries.set(tries.get() + 1);
                Err(io::ErrorKind::WouldBlock.into())
            };
            assert!(ahead.started(fails).is_none());
            assert_eq!(tries.get(), tried);
        }
        ahead.now_ms = 7 + 2 * FETCHER_RETRY_MS;
        assert!(ahead.started(Fetcher::start).is_some(), "a thread starts again");
    }

    fn fetch(slot: u32, wanted: Weak<()>) -> Fetch {
        let file = Arc::new(File::open("/dev/null").expect("the file opens"));
        Fetch { token: Token::new(slot, 0), file, offset: 0, len: 1, wanted }
    }

    #[test]
    fn reports_fetches_in_order_and_wakes_the_driver() {
        let (woken, wakes) = mpsc::sync_channel(3);
        let fetcher =
            Fetcher::start(Waker::new(move || woken.send(()).expect("the test waits"))).expect("a thread");
        let wants = Arc::new(());
        for slot in 0..3 {
            assert!(fetcher.take(fetch(slot, Arc::downgrade(&wants))));
        }
        for slot in 0..3 {
            wakes.recv_timeout(Duration::from_secs(20)).expect("it wakes");
            assert_eq!(fetcher.next_fetched(), Some(Token::new(slot, 0)));
        }
        drop(fetcher);
        assert!(
            wakes.recv_timeout(Duration::from_secs(20)).is_err(),
            "the thread has ended, and its waker with it"
        );
    }

    #[test]
    fn queues_a_bounded_number_of_fetches() {
        let (fetcher, wanted, _fetched) = Fetcher::new();
        let taken = (0..).take_while(|_| fetcher.take(fetch(0, Weak::new()))).count();
        assert_eq!(taken, FETCHES_MAX);
        drop(wanted.recv());
        assert!(fetcher.take(fetch(0, Weak::new())));
    }

    #[test]
    fn fetches_nothing_for_ended_sends() {
        let (fetcher, wanted, fetched) = Fetcher::new();
        let wants = Arc::new(());
        for slot in 0..4 {
            let wanted = if slot % 2 == 0 { Weak::new() } else { Arc::downgrade(&wants) };
            assert!(fetcher.take(fetch(slot, wanted)));
        }
        let Fetcher { wanted: sender, fetched: finished } = fetcher;
        drop(sender); // the thread ends when its queue is empty
        fetch_all(&wanted, &fetched, &Waker::new(|| {}));
        let finished: Vec<_> = finished.try_iter().collect();
        assert_eq!(finished, [Token::new(1, 0), Token::new(3, 0)]);
    }
}
