//! Work that blocks, done on threads of its own: a worker must not wait for a disk, a lock or a database.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::outstanding::Outstanding;

/// Threads that do such work, all workers together.
pub const OFFLOAD_THREADS_MAX: usize = 64;

/// Pieces of work that may wait for a thread; further ones are refused.
pub const OFFLOAD_WAITING_MAX: usize = 4096;

/// How long a thread waits for more work before it ends.
pub const OFFLOAD_IDLE: Duration = Duration::from_secs(10);

/// Why a piece of work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Offloaded {
    /// [`OFFLOAD_WAITING_MAX`] others wait, or the system gives no thread.
    Full,
    /// It panicked.
    Panicked,
}

impl fmt::Display for Offloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too much work waits for a thread",
            Self::Panicked => "the work on another thread panicked",
        })
    }
}

impl std::error::Error for Offloaded {}

type Work = Box<dyn FnOnce() + Send>;

/// Does something on another thread: it may block. It is begun at once; who drops the future leaves it to end by itself.
///
/// ```
/// use shearwater::{App, Call, Offloaded, offload};
/// use shearwater::testing::Tested;
///
/// let mut app = App::new();
/// app.get_async("/sum", async |call: &mut Call| -> Result<(), Offloaded> {
///     let sum = offload(|| (1..=1000_u32).sum::<u32>()).await?;
///     call.response().text(&sum.to_string());
///     Ok(())
/// });
/// assert_eq!(Tested::new(app)?.get("/sum").text(), "500500");
/// # Ok::<(), shearwater::Error>(())
/// ```
///
/// # Errors
/// [`Offloaded`] says why it wasn't done.
pub fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Offloaded>> {
    offload_to(pool(), work)
}

fn offload_to<T: Send + 'static>(
    pool: &'static Pool,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Offloaded>> {
    let place = Arc::new(Place::new(Outstanding::current()));
    let (here, there) = (Awaiting(Arc::clone(&place)), Arc::clone(&place));
    let is_begun = pool.begin(Box::new(move || {
        there.put(catch_unwind(AssertUnwindSafe(work)).map_err(|_| Offloaded::Panicked));
    }));
    if !is_begun {
        place.put(Err(Offloaded::Full));
    }
    std::future::poll_fn(move |cx| here.0.poll(cx.waker()))
}

/// Where a result is awaited.
struct Place<T>(Mutex<Awaited<T>>);

struct Awaited<T> {
    result: Option<Result<T, Offloaded>>,
    waker: Option<Waker>,
    /// Until it is there, or nobody waits: only where the app is under test.
    outstanding: Option<Arc<Outstanding>>,
}

impl<T> Place<T> {
    fn new(outstanding: Option<Arc<Outstanding>>) -> Self {
        outstanding.iter().for_each(|outstanding| outstanding.begin());
        Self(Mutex::new(Awaited { result: None, waker: None, outstanding }))
    }

    fn put(&self, result: Result<T, Offloaded>) {
        let (waker, outstanding) = {
            let mut awaited = locked(&self.0);
            awaited.result = Some(result);
            (awaited.waker.take(), awaited.outstanding.take())
        };
        waker.into_iter().for_each(Waker::wake);
        outstanding.into_iter().for_each(|outstanding| outstanding.end());
    }

    /// Nobody waits any more.
    fn forget(&self) {
        let outstanding = locked(&self.0).outstanding.take();
        outstanding.into_iter().for_each(|outstanding| outstanding.end());
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<T, Offloaded>> {
        let mut awaited = locked(&self.0);
        match awaited.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                awaited.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }
}

/// Who waits at a place.
struct Awaiting<T>(Arc<Place<T>>);

impl<T> Drop for Awaiting<T> {
    fn drop(&mut self) {
        self.0.forget();
    }
}

/// The threads of the process, and what waits for them.
#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    has_work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(Pool::default)
}

impl Pool {
    /// Begins a piece of work as soon as a thread is free; false where too much waits.
    fn begin(&'static self, work: Work) -> bool {
        let mut state = locked(&self.state);
        if state.waiting.len() >= OFFLOAD_WAITING_MAX {
            return false;
        }
        let wants_thread = state.idle <= state.waiting.len() && state.threads < OFFLOAD_THREADS_MAX;
        if wants_thread {
            let named = thread::Builder::new().name("offload".to_owned());
            match named.spawn(|| self.serve(OFFLOAD_IDLE)) {
                Ok(_) => state.threads += 1,
                // Those that are there will come to it.
                Err(_) if state.threads > 0 => {}
                Err(_) => return false,
            }
        }
        state.waiting.push_back(work);
        drop(state);
        self.has_work.notify_one();
        true
    }

    /// A thread's life.
    fn serve(&self, idle: Duration) {
        let mut state = locked(&self.state);
        loop {
            if let Some(work) = state.waiting.pop_front() {
                drop(state);
                // A result that nobody waits for any more may panic when it is dropped: the thread goes on.
                drop(catch_unwind(AssertUnwindSafe(work)));
                state = locked(&self.state);
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

/// What is under these locks is whole at every step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    use super::{OFFLOAD_THREADS_MAX, OFFLOAD_WAITING_MAX, Pool, locked, offload_to};

    /// How long a test waits before it fails.
    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn so_many_threads_and_so_much_that_waits() {
        let pool: &'static Pool = Box::leak(Box::default());
        let gate = Arc::new(Barrier::new(OFFLOAD_THREADS_MAX + 1));
        let (done, is_done) = sync_channel(OFFLOAD_THREADS_MAX + OFFLOAD_WAITING_MAX);
        for _ in 0..OFFLOAD_THREADS_MAX {
            let (gate, done) = (Arc::clone(&gate), done.clone());
            assert!(pool.begin(Box::new(move || {
                gate.wait();
                gate.wait();
                done.send(()).expect("somebody listens");
            })));
        }
        // Every thread has its work, and none is free.
        gate.wait();
        for _ in 0..OFFLOAD_WAITING_MAX {
            let done = done.clone();
            assert!(pool.begin(Box::new(move || done.send(()).expect("somebody listens"))));
        }
        assert!(!pool.begin(Box::new(|| ())), "no more than so much waits");
        assert_eq!(locked(&pool.state).threads, OFFLOAD_THREADS_MAX);
        gate.wait();
        for _ in 0..OFFLOAD_THREADS_MAX + OFFLOAD_WAITING_MAX {
            is_done.recv().expect("all of it is done");
        }
    }

    #[test]
    fn a_thread_without_work_ends() {
        let pool: &'static Pool = Box::leak(Box::default());
        locked(&pool.state).threads = 1;
        let (done, is_done) = sync_channel(OFFLOAD_THREADS_MAX + OFFLOAD_WAITING_MAX);
        locked(&pool.state).waiting.push_back(Box::new(move || done.send(()).expect("somebody listens")));
        pool.serve(Duration::ZERO);
        is_done.recv().expect("what waited is done first");
        assert_eq!(locked(&pool.state).threads, 0);
    }

    /// A result that nobody waits for any more: it tells that it is dropped, and panics then (without a word on standard error).
    struct Bomb(SyncSender<()>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.send(()).expect("somebody listens");
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }

    #[test]
    fn a_result_that_panics_when_it_is_dropped_ends_no_thread() {
        let pool: &'static Pool = Box::leak(Box::default());
        let (dropped, is_dropped) = sync_channel(1);
        for _ in 0..=OFFLOAD_THREADS_MAX {
            let (go, may_go) = sync_channel(1);
            let dropped = dropped.clone();
            drop(offload_to(pool, move || {
                may_go.recv().expect("its future is dropped by then");
                Bomb(dropped)
            }));
            go.send(()).expect("it waits for that");
            is_dropped.recv_timeout(PATIENCE).expect("a thread has done it");
        }
        let (done, is_done) = sync_channel(1);
        drop(offload_to(pool, move || done.send(()).expect("somebody listens")));
        is_done.recv_timeout(PATIENCE).expect("a thread is left, or is made");
    }
}
