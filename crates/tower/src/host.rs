//! Workers within tokio runtimes: one for each, on its thread.
//!
//! The runtime waits: for the worker's descriptor, its timers and what handlers wait for, by one system call. The worker
//! runs its turns when something is due. See `docs/decisions/0036-nested-workers.md`.

use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{fmt, io};

use shearwater::engine::{Host, HostedWorker, NextRun, WorkerPosition};
use shearwater::{Control, Notice};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::coop::unconstrained;
use tokio::time::{Sleep, sleep, timeout};

use crate::limits::{BLOCKING_THREADS_MAX, TASKS_CHECK_MS};

/// Makes the source of services of a worker, within its runtime.
pub(crate) type MakeEach<M> = dyn Fn(&LocalRuntime, usize) -> M + Send + Sync;

/// A signal to drain.
pub(crate) type Shutdown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A runtime for each worker.
pub(crate) struct Runtimes<M> {
    maker: Mutex<Maker<M>>,
    /// Sources of services that are made, and not yet taken, with the number of their worker.
    made: Mutex<Vec<(usize, M)>>,
    /// Drains the server when it completes; runs with the first worker.
    shutdown: Mutex<Option<(Shutdown, u64)>>,
}

/// Kept until each worker has its source of services: a pool in it would keep its tasks, which a drain waits for.
struct Maker<M> {
    make: Option<Arc<MakeEach<M>>>,
    used: usize,
}

impl<M> fmt::Debug for Runtimes<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runtimes")
    }
}

impl<M> Runtimes<M> {
    /// `shutdown` has the time of the drain in milliseconds.
    pub(crate) fn new(make: Box<MakeEach<M>>, shutdown: Option<(Shutdown, u64)>) -> Self {
        let maker = Mutex::new(Maker { make: Some(make.into()), used: 0 });
        Self { maker, made: Mutex::default(), shutdown: Mutex::new(shutdown) }
    }

    /// Makes the source of services of a worker.
    fn make(&self, runtime: &LocalRuntime, position: WorkerPosition) {
        let mut maker = self.maker.lock().unwrap_or_else(PoisonError::into_inner);
        maker.used += 1;
        let make = if maker.used < position.workers { maker.make.clone() } else { maker.make.take() };
        drop(maker);
        let made = make.expect("each worker is run once")(runtime, position.number);
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push((position.number, made));
    }

    /// Returns the source of services that was made for a worker.
    pub(crate) fn take(&self, worker: usize) -> M {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let index = made.iter().position(|(number, _)| *number == worker);
        made.swap_remove(index.expect("made before the worker starts, and taken once")).1
    }
}

impl<M: Send + 'static> Host for Runtimes<M> {
    fn run(
        &self,
        position: WorkerPosition,
        start: &mut dyn FnMut() -> Option<Box<dyn HostedWorker>>,
    ) -> io::Result<()> {
        let mut builder = Builder::new_current_thread();
        builder
            .enable_all()
            .max_blocking_threads(blocking_threads_max(position.workers))
            .thread_name("blocking");
        let owner = OwnRuntime(Some(builder.build_local(LocalOptions::default())?));
        let Some(runtime) = &owner.0 else { return Ok(()) };
        self.make(runtime, position);
        let _entered = runtime.enter();
        let Some(mut worker) = start() else { return Ok(()) };
        let control = worker.control();
        let mut tasks = Tasks { runtime, background: runtime.metrics().num_alive_tasks() };
        let shutdown = self.shutdown.lock().unwrap_or_else(PoisonError::into_inner).take();
        let shutdown = shutdown.map(|(signal, drain_ms)| {
            runtime.handle().spawn(drain_after(signal, drain_ms, Arc::clone(&control)))
        });
        // Handlers of the worker's own have no budget, and mustn't share that of this future: one could use it up for all.
        let result = runtime.block_on(unconstrained(async { Nested::new(&mut *worker)?.await }));
        let left = worker.drain_left();
        shutdown.iter().for_each(tokio::task::JoinHandle::abort);
        tasks.without_those_of(worker);
        let cut_off = tasks.wait(left, &control);
        if cut_off > 0 {
            control.notify(Notice::TasksCutOff { worker: position.number, tasks: cut_off });
        }
        result
    }
}

/// Returns a worker's share of the threads for `spawn_blocking`.
fn blocking_threads_max(workers: usize) -> usize {
    (BLOCKING_THREADS_MAX / workers).max(1)
}

/// Drains the server once `signal` completes.
pub(crate) async fn drain_after(signal: Shutdown, drain_ms: u64, control: Arc<Control>) {
    signal.await;
    control.drain(drain_ms);
}

/// A runtime that waits for no blocked thread when it is dropped, nor after a panic.
struct OwnRuntime(Option<LocalRuntime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(LocalRuntime::shutdown_background);
    }
}

/// Tasks that the program has spawned on a worker.
struct Tasks<'a> {
    runtime: &'a LocalRuntime,
    /// Number of tasks that were there before the first request. They may run forever.
    background: usize,
}

impl Tasks<'_> {
    /// Drops a worker. Background tasks that end with it, such as those of pools, hide no others from then on.
    fn without_those_of(&mut self, worker: Box<dyn HostedWorker + '_>) {
        let settle = || {
            if self.background > 0 {
                self.runtime.block_on(sleep(Duration::from_millis(TASKS_CHECK_MS)));
            }
            self.runtime.metrics().num_alive_tasks()
        };
        let before = settle();
        drop(worker);
        let ended = before.saturating_sub(settle());
        self.background = self.background.saturating_sub(ended);
    }

    /// Waits for tasks that requests have spawned, at most for this time, unless a stop is ordered. Returns the number of
    /// those left.
    fn wait(&self, left: Option<Duration>, control: &Control) -> usize {
        let ended = async {
            while self.left() > 0 && !control.is_stopping() {
                sleep(Duration::from_millis(TASKS_CHECK_MS)).await;
            }
        };
        // Also without time: what has been cancelled takes a turn of the runtime to end.
        let _ = self.runtime.block_on(async { timeout(left.unwrap_or_default(), ended).await });
        self.left()
    }

    fn left(&self) -> usize {
        self.runtime.metrics().num_alive_tasks().saturating_sub(self.background)
    }
}

/// A worker's descriptor, which stays the worker's.
struct Descriptor(RawFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// A worker as a future, which ends with it.
struct Nested<'a> {
    worker: &'a mut dyn HostedWorker,
    readiness: AsyncFd<Descriptor>,
    /// The end of the worker's sleep, if its descriptor doesn't show that.
    sleep: Pin<Box<Sleep>>,
}

impl<'a> Nested<'a> {
    fn new(worker: &'a mut dyn HostedWorker) -> io::Result<Self> {
        let descriptor = Descriptor(worker.descriptor()?);
        #[expect(
            deprecated,
            reason = "its successor is unsafe; the worker, which is borrowed, keeps the descriptor open"
        )]
        let readiness = AsyncFd::with_interest(descriptor, Interest::READABLE)?;
        Ok(Self { worker, readiness, sleep: Box::pin(sleep(Duration::ZERO)) })
    }

    /// Returns whether the descriptor has become readable. Whatever made it so is the worker's to take next.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.readiness.poll_read_ready(cx))?.clear_ready();
        Poll::Ready(Ok(()))
    }

    /// Returns whether the sleep has ended.
    fn poll_sleep(&mut self, time: Option<Duration>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(time) = time else { return Poll::Pending };
        self.sleep.set(sleep(time));
        self.sleep.as_mut().poll(cx)
    }
}

impl Future for Nested<'_> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(Err(error)) = this.poll_readable(cx) {
            return Poll::Ready(Err(error));
        }
        match this.worker.run_due(cx.waker())? {
            NextRun::Never => return Poll::Ready(Ok(())),
            NextRun::Again => cx.waker().wake_by_ref(),
            NextRun::Sleep(time) => {
                if this.poll_readable(cx)?.is_ready() || this.poll_sleep(time, cx).is_ready() {
                    cx.waker().wake_by_ref();
                }
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::blocking_threads_max;

    #[test]
    fn workers_share_the_threads_that_may_block() {
        for (workers, threads_max) in [(1, 512), (2, 256), (3, 170), (1000, 1)] {
            assert_eq!(blocking_threads_max(workers), threads_max, "{workers}");
        }
    }
}
