//! Workers within another event loop, such as a tokio runtime of their own.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use std::{fmt, io};

use crate::server::control::Control;

/// An event loop that workers are run within: it waits instead of them, and runs its own tasks between their turns.
///
/// See [`Options::host`](crate::Options::host).
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// Runs a worker to its end, on its thread.
    ///
    /// `start` creates its driver and its service. It returns `None` if that failed, which it has reported; then there is
    /// nothing to run.
    ///
    /// # Errors
    /// If the event loop or the worker fails. Before `start`, the server doesn't start.
    fn run(
        &self,
        position: WorkerPosition,
        start: &mut dyn FnMut() -> Option<Box<dyn HostedWorker>>,
    ) -> io::Result<()>;
}

/// A worker's number among those of its server.
#[derive(Debug, Clone, Copy)]
pub struct WorkerPosition {
    /// Number of the worker, from 0.
    pub number: usize,
    /// Number of workers.
    pub workers: usize,
}

/// A worker within another event loop.
pub trait HostedWorker {
    /// Returns the descriptor to watch: it becomes readable when [`run_due`](Self::run_due) is to be called. Edges suffice.
    ///
    /// # Errors
    /// If the kernel refuses a descriptor.
    fn descriptor(&mut self) -> io::Result<RawFd>;

    /// Runs the turns that are due, without waiting. Called at first, and then as [`NextRun`] describes. Handlers wake `waker`.
    ///
    /// # Errors
    /// If the driver fails: the worker has ended.
    fn run_due(&mut self, waker: &Waker) -> io::Result<NextRun>;

    /// Returns the time left to a drain; `None` without one, or if it has ended early.
    fn drain_left(&self) -> Option<Duration>;

    /// Returns the control of its server.
    fn control(&self) -> Arc<Control>;
}

/// The next time at which a hosted worker is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextRun {
    /// When the event loop has run what else is due.
    Again,
    /// When its descriptor becomes readable, its waker is woken, or after this time.
    Sleep(Option<Duration>),
    /// A drain or a stop is complete.
    Never,
}
