//! A thread pool for blocking work, so that no worker waits for a disk, a lock or a database.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;
use std::{fmt, thread};

/// Maximum number of threads that run offloaded work, shared by all workers of the process.
pub const OFFLOAD_THREADS_MAX: usize = 64;

/// Maximum number of queued pieces of work; further ones fail with [`Offloaded::Full`].
pub const OFFLOAD_WAITING_MAX: usize = 4096;

/// Time for which an idle thread waits for work before it ends.
pub const OFFLOAD_IDLE: Duration = Duration::from_secs(10);

/// An error of offloaded work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Offloaded {
    /// The queue has [`OFFLOAD_WAITING_MAX`] entries, or no thread could be started.
    Full,
    /// The work panicked.
    Panicked,
}

impl fmt::Display for Offloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the queue of offloaded work is full",
            Self::Panicked => "offloaded work panicked",
        })
    }
}

impl std::error::Error for Offloaded {}

type Work = Box<dyn FnOnce() + Send>;

/// Runs work that may block on another thread.
///
/// The work is queued immediately, not at the first poll. If the future is dropped, the work still runs to its end.
///
/// ```
/// use shearwater::{App, Call, Offloaded, get, later, offload};
/// use shearwater::testing::Tested;
///
/// async fn sum(_: &mut Call) -> Result<String, Offloaded> {
///     let sum = offload(|| (1..=1000_u32).sum::<u32>()).await?;
///     Ok(sum.to_string())
/// }
///
/// let app = App::new().route("/sum", get(later(sum)));
/// assert_eq!(Tested::new(app)?.get("/sum").text(), "500500");
/// # Ok::<(), shearwater::Error>(())
/// ```
///
/// # Errors
/// [`Offloaded`] if the queue is full or the work panicked.
pub fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Offloaded>> {
    static POOL: OnceLock<OffloadPool> = OnceLock::new();
    POOL.get_or_init(|| OffloadPool::new("offload", OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX)).offload(work)
}

/// A thread pool of its own, for blocking work that must not wait for that of [`offload`](offload()), nor delay it.
///
/// Threads start on demand and end after [`OFFLOAD_IDLE`] without work. Clones share them.
#[derive(Debug, Clone)]
pub struct OffloadPool(Arc<Pool>);

impl OffloadPool {
    /// Creates a pool of at most `threads_max` threads with this name, and `waiting_max` queued pieces of work.
    #[must_use]
    pub fn new(name: &'static str, threads_max: usize, waiting_max: usize) -> Self {
        let (state, has_work) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Pool { name, threads_max, waiting_max, state, has_work }))
    }

    /// Runs work on a thread of this pool, as [`offload`](offload()) does.
    ///
    /// # Errors
    /// [`Offloaded`] if the queue is full or the work panicked.
    pub fn offload<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, Offloaded>> + use<T, W> {
        offload_to(&self.0, work)
    }
}

fn offload_to<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
    pool: &Arc<Pool>,
    work: W,
) -> impl Future<Output = Result<T, Offloaded>> + use<T, W> {
    let awaited = Awaited { result: None, waker: None, outstanding: Piece::begin() };
    let awaiting = Awaiting(Arc::new(Mutex::new(awaited)));
    let slot = Arc::clone(&awaiting.0);
    let is_queued = pool.queue(Box::new(move || {
        put(&slot, catch_unwind(AssertUnwindSafe(work)).map_err(|_| Offloaded::Panicked));
    }));
    if !is_queued {
        put(&awaiting.0, Err(Offloaded::Full));
    }
    std::future::poll_fn(move |cx| {
        let mut awaited = lock(&awaiting.0);
        match awaited.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                awaited.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
}

/// The result of a piece of work, shared by its thread and its future.
struct Awaited<T> {
    result: Option<Result<T, Offloaded>>,
    waker: Option<Waker>,
    /// Set under [`testing`](crate::testing) until the result is stored or its future dropped.
    outstanding: Option<Piece>,
}

/// The awaiting side.
struct Awaiting<T>(Arc<Mutex<Awaited<T>>>);

impl<T> Drop for Awaiting<T> {
    fn drop(&mut self) {
        lock(&self.0).outstanding = None;
    }
}

fn put<T>(awaited: &Mutex<Awaited<T>>, result: Result<T, Offloaded>) {
    let mut awaited = lock(awaited);
    awaited.result = Some(result);
    let (waker, outstanding) = (awaited.waker.take(), awaited.outstanding.take());
    drop(awaited);
    waker.into_iter().for_each(Waker::wake);
    drop(outstanding);
}

/// Threads and their queue.
struct Pool {
    name: &'static str,
    threads_max: usize,
    waiting_max: usize,
    state: Mutex<State>,
    has_work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Pool {
    /// Queues a piece of work. Returns false if the queue is full.
    fn queue(self: &Arc<Self>, work: Work) -> bool {
        let mut state = lock(&self.state);
        if state.waiting.len() >= self.waiting_max {
            return false;
        }
        let wants_thread = state.idle <= state.waiting.len() && state.threads < self.threads_max;
        if wants_thread {
            let named = thread::Builder::new().name(self.name.to_owned());
            let pool = Arc::clone(self);
            match named.spawn(move || pool.serve(OFFLOAD_IDLE)) {
                Ok(_) => state.threads += 1,
                // The existing threads will run it.
                Err(_) if state.threads > 0 => {}
                Err(_) => return false,
            }
        }
        state.waiting.push_back(work);
        drop(state);
        self.has_work.notify_one();
        true
    }

    /// Runs work until none arrives for `idle`.
    fn serve(&self, idle: Duration) {
        let mut state = lock(&self.state);
        loop {
            if let Some(work) = state.waiting.pop_front() {
                drop(state);
                // Dropping an abandoned result may panic; the thread continues.
                drop(catch_unwind(AssertUnwindSafe(work)));
                state = lock(&self.state);
                continue;
            }
            state.idle += 1;
            let (back, timeout) =
                self.has_work.wait_timeout(state, idle).unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.idle -= 1;
            if timeout.timed_out() && state.waiting.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

/// Locks a mutex, ignoring poison: the data is consistent at every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The counter of the app whose worker is running on this thread; `None` for a server's worker.
    static CURRENT: RefCell<Option<Arc<Outstanding>>> = const { RefCell::new(None) };
}

/// A counter of one app's offloaded work.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    count: Mutex<Count>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    /// Started, and neither done nor abandoned.
    begun: usize,
    /// Done or abandoned.
    finished: u64,
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// No work is outstanding.
    Nothing,
    /// A piece of work finished.
    Finished,
    /// No work finished in time.
    TimedOut,
}

impl Outstanding {
    /// Runs `action` with this as the current counter.
    pub(crate) fn during<R>(self: &Arc<Self>, action: impl FnOnce() -> R) -> R {
        let _restore = Restore(CURRENT.replace(Some(Arc::clone(self))));
        action()
    }

    /// Returns the number of finished pieces.
    pub(crate) fn finished(&self) -> u64 {
        lock(&self.count).finished
    }

    /// Waits until more than `seen` pieces have finished, or none is outstanding.
    pub(crate) fn wait(&self, seen: u64, timeout: Duration) -> Waited {
        let waits = |count: &mut Count| count.finished == seen && count.begun > 0;
        let waited = self.changed.wait_timeout_while(lock(&self.count), timeout, waits);
        let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match (count.finished == seen, count.begun) {
            (false, _) => Waited::Finished,
            (true, 0) => Waited::Nothing,
            (true, _) => Waited::TimedOut,
        }
    }
}

/// A piece of work under test, counted from its start until it is dropped.
struct Piece(Arc<Outstanding>);

impl Piece {
    /// Counts a piece of work, if an app under test runs on this thread.
    fn begin() -> Option<Self> {
        let current = CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()?;
        lock(&current.count).begun += 1;
        Some(Self(current))
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut count = lock(&self.0.count);
        count.begun -= 1;
        count.finished += 1;
        drop(count);
        self.0.changed.notify_all();
    }
}

/// Restores the previous counter on drop, also after a panic.
struct Restore(Option<Arc<Outstanding>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    use super::{OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX, OffloadPool, Pool, lock, offload_to};

    /// Time after which a test fails.
    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    /// Returns a pool with the limits of `offload`.
    fn pool() -> Arc<Pool> {
        OffloadPool::new("offload", OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX).0
    }

    #[test]
    fn limits_threads_and_queued_work() {
        let pool = pool();
        let gate = Arc::new(Barrier::new(OFFLOAD_THREADS_MAX + 1));
        let (done, is_done) = sync_channel(OFFLOAD_THREADS_MAX + OFFLOAD_WAITING_MAX);
        for _ in 0..OFFLOAD_THREADS_MAX {
            let (gate, done) = (Arc::clone(&gate), done.clone());
            assert!(pool.queue(Box::new(move || {
                gate.wait();
                gate.wait();
                done.send(()).expect("the test receives");
            })));
        }
        // Every thread is busy.
        gate.wait();
        for _ in 0..OFFLOAD_WAITING_MAX {
            let done = done.clone();
            assert!(pool.queue(Box::new(move || done.send(()).expect("the test receives"))));
        }
        assert!(!pool.queue(Box::new(|| ())), "the queue is full");
        assert_eq!(lock(&pool.state).threads, OFFLOAD_THREADS_MAX);
        gate.wait();
        for _ in 0..OFFLOAD_THREADS_MAX + OFFLOAD_WAITING_MAX {
            is_done.recv().expect("all work is done");
        }
    }

    #[test]
    fn ends_an_idle_thread() {
        let pool = pool();
        lock(&pool.state).threads = 1;
        let (done, is_done) = sync_channel(OFFLOAD_THREADS_MAX + OFFLOAD_WAITING_MAX);
        lock(&pool.state).waiting.push_back(Box::new(move || done.send(()).expect("the test receives")));
        pool.serve(Duration::ZERO);
        is_done.recv().expect("queued work is done first");
        assert_eq!(lock(&pool.state).threads, 0);
    }

    /// Dropping an abandoned result may panic; the thread continues.
    struct Bomb(SyncSender<()>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.send(()).expect("the test receives");
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }

    #[test]
    fn survives_results_that_panic_on_drop() {
        let pool = pool();
        let (dropped, is_dropped) = sync_channel(1);
        for _ in 0..=OFFLOAD_THREADS_MAX {
            let (go, may_go) = sync_channel(1);
            let dropped = dropped.clone();
            drop(offload_to(&pool, move || {
                may_go.recv().expect("sent once the future is dropped");
                Bomb(dropped)
            }));
            go.send(()).expect("the work waits for it");
            is_dropped.recv_timeout(TEST_TIMEOUT).expect("a thread ran it");
        }
        let (done, is_done) = sync_channel(1);
        drop(offload_to(&pool, move || done.send(()).expect("the test receives")));
        is_done.recv_timeout(TEST_TIMEOUT).expect("a thread is left or started");
    }
}
