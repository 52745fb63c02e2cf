//! Reads ahead on other threads, so that other connections of the worker don't wait for the disk.
//!
//! It serves ranges of files of `FETCH_CHECK_BYTES_MIN` and more that are to be sent and aren't in the page cache, and all
//! ranges of files on a server: of these it keeps what it has read, since nothing else may. The worker itself reads
//! shorter ranges, and those on file systems that can't report what is cached.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::{io, thread};

use rustix::io::Errno;

use crate::limits::{
    FETCH_BYTES, FETCH_CHECK_BYTES_MIN, FETCH_KEPT_BYTES, FETCHER_RETRY_MS, FETCHERS_MAX, FETCHES_MAX,
};
use crate::page_cache::{self, CheckedRanges, are_in_memory};
use crate::{FileSlice, Token, Waker};

/// A fetch that a send wants, and what it has read of a file on a server.
#[derive(Debug, Default)]
pub(crate) struct Fetched(OnceLock<Kept>);

#[derive(Debug)]
struct Kept {
    file: Arc<File>,
    offset: u64,
    bytes: Result<Vec<u8>, Errno>,
}

impl Fetched {
    /// Returns whether it has read a file on a server.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns what was read of the beginning of a slice, empty at the file's end; `None` if it wasn't.
    pub(crate) fn start_of(&self, slice: &FileSlice) -> Option<Result<&[u8], Errno>> {
        let kept = self.0.get().filter(|kept| Arc::ptr_eq(&slice.file.part(), &kept.file))?;
        let from = usize::try_from(slice.offset.checked_sub(kept.offset)?).ok()?;
        match &kept.bytes {
            Ok(bytes) => bytes.get(from..).filter(|left| from == 0 || !left.is_empty()).map(Ok),
            Err(errno) => Some(Err(*errno)),
        }
    }
}

/// One driver's read-ahead. Threads start on demand.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    waker: Waker,
    fetcher: Option<Fetcher>,
    /// Earliest time to start the first thread, after starting it failed.
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
    pub(crate) fn fetch(&mut self, token: Token, slice: &FileSlice, len: u64) -> Option<Arc<Fetched>> {
        let is_short = len < FETCH_CHECK_BYTES_MIN;
        if !slice.file.is_remote() && (is_short || self.finds(slice, len)) {
            return None;
        }
        self.fetch_unchecked(token, slice)
    }

    /// Queues a fetch like [`ReadAhead::fetch`], of a slice whose beginning isn't cached.
    pub(crate) fn fetch_unchecked(&mut self, token: Token, slice: &FileSlice) -> Option<Arc<Fetched>> {
        let keeps = slice.file.is_remote();
        let wants = Arc::default();
        let fetch = Fetch {
            token,
            file: slice.file.part(),
            offset: slice.offset,
            len: slice.len.min(if keeps { FETCH_KEPT_BYTES } else { FETCH_BYTES }),
            keeps,
            wanted: Arc::downgrade(&wants),
        };
        self.started(Fetcher::start)?.take(fetch).then_some(wants)
    }

    /// Returns the threads, starting the first unless that failed recently.
    fn started(&mut self, start: impl FnOnce(Waker) -> io::Result<Fetcher>) -> Option<&mut Fetcher> {
        if self.fetcher.is_none() && self.now_ms >= self.start_from_ms {
            self.fetcher = start(self.waker.clone()).ok();
            self.start_from_ms = self.now_ms + FETCHER_RETRY_MS;
        }
        self.fetcher.as_mut()
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

/// A range of a file to read for a connection.
#[derive(Debug)]
struct Fetch {
    token: Token,
    file: Arc<File>,
    offset: u64,
    len: u64,
    /// True if the bytes are for the send, instead of for the page cache.
    keeps: bool,
    /// Dead once the send that requested it has ended.
    wanted: Weak<Fetched>,
}

/// Queues to and from the read-ahead threads. Once dropped, each thread ends after its present fetch.
#[derive(Debug)]
struct Fetcher {
    wanted: SyncSender<Fetch>,
    fetched: Receiver<Token>,
    shared: Arc<Shared>,
    threads: usize,
}

/// The threads' side of the queues.
#[derive(Debug)]
struct Shared {
    wanted: Mutex<Receiver<Fetch>>,
    fetched: SyncSender<Token>,
    /// Fetches that are queued or in progress.
    unfinished: AtomicUsize,
    waker: Waker,
    read: fn(&File, u64, u64),
}

impl Fetcher {
    /// Starts the first thread.
    ///
    /// # Errors
    /// Fails if the system can't start a thread.
    fn start(waker: Waker) -> io::Result<Self> {
        let mut fetcher = Self::new(waker, |file, offset, len| page_cache::fetch(file, offset, len));
        fetcher.start_thread()?;
        Ok(fetcher)
    }

    /// `read` reads a range of a file into the page cache.
    fn new(waker: Waker, read: fn(&File, u64, u64)) -> Self {
        let (wanted, receiver) = sync_channel(FETCHES_MAX);
        // The worker drains it in each turn and never waits for these threads.
        let (sender, fetched) = sync_channel(FETCHES_MAX);
        let (receiver, unfinished) = (Mutex::new(receiver), AtomicUsize::new(0));
        let shared = Arc::new(Shared { wanted: receiver, fetched: sender, unfinished, waker, read });
        Self { wanted, fetched, shared, threads: 0 }
    }

    fn start_thread(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        thread::Builder::new().name("shearwater-read".to_owned()).spawn(move || {
            page_cache::lower_priority();
            shared.fetch_all();
        })?;
        self.threads += 1;
        Ok(())
    }

    /// Queues a fetch. Returns false if too many are queued. Starts a thread for it if all are busy, so that a disk that
    /// hangs delays only its own files.
    fn take(&mut self, fetch: Fetch) -> bool {
        let is_busy = self.shared.unfinished.load(Ordering::Relaxed) >= self.threads;
        if is_busy && self.threads < FETCHERS_MAX {
            // Without another thread, the present ones do it.
            let _ = self.start_thread();
        }
        let is_queued = self.wanted.try_send(fetch).is_ok();
        if is_queued {
            self.shared.unfinished.fetch_add(1, Ordering::Relaxed);
        }
        is_queued
    }

    fn next_fetched(&self) -> Option<Token> {
        self.fetched.try_recv().ok()
    }
}

impl Shared {
    /// Runs fetches until the driver is dropped. Each thread takes the oldest.
    fn fetch_all(&self) {
        while let Some(Fetch { token, file, offset, len, keeps, wanted }) = self.next() {
            let wanted = wanted.upgrade();
            match &wanted {
                Some(wanted) if keeps => {
                    let bytes = page_cache::read(&file, offset, len);
                    // Never set before: a handle has one fetch.
                    let _ = wanted.0.set(Kept { file, offset, bytes });
                }
                Some(_) => (self.read)(&file, offset, len),
                None => {}
            }
            self.unfinished.fetch_sub(1, Ordering::Relaxed);
            if wanted.is_some() {
                if self.fetched.send(token).is_err() {
                    return;
                }
                self.waker.wake();
            }
        }
    }

    fn next(&self) -> Option<Fetch> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;
    use std::io;
    use std::rc::Rc;
    use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
    use std::time::Duration;

    use super::{
        FETCH_CHECK_BYTES_MIN, FETCHER_RETRY_MS, FETCHERS_MAX, FETCHES_MAX, Fetch, Fetched, Fetcher,
        ReadAhead,
    };
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
        let remote = SharedFile::new(File::open("/dev/null").expect("the file opens")).remote();
        let slice = FileSlice { file: Rc::new(remote), ..slice };
        assert!(ahead.fetch(token, &slice, 1).is_some(), "it may be, but nothing tells");
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

    fn fetch(slot: u32, wanted: Weak<Fetched>) -> Fetch {
        let file = Arc::new(File::open("/dev/null").expect("the file opens"));
        Fetch { token: Token::new(slot, 0), file, offset: 0, len: 1, keeps: false, wanted }
    }

    /// Time after which a test fails.
    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn reports_fetches_and_wakes_the_driver() {
        let (woken, wakes) = mpsc::sync_channel(3);
        let mut fetcher =
            Fetcher::start(Waker::new(move || woken.send(()).expect("the test waits"))).expect("a thread");
        let wants = Arc::default();
        for slot in 0..3 {
            assert!(fetcher.take(fetch(slot, Arc::downgrade(&wants))));
        }
        let mut fetched: Vec<_> = (0..3)
            .map(|_| {
                wakes.recv_timeout(TEST_TIMEOUT).expect("it wakes");
                fetcher.next_fetched().expect("it is reported first").slot()
            })
            .collect();
        fetched.sort_unstable();
        assert_eq!(fetched, [0, 1, 2]);
        drop(fetcher);
        assert!(
            wakes.recv_timeout(TEST_TIMEOUT).is_err(),
            "the threads have ended, and their waker with them"
        );
    }

    #[test]
    fn a_hanging_file_delays_no_other() {
        /// Reads of offset 7 wait for it.
        static GATE: Mutex<()> = Mutex::new(());
        let hang = |_: &File, offset, _| {
            if offset == 7 {
                drop(GATE.lock().unwrap_or_else(PoisonError::into_inner));
            }
        };
        let gate = GATE.lock().expect("it is free");
        let (woken, wakes) = mpsc::sync_channel(8);
        let mut fetcher = Fetcher::new(Waker::new(move || woken.send(()).expect("the test waits")), hang);
        let wants = Arc::default();
        let hanging = FETCHERS_MAX as u32 - 1;
        for slot in 0..hanging {
            assert!(fetcher.take(Fetch { offset: 7, ..fetch(slot, Arc::downgrade(&wants)) }));
        }
        for slot in [100, 101] {
            assert!(fetcher.take(fetch(slot, Arc::downgrade(&wants))));
            wakes.recv_timeout(TEST_TIMEOUT).expect("it is fetched meanwhile");
            assert_eq!(fetcher.next_fetched(), Some(Token::new(slot, 0)));
        }
        assert!(fetcher.take(Fetch { offset: 7, ..fetch(hanging, Arc::downgrade(&wants)) }));
        assert!(fetcher.take(fetch(102, Arc::downgrade(&wants))));
        assert_eq!(fetcher.threads, FETCHERS_MAX, "more fetches than threads");
        drop(gate);
        for _ in 0..FETCHERS_MAX + 1 {
            wakes.recv_timeout(TEST_TIMEOUT).expect("all are fetched in the end");
        }
    }

    #[test]
    fn queues_a_bounded_number_of_fetches() {
        let mut fetcher = Fetcher::new(Waker::new(|| {}), |_, _, _| ());
        fetcher.threads = FETCHERS_MAX; // none runs
        let taken = (0..).take_while(|_| fetcher.take(fetch(0, Weak::new()))).count();
        assert_eq!(taken, FETCHES_MAX);
        drop(fetcher.shared.next());
        assert!(fetcher.take(fetch(0, Weak::new())));
    }

    #[test]
    fn fetches_nothing_for_ended_sends() {
        let mut fetcher = Fetcher::new(Waker::new(|| {}), |_, _, _| ());
        fetcher.threads = FETCHERS_MAX; // none runs
        let wants = Arc::default();
        for slot in 0..4 {
            let wanted = if slot % 2 == 0 { Weak::new() } else { Arc::downgrade(&wants) };
            assert!(fetcher.take(fetch(slot, wanted)));
        }
        let Fetcher { wanted: sender, fetched: finished, shared, .. } = fetcher;
        drop(sender); // a thread ends when its queue is empty
        shared.fetch_all();
        drop(shared);
        let finished: Vec<_> = finished.try_iter().collect();
        assert_eq!(finished, [Token::new(1, 0), Token::new(3, 0)]);
    }
}
