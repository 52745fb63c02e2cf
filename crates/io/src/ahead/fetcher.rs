//! The thread that reads ahead.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;

use super::pages;
use crate::limits::FETCHES_MAX;
use crate::{Token, Waker};

/// A range of a file to read into the page cache for a connection.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) token: Token,
    pub(super) file: Arc<File>,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// Dead once the send that requested it has ended.
    pub(super) wanted: Weak<()>,
}

/// Queues to and from the read-ahead thread. Once dropped, the thread ends after its present fetch.
#[derive(Debug)]
pub(super) struct Fetcher {
    wanted: SyncSender<Fetch>,
    fetched: Receiver<Token>,
}

impl Fetcher {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the system can't start a thread.
    pub(super) fn start(waker: Waker) -> io::Result<Self> {
        let (fetcher, wanted, fetched) = Self::new();
        thread::Builder::new().name("shearwater-read".to_owned()).spawn(move || {
            pages::lower_priority();
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
    pub(super) fn take(&self, fetch: Fetch) -> bool {
        self.wanted.try_send(fetch).is_ok()
    }

    pub(super) fn next_fetched(&self) -> Option<Token> {
        self.fetched.try_recv().ok()
    }
}

/// Runs the fetches in order: disks are fastest at sequential reads.
fn fetch_all(wanted: &Receiver<Fetch>, fetched: &SyncSender<Token>, waker: &Waker) {
    while let Ok(fetch) = wanted.recv() {
        if fetch.wanted.strong_count() == 0 {
            continue;
        }
        pages::fetch(&fetch.file, fetch.offset, fetch.len);
        if fetched.send(fetch.token).is_err() {
            return;
        }
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::{Arc, Weak, mpsc};
    use std::time::Duration;

    use super::{FETCHES_MAX, Fetch, Fetcher, fetch_all};
    use crate::{Token, Waker};

    fn fetch(slot: u32, wanted: Weak<()>) -> Fetch {
        let file = Arc::new(File::open("/dev/null").expect("the file opens"));
        Fetch { token: Token::new(slot, 0), file, offset: 0, len: 1, wanted }
    }

    #[test]
    fn what_was_fetched_is_told_in_order_and_the_driver_woken() {
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
    fn a_bounded_number_waits() {
        let (fetcher, wanted, _fetched) = Fetcher::new();
        let taken = (0..).take_while(|_| fetcher.take(fetch(0, Weak::new()))).count();
        assert_eq!(taken, FETCHES_MAX);
        drop(wanted.recv());
        assert!(fetcher.take(fetch(0, Weak::new())));
    }

    #[test]
    fn nothing_is_fetched_for_those_who_are_gone() {
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
